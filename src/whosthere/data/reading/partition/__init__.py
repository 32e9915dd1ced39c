"""How places become regions: by their ids, a grid, the nearest antenna, polygons or H3."""
