"""Linear algebra of arrays and of operators known through their products: Lanczos, bounds on eigenvalues, QR, small QPs."""
