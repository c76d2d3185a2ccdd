"""Names that are made anew by each run: a grant of one would never fit again, a pattern does. Pure."""

from __future__ import annotations

import itertools
import re

from sandbox.base import globs

# A run of digits this long is a process, a time or a date.
_NUMBER = 5
# Beside the word `tmp` a shorter one is a process or a count.
_SMALL_NUMBER = 2
_HASH = 8
_RANDOM = 6
# A word that changes between letters and digits this often is nobody's; `python311` and `es2015` change once.
_TURNS = 2

#: The names of tools that take all their letters from mkstemp(3) or a library like it: each is as long in every run.
_MADE_BY = re.compile(
    r"sed(?P<sed>[A-Za-z0-9]{6})"  # sed -i of GNU
    r"|pytest-cache-files-(?P<pytest>[a-z0-9_]{8})"  # pytest, beside its .pytest_cache
    r"|tmp(?P<python>[a-z0-9_]{8})(?:\.[\w.]+)?"  # tempfile of Python
    # mktemp(3), tempfile of Rust, mkdtemp of Node; mktemp(1). Lower case alone is a word: `tmp-config`.
    r"|(?:.*[-._])?te?mp[-._]?(?P<six>(?![A-Z]?[a-z]+\Z)[A-Za-z0-9]{6})"
    r"|(?:.*[-._])?te?mp[-._](?P<ten>(?![A-Z]?[a-z]+\Z)[A-Za-z0-9]{10})",
    re.DOTALL,
)
#: The data files of parallel runs of coverage, which have the host, the process and a random word in their names.
_COVERAGE = re.compile(r"\.coverage\..*\d.*", re.DOTALL)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_TOKEN = re.compile(rf"{_UUID.pattern}|[A-Za-z0-9]+", re.IGNORECASE)
_TEMPORARY = frozenset({"tmp", "temp"})
_HEXADECIMAL = frozenset("0123456789abcdef")


def pattern(name: str) -> str | None:
    """The narrowest pattern for the names of this kind, in grant syntax; `None` for a name that stays.

    >>> pattern(".9f3a21.bun-build")
    '*.bun-build'
    >>> pattern("sedx7Kq2Z")
    'sed??????'
    """
    if _COVERAGE.fullmatch(name):
        return ".coverage.*"
    made = _MADE_BY.fullmatch(name)
    if made is not None and made.lastgroup is not None:
        start, end = made.span(made.lastgroup)
        return globs.escape(name[:start]) + "?" * (end - start) + globs.escape(name[end:])
    return _without_random_words(name)


def _without_random_words(name: str) -> str | None:
    out, end, found = "", 0, False
    temporary = not _TEMPORARY.isdisjoint(token[0].lower() for token in _TOKEN.finditer(name))
    for token in _TOKEN.finditer(name):
        if _random(token[0]) or (temporary and token[0].isdigit() and len(token[0]) >= _SMALL_NUMBER):
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
    if _UUID.fullmatch(token):
        return True
    digits = sum(character.isdigit() for character in token)
    if digits == len(token):
        return digits >= _NUMBER
    if len(token) < _RANDOM:
        return False
    if not digits:
        return 2 * _turns(token) >= len(token)
    hexadecimal = len(token) >= _HASH and _HEXADECIMAL.issuperset(token.lower())
    return hexadecimal or sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(token)) >= _TURNS


def _turns(token: str) -> int:
    """How often letters change their case: half of the time in no word, however it is joined from others."""
    return sum(a.isupper() != b.isupper() for a, b in itertools.pairwise(token))
