"""Linear algebra: Lanczos methods, bounds on eigenvalues, QR, small quadratic programmes, projections, selection of entries."""
