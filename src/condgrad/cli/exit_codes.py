"""Exit codes of the commands besides 0, which means success."""

BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130
