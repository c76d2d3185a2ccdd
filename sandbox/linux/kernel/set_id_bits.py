"""The mode bits by which a program runs as its owner or its group, whoever starts it (chmod(2)). Pure."""

from __future__ import annotations

import stat

#: S_ISUID and S_ISGID.
SET_ID = stat.S_ISUID | stat.S_ISGID


def without_set_id(mode: int, kind: int) -> int:
    """The permission bits that a file gets where a task asks for `mode`.

    The set-group-ID bit of a directory stays: it chooses the group of what is made there, and lends nobody a right.

    Args:
        mode: the bits that were asked for.
        kind: a mode that tells what the file is.
    """
    return stat.S_IMODE(mode) & ~(stat.S_ISUID if stat.S_ISDIR(kind) else SET_ID)
