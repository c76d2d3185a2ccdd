"""Paths that are hard to read from outside: in memory nobody else reads, through `/proc`, from a thread of its own.

What cannot be read is refused, and the run does not pass. What the kernel itself would fail leaves no hole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox import Session
from tests.conftest import make_tree
from tests.redteam.conftest import PYTHON, Box, shown, violated
from tests.support.observers import ANSWERING
from tests.support.walls_away import take_away

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox import RunResult

pytestmark = pytest.mark.kernel

_DEEP = "out/a/b"
_SECRETS = "from sandbox.linux.kernel.seccomp_filter import REFUSED; del REFUSED['memfd_secret']"
_REFUSAL = """
from sandbox.linux.observe import recorder
notified, goes_on = recorder.Recorder.notified, recorder.CallAnswer(0)
recorder.Recorder.notified = lambda self, seen: goes_on if notified(self, seen).unread else notified(self, seen)
"""
_PROC = "from sandbox.linux.caller.links_as_caller import TaskTree; TaskTree._of_proc = lambda *_: None"

#: Ways to the project's directory whose `..` stands behind a link, and links that lead there by themselves.
_WAYS = (
    "/proc/net/../cwd",
    "/proc/self/net/../cwd",
    "/proc/thread-self/../../cwd",
    "/proc/thread-self/../../../thread-self/cwd",
    "/proc/self/../self/task/../cwd",
    "/proc/self/root/proc/net/../cwd",
    "/dev/fd/../cwd",
    "lib/way/../cwd",
    "lib/ways/../cwd",
)


@pytest.fixture
def deep(each_box: Box) -> Box:
    (each_box.project / _DEEP).mkdir(parents=True)
    (each_box.project / "lib/way").symlink_to("/proc/net")
    (each_box.project / "lib/ways").symlink_to("way")
    return each_box


@pytest.fixture
def weakened(deep: Box, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Box]:
    """A box whose session lacks walls."""
    take_away(monkeypatch, "\n".join(request.param))
    with Session() as deep.session:
        yield deep


def attack(box: Box, *arguments: object) -> tuple[dict[str, Any], RunResult]:
    told, result = box.attack("unread", *arguments)
    if "impossible" in told and told["impossible"] != "ENOSYS":
        pytest.fail(shown(result))
    return told, result


def named(result: RunResult) -> set[str]:
    return {str(violation.path).rpartition("/")[2] for violation in result.violations}


def test_what_stands_behind_a_link_of_proc_is_found(deep: Box) -> None:
    reads = {f"{way}/{number}.txt@r": f"{number}.txt" for number, way in enumerate(_WAYS)}
    writes = {f"{way}/{_DEEP}/{number}/.vscode@d": f"{_DEEP}/{number}/.vscode" for number, way in enumerate(_WAYS)}
    make_tree(deep.project, dict.fromkeys(reads.values(), "hidden\n"))
    for place in writes.values():
        (deep.project / place).parent.mkdir()
    told, result = attack(deep, "spelled", *reads, *writes)
    assert {told[way] for way in reads} == {"ENOENT"}, shown(result)
    expected = {("read", place) for place in reads.values()} | {("write", place) for place in writes.values()}
    assert violated(result, deep.project) == expected, shown(result)
    assert result.trace == "complete", shown(result)
    if deep.observer != "strace":  # which looks after the call
        assert {told[way] for way in writes} == {"EROFS"}, shown(result)


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
@pytest.mark.parametrize("weakened", [(_PROC,)], indirect=True, ids=["no links"])
def test_an_observer_that_does_not_read_the_links_of_proc_lets_a_name_pass(weakened: Box) -> None:
    path = f"{_WAYS[0]}/{_DEEP}/.vscode@d"
    told, _ = attack(weakened, "spelled", path)
    assert told == {path: "done"}


def test_a_name_that_says_it_is_removed_turns_no_way(deep: Box) -> None:
    """The kernel goes to the removed directory itself, whatever has the name that `/proc` tells of it."""
    result = deep.run(
        "mkdir out/d && cd out/d && rmdir ../d && ln -s /tmp/elsewhere '../d (deleted)';"
        " mkdir /proc/self/cwd/../a/b/.vscode; cat /proc/self/cwd/../../secret.txt; true"
    )
    told = {("read", "secret.txt"), ("write", f"{_DEEP}/.vscode")} <= violated(result, deep.project)
    # strace's lines are read when a command may have ended, and then there is a hole
    assert told or (deep.observer, result.trace) == ("strace", "partial"), shown(result)
    assert result.exit_code == 1, shown(result)
    assert list((deep.project / _DEEP).iterdir()) == []


@pytest.mark.parametrize("kind", ["directory", "descriptors"])
def test_a_thread_of_its_own_is_read_as_what_it_is(deep: Box, kind: str) -> None:
    told, result = attack(deep, kind, _DEEP, ".vscode")
    assert result.exit_code == 1, shown(result)
    # strace's lines are read when the thread may have ended, and then there is a hole
    assert named(result) == {".vscode"} or (deep.observer, result.trace) == ("strace", "partial"), shown(result)
    if deep.observer != "strace":
        assert set(told.values()) == {"EROFS"}, shown(result)


def test_no_task_has_memory_that_no_observer_reads(deep: Box) -> None:
    told, result = attack(deep, "secret", f"{_DEEP}/.vscode@d")
    assert told == {"impossible": "ENOSYS"}
    assert (result.exit_code, result.trace) == (0, "complete"), shown(result)


_UNREADABLE = (
    ("secret", f"{_DEEP}/.vscode@d"),
    ("secret", "x@b"),
    ("shortened", "x@d"),
    ("cut", "x@r"),
    ("kernels", "x@d"),
)


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
@pytest.mark.parametrize("weakened", [(_SECRETS,)], indirect=True, ids=["secret memory"])
def test_a_path_that_cannot_be_read_is_refused_and_the_run_does_not_pass(weakened: Box) -> None:
    for memory, asked in _UNREADABLE:
        told, result = attack(weakened, memory, asked)
        if "impossible" in told:
            continue  # this kernel has no such memory
        assert told == {asked: "EFAULT"}, (memory, shown(result))
        if weakened.observer == "notify" or not asked.endswith("@r"):  # the mask hears of reads without a path
            assert (result.exit_code, result.trace) == (1, "partial"), (memory, shown(result))
            assert "could not be read, and was refused" in result.trace_reason, memory
    assert list((weakened.project / _DEEP).iterdir()) == []


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_a_program_that_nobody_may_read_does_nothing_unseen(deep: Box) -> None:
    """The kernel closes its process to all but those with rights in its user namespace."""
    program = deep.program("unread", "spelled", f"{_DEEP}/.vscode@d")
    own = f"cp {program.split()[0]} out/own; chmod 111 out/own; out/own {program.partition(' ')[2]}; true"
    result = deep.run(own)
    assert ("write", f"{_DEEP}/.vscode") in violated(result, deep.project), shown(result)
    assert list((deep.project / _DEEP).iterdir()) == []


_UNDUMPABLE = """
import ctypes, os
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
there = os.open('lib', os.O_RDONLY)
for path, start in (('lib/cart.py', None), ('cart.py', there), (f'/proc/self/fd/{there}/cart.py', None)):
    os.close(os.open(path, os.O_RDONLY, dir_fd=start))
