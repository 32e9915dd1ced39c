"""Rounds of the game: who is in, what is published, what each attack says about it."""
