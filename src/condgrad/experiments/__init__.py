"""The paper's experiments, runs from a spec file, and the pictures and reports of both."""
