"""Exit codes: 0 is for a run that ended as asked."""

BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130
