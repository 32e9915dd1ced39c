"""From scores to numbers with intervals; knows neither traces nor files."""
