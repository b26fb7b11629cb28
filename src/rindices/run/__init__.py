"""A run from a checked cohort to a folder of results, analyses and reports."""
