"""The parts of a simulated city: its parameters, places, people and records."""
