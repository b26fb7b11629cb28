"""R-indices: how badly, and in how many ways, a disease changes one person's brain."""

__version__ = "0.1.0"
