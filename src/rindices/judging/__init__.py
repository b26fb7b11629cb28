"""Which models to keep, and whether to trust them: agreement, the sweep over settings, the verdict."""
