"""What a run needs of the process it runs in: signals, clocks, memory, optional packages. Knows nothing of optimisation."""
