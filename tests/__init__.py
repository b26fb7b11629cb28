"""Tests; the output and debugging settings of whoever runs them are unset before any test is imported."""

import os

_LOOKS = ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES")
for _name in (*_LOOKS, "GITHUB_ACTIONS", "RINDICES_DEBUG"):  # the former forces colours, the latter shows tracebacks
    os.environ.pop(_name, None)
