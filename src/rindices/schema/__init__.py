"""What a table must be."""
