"""The paper's experiments: Figure 1, Tables 1 to 3 and recovery, made of runs that are kept by their hash."""
