"""Statistics, tricks, smoothness, scales, and back to the table's units."""
