"""The functions that most people need, for notebooks and scripts."""
