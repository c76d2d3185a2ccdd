"""The patterns of the schema as tests of one string, without regular expressions where it matters.

To load `re` and compile three patterns takes longer than the whole check of a small file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: What no name may hold: `#`, which divides a reference, and control characters.
_NEVER = frozenset("#\x7f" + "".join(map(chr, range(32))))


def is_visible(text: str) -> bool:
    r"""`\S`: there is something in it besides blanks."""
    return text.strip() != ""


def is_name(text: str) -> bool:
    r"""`^[^#\x00-\x1f\x7f]+$(?!\n)`: a project's name."""
    return text != "" and _NEVER.isdisjoint(text)


def is_task_name(text: str) -> bool:
    r"""`^(?![\^\s])[^#\x00-\x1f\x7f]*[^#\s\x00-\x1f\x7f]$(?!\n)`: a name with no blank at an end, nor `^` first."""
    return is_name(text) and text[0] != "^" and text.strip() == text


#: Each test by the pattern as the schema spells it.
TESTS: dict[str, Callable[[str], bool]] = {
    r"\S": is_visible,
    r"^[^#\x00-\x1f\x7f]+$(?!\n)": is_name,
    r"^(?![\^\s])[^#\x00-\x1f\x7f]*[^#\s\x00-\x1f\x7f]$(?!\n)": is_task_name,
}


def test(pattern: str) -> Callable[[str], object]:
    """Whether a string holds what a pattern describes."""
    known = TESTS.get(pattern)
    if known is not None:
        return known
    import re

    # JSON Schema's `$` is the end alone
    return re.compile(pattern.replace("$", r"\Z")).search
