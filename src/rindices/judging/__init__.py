"""Which models to keep, and whether to believe them: agreement, the sweep over settings, cohorts without disease."""
