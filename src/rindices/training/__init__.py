"""Models on their way: chunks of them, where they are trained, and the journal that survives a sudden end."""
