"""Patterns by linear algebra: contrastive ICA and sparse contrastive factor analysis, in a second and without training.

Both begin with what varies among patients and not among controls. They are a method by themselves, the baseline that
networks have to beat, and where networks start.
"""
