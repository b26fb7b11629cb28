"""From models to a person's numbers: severity, the reference of held-out controls, intervals."""
