"""What a table must be: its cells, a field for each role of a column, and what a model keeps of them."""
