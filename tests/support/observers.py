"""The observers a test in a real sandbox is held to; what it asserts is the same under each."""

from __future__ import annotations

import os

import pytest

#: The mask needs `/dev/fuse`; without it the cover is a tmpfs and every call is notified.
OBSERVERS = [
    pytest.param(
        "mask",
        marks=pytest.mark.skipif(
            not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="/dev/fuse is closed to this user: no mask here"
        ),
    ),
    "notify",
]
