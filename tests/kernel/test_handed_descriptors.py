"""Files that the warden opens for a task: from the moment that a program has one, nobody else has it open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_tree
from tests.support.observers import ANSWERING

if TYPE_CHECKING:
    from tests.kernel.conftest import Workspace

_GRANTS = ["out.txt", "dist", "gen/*"]


@pytest.fixture(params=ANSWERING)
def observer(request: pytest.FixtureRequest) -> str:
    """Those under which the warden opens files."""
    return str(request.param)


@pytest.fixture
def named(shop: Workspace) -> Workspace:
    make_tree(shop.project, {"dist/old": "old\n", "gen/old": "old\n"})
    return shop


def _python(named: Workspace, program: str) -> str:
    make_tree(named.project, {"lib/program.py": program})
    return named.passes("python3 lib/program.py", read=["lib"], write=_GRANTS)


# each race is lost within some ten turns where the warden lets go of a file after its caller has it
_EXECUTED = """
import os
for turn in range(30):
    for path in (f"dist/{turn}", f"gen/{turn}", "out.txt"):
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o755)
        os.write(file, b"#!/bin/true\\n")
        os.close(file)
        os.waitpid(os.posix_spawn(path, [path], {}), 0)
print("executed")
"""

_LOCKED = """
import fcntl, os
for turn in range(40):
    for path in ("dist/lock", "out.txt"):
        held = os.open(path, os.O_CREAT | os.O_WRONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        os.close(held)
        again = os.open(path, os.O_RDONLY)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(again)
print("locked")
"""


@pytest.mark.parametrize(("program", "said"), [(_EXECUTED, "executed"), (_LOCKED, "locked")])
def test_a_file_is_its_callers_alone_once_it_is_open(named: Workspace, program: str, said: str) -> None:
    assert _python(named, program) == f"{said}\n"


_FULL = """
import errno, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
asked = {"out.txt": os.O_CREAT, "dist/new": os.O_CREAT, "dist/old": 0, "gen/new": os.O_CREAT, ".": os.O_TMPFILE}
told = []
for path, flags in asked.items():
    try:
        os.open(path, flags | os.O_RDWR)
    except OSError as error:
        told.append(error.errno)
os.close(held.pop())
os.write(os.open("out.txt", os.O_RDWR | os.O_CREAT), b"written")
print(told == [errno.EMFILE] * 5 or told)
"""


def test_a_task_with_no_descriptor_left_is_told_so_and_lives_on(named: Workspace) -> None:
    assert _python(named, _FULL) == "True\n"
    assert named.text("out.txt") == "written"


_MANY_WAIT = """
import os, signal
os.mkfifo("dist/pipe")
children = []
for _ in range(80):
    child = os.fork()
    if not child:
        os.write(os.open("dist/pipe", os.O_WRONLY), b".")
        os._exit(0)
    children.append(child)
signal.alarm(20)
open("dist/new", "w").write("made meanwhile")
os.kill(children[0], signal.SIGKILL)
reader = os.open("dist/pipe", os.O_RDONLY)
heard = b""
while len(heard) < 79:
    heard += os.read(reader, 100)
ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(ends.count(0) >= 79)
"""


def test_pipes_that_wait_for_a_reader_hold_up_nothing_else(named: Workspace) -> None:
    assert _python(named, _MANY_WAIT) == "True\n"
    assert named.text("dist/new") == "made meanwhile"
