"""A task file that parsed, and the two formats there are."""

from __future__ import annotations

from typing import Any, Literal

Format = Literal["toml", "json"]


class Document:
    """A file that parsed; never changed.

    Attributes:
        file: the file's name as the user gave it.
        format: `toml` or `json`.
        text: the file's characters, without a byte order mark, line ends as they are.
        data: dicts, lists, strings, numbers, booleans, `None`; in TOML also dates and times, and
            `NotFinite` for `inf` and `nan`.
        cache: the places in the text that `vxconf.document.spans` keeps, for that module alone.
    """

    __slots__ = ("cache", "data", "file", "format", "text")

    def __init__(
        self,
        *,
        file: str,
        format: Format,  # noqa: A002  the name of the attribute
        text: str,
        data: Any,
        cache: dict[str, Any] | None = None,
    ) -> None:
        self.file = file
        self.format: Format = format
        self.text = text
        self.data = data
        self.cache: dict[str, Any] = {} if cache is None else cache

    def renamed(self, file: str) -> Document:
        """The same document under another name; places that are known stay known."""
        return Document(file=file, format=self.format, text=self.text, data=self.data, cache=self.cache)


class NotFinite:
    """A TOML `inf` or `nan`: no number any field could take, so no `float` here."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
