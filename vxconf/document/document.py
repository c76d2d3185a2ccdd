"""A file that parsed, and the two formats there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Format = Literal["toml", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that parsed.

    Attributes:
        file: its name as the user gave it.
        text: its characters, without a byte order mark, line ends as they are.
        data: dicts, lists, strings, numbers, booleans, `None`; in TOML also dates and times, and
            `NotFinite` for `inf` and `nan`.
        cache: what `vxconf.document.spans` keeps of the text; nobody else's.
    """

    file: str
    format: Format
    text: str
    data: Any
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


class NotFinite:
    """A TOML `inf` or `nan`: no number any field could take, so no `float` here."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
