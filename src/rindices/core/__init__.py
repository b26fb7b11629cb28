"""The training engine: JAX, optax and NumPy, and joblib for the number of cores; no tables, no files, no printing."""
