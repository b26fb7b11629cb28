"""Properties that hold for whatever people, names and settings there are: few examples here, many when asked.

``pytest tests/properties --hypothesis-profile=thorough`` (or ``RINDICES_PROPERTIES=thorough``) draws fresh examples,
and many of them.
"""

import os

from hypothesis import HealthCheck, Phase, settings

# Slow machines are no reason to fail; and nothing is remembered between runs, so that a run can be made again.
SHARED = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    print_blob=True,
)
settings.register_profile("quick", SHARED, max_examples=8, derandomize=True)
settings.register_profile("thorough", SHARED, max_examples=300)
settings.load_profile(os.environ.get("RINDICES_PROPERTIES", "quick"))
