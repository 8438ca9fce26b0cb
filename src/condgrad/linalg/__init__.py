"""Numerical routines: Lanczos methods, eigenvalue bounds, QR, small quadratic programmes, projections, selection of entries."""
