"""The masker that hides the values of secret-looking variables in text that people see. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|credential|api_?key|access_?key|private_?key|auth", re.IGNORECASE
)
# A shorter value is left alone: hiding it would blank ordinary words.
_SHORTEST = 6
_SHOWN = "***"


def masker(variables: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces every secret value in a text, the longest first."""
    values = sorted(
        {value for name, value in variables.items() if len(value) >= _SHORTEST and _SECRET_NAME.search(name)},
        key=len,
        reverse=True,
    )
    if not values:
        return lambda text: text
    pattern = re.compile("|".join(map(re.escape, values)))
    return lambda text: pattern.sub(_SHOWN, text)
