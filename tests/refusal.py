"""The check that a call is refused with the expected message."""

import pytest

from rindices import InputError


def refused_with(message, function, /, *arguments, error=InputError, **settings):
    """Call a function that must raise an error whose message matches; return the whole message."""
    with pytest.raises(error, match=message) as caught:
        function(*arguments, **settings)
    return str(caught.value)
