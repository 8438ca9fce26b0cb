"""Files: written whole or not at all, read with limits, and archives of arrays and plain data without pickle."""
