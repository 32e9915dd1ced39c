"""Compiled inner loops on plain arrays; they know no class of ours."""
