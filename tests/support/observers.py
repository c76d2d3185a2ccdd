"""The observers a test in a real sandbox is held to; what it asserts is the same under each."""

from __future__ import annotations

import os
import shutil

import pytest

#: The mask needs `/dev/fuse`; without it the cover is a tmpfs and every call is notified; strace
#: stands in where a kernel refuses to notify.
OBSERVERS = [
    pytest.param(
        "mask",
        marks=pytest.mark.skipif(
            not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="/dev/fuse is closed to this user: no mask here"
        ),
    ),
    "notify",
    pytest.param(
        "strace", marks=pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here")
    ),
]

#: Those that answer a call before it is made: strace tells of what was done, and refuses nothing by its name.
ANSWERING = OBSERVERS[:2]
