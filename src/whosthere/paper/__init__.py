"""The study of the paper: its experiments as plans, its numbers, and ours beside them."""
