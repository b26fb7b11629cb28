"""What is refused, and with which words."""

import pytest

from rindices import InputError


def refused_with(message, function, /, *arguments, error=InputError, **settings):
    """Call a function, which has to refuse with words that match; return all that it says."""
    with pytest.raises(error, match=message) as caught:
        function(*arguments, **settings)
    return str(caught.value)
