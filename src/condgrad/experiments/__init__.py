"""Runs from a spec file, and the paper's experiments, which are made of such runs."""