os.listdir(f'/dev/fd/{there}')
for path, start in (('a', os.open('out', os.O_RDONLY)), ('/proc/thread-self/cwd/out/b', None)):
    os.mkdir(path, dir_fd=start)
"""


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_a_process_whose_files_belong_to_root_is_read_all_the_same(each_box: Box) -> None:
    """It is undumpable by its own wish, as agents that hold keys are (PR_SET_DUMPABLE in prctl(2))."""
    (each_box.project / "lib/undumpable.py").write_text(_UNDUMPABLE, encoding="utf-8")
    result = each_box.run(f"{PYTHON} lib/undumpable.py")
    assert (result.exit_code, result.trace) == (0, "complete"), shown(result)


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
@pytest.mark.parametrize("weakened", [(_SECRETS, _REFUSAL)], indirect=True, ids=["no refusal"])
def test_an_observer_that_lets_pass_what_it_cannot_read_lets_a_name_pass(weakened: Box) -> None:
    path = f"{_DEEP}/.vscode@d"
    told, _ = attack(weakened, "secret", path)
    if "impossible" in told:
        pytest.skip("this kernel has no secret memory")
    assert told == {path: "done"}


def test_a_call_that_the_kernel_fails_leaves_no_hole(deep: Box) -> None:
    for memory in ("unmapped", "null"):
        told, result = attack(deep, memory, "x@r", "x@d")
        assert told == {"x@r": "EFAULT", "x@d": "EFAULT"}, shown(result)
        assert (result.exit_code, result.trace) == (0, "complete"), shown(result)
    told, result = attack(deep, "endless", "x@r", "x@d")
    assert told == {"x@r": "ENAMETOOLONG", "x@d": "ENAMETOOLONG"}, shown(result)
    assert (result.exit_code, result.trace) == (0, "complete"), shown(result)
