"""The training engine: JAX and optax only; no tables, no files, no printing."""
