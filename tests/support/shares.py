"""The share of each run, where the tests in sandboxes run as root, as an ordinary user and without a `/dev/fuse`.

A test of a wall runs in all three. A test that names its observer runs once with each observer, some of them as root
and the others as an ordinary user; which ones are whose changes from test to test. A test that is `one_user` runs once.
A test that is `further` is another form of one that runs, and is left to the runs of all tests.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: Every test, as one user.
ALL = "all"
SHARES = (ALL, "root", "ordinary", "no-fuse")

#: Files below `tests`; a single test elsewhere carries the marker. They are about a report, a command line, a real tool
#: or client, or an order of events: whichever user runs them, the same code of this project decides. The rights of that
#: user are tested in the others.
ONE_USER = frozenset(
    {
        *(f"kernel/test_cli_{name}.py" for name in ("fix", "run", "run_many")),
        *(f"kernel/test_network_{name}.py" for name in ("any_port", "clients", "datagrams", "git", "go", "psql")),
        *(f"kernel/test_{name}.py" for name in ("layouts", "names_tools", "programs", "whole_tools", "workspaces")),
        *(f"kernel/test_{name}.py" for name in ("executor", "executors_guide", "servers", "sessions", "wrapping")),
        *(f"kernel/test_{name}.py" for name in ("benches", "dependencies", "environment", "hints", "readme")),
        *(
            f"kernel/test_{name}.py"
            for name in ("git", "network_services", "observers_agree", "paths_and_globs", "streams", "tracing")
        ),
        *(f"kernel/test_{name}.py" for name in ("names_random", "terminals", "terminals_outside")),
        *(f"redteam/test_network_{name}.py" for name in ("names", "proxy", "requests")),
        "property/test_fix_laws.py",
        "property/test_sandbox_access.py",
    }
)

_OBSERVERS = ("mask", "notify", "strace")
_OBSERVER = re.compile(rf"(?<=[\[-])({'|'.join(_OBSERVERS)})(?=[\]-])")


def takes(share: str, item: pytest.Item) -> bool:
    """Whether a run of a share runs a test."""
    if share == ALL:
        return True
    if item.get_closest_marker("further") is not None:
        return False
    if item.get_closest_marker("one_user") is not None:
        return share == "ordinary"
    observer = _OBSERVER.search(item.nodeid) if item.get_closest_marker("one_observer") is not None else None
    if observer is None:
        return True
    key = item.nodeid[: observer.start()] + item.nodeid[observer.end() :]
    turn = (zlib.crc32(key.encode()) + _OBSERVERS.index(observer.group())) % 2
    return share == ("root", "ordinary")[turn]
