"""Readers of foreign files against odd and damaged ones: a sample with all tests, thousands with ``make fuzz``."""
