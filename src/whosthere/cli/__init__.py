"""One small file per command; each parses, calls and prints."""
