"""Records of other programs, read as traces."""
