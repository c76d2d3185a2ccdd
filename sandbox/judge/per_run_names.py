"""Names that are made anew by each run: a grant of one would never fit again, a pattern does. Pure."""

from __future__ import annotations

import itertools
import re

from sandbox.base import globs

# A run of digits this long is a process, a time or a date.
_NUMBER = 5
_HASH = 8
_RANDOM = 6
# A word that changes between letters and digits this often is nobody's; `python311` and `es2015` change once.
_TURNS = 2

_TOKEN = re.compile(r"[A-Za-z0-9]+")
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}\Z")
_HEXADECIMAL = frozenset("0123456789abcdef")


def pattern(name: str) -> str | None:
    """The pattern for the names of this kind, in grant syntax; `None` for a name that stays.

    >>> pattern(".9f3a21.bun-build")
    '*.bun-build'
    """
    if _TEMPORARY.fullmatch(name):
        return "tmp*"
    out, end, found = "", 0, False
    for token in _TOKEN.finditer(name):
        if _random(token[0]):
            out += globs.escape(name[end : token.start()]) + "*"
            end, found = token.end(), True
    if not found:
        return None
    out += globs.escape(name[end:])
    # Text between two such parts is as random as they are, and a leading dot is matched by the star.
    out = re.sub(r"\*(?:[-_.]?\*)+", "*", out)
    out = out.removeprefix(".") if out.startswith(".*") else out
    # A pattern without a letter or a digit would match every file beside this one.
    return out if any(character.isalnum() for character in out) else None


def _random(token: str) -> bool:
    digits = sum(character.isdigit() for character in token)
    if digits == len(token):
        return digits >= _NUMBER
    if not digits or len(token) < _RANDOM:
        return False
    turns = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(token))
    hexadecimal = len(token) >= _HASH and _HEXADECIMAL.issuperset(token.lower())
    return hexadecimal or turns >= _TURNS
