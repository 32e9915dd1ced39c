"""What a page says, as plain values: numbers and words, without HTML."""
