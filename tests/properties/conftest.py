"""Properties that hold for any people, names and settings; by default, few examples are drawn.

``pytest tests/properties --hypothesis-profile=thorough`` (or ``RINDICES_PROPERTIES=thorough``) draws many fresh
examples.
"""

import os

from hypothesis import HealthCheck, Phase, settings

# A slow machine should not fail a test; nothing is stored between runs, so that each run can be reproduced.
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
