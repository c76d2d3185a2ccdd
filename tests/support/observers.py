"""The observers a test in a real sandbox is held to; what it asserts is the same under each."""

from __future__ import annotations

import os
import shutil

import pytest

#: Write grants of names are served by the mask alone, and the mask needs a `/dev/fuse` this user may open.
NEEDS_MASK = pytest.mark.skipif(
    not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="/dev/fuse is closed to this user: no mask here"
)

#: Without the mask the cover is a tmpfs and every call is notified; strace stands in where a kernel refuses to notify.
OBSERVERS = [
    pytest.param("mask", marks=[pytest.mark.one_observer, NEEDS_MASK]),
    pytest.param("notify", marks=pytest.mark.one_observer),
    pytest.param(
        "strace",
        marks=[
            pytest.mark.one_observer,
            pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here"),
        ],
    ),
]

#: Those that answer a call before it is made: strace tells of what was done, and refuses nothing by its name.
ANSWERING = OBSERVERS[:2]

#: For long tests of what both do alike; shorter ones hold the second to it as well.
ANSWERING_LONG = [ANSWERING[0], pytest.param("notify", marks=[*ANSWERING[1].marks, pytest.mark.further])]

#: For whole tools that take long: strace only tells of what they did, which shorter tests of it hold as well.
OBSERVERS_OF_LONG_TOOLS = [*ANSWERING, pytest.param("strace", marks=[*OBSERVERS[2].marks, pytest.mark.further])]
