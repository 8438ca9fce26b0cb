"""The paper's experiments: Figure 1, Tables 1 to 3 and recovery, computed from runs whose outcomes are stored by hash."""
