"""From models to a person's results: severity, the reference of held-out controls, and intervals."""
