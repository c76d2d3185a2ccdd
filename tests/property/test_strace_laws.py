"""Laws of the parser of strace's output: however it is cut, whatever it is."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.linux.caller.resolve_path_as_caller import Walked, walk
from sandbox.linux.kernel.syscall_numbers import X86_64
from sandbox.linux.strace import line_grammar, trace_parser
from sandbox.linux.strace.trace_parser import LINE_LIMIT, TraceParser

if TYPE_CHECKING:
    from sandbox.contract.intents import Intent
    from sandbox.contract.results import Access


class Places:
    """Nothing is a link, and half of all names exist."""

    def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked:  # noqa: ARG002  no links
        return walk(lambda _: None, path, base=base, follows=follows)

    def exists(self, path: str) -> bool:
        return len(path) % 2 == 0

    def is_closed_link(self, path: str) -> bool:
        return path.startswith("/proc/1/")

    def changes(self, call: str, intent: Intent, path: str) -> bool:  # noqa: ARG002  any
        return path.endswith("x")


def quoted(name: bytes) -> bytes:
    """As strace writes a path, which ends every escape with a third digit or a letter."""
    plain = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')
    return b'"' + b"".join(bytes((b,)) if b in plain else b"\\%03o" % b for b in name) + b'"'


_PATHS = st.binary(min_size=1, max_size=12).map(lambda raw: raw.replace(b"\0", b"_")) | st.sampled_from(
    [
        b"= -1 ENOENT (x)",
        b") = 3",
        b"a <unfinished ...>",
        b", O_RDONLY) = -1 EACCES (a)",
        b"lib/../x",
        b"/proc/self/cwd/x",
    ]
)
_RESULTS = st.sampled_from(
    [
        b"= 0",
        b"= 3",
        b"= 3</ws/a>",
        b"= -1 ENOENT (No such file or directory)",
        b"= -1 EROFS (Read-only file system)",
        b"= ? ERESTARTSYS (To be restarted if SA_RESTART is set)",
        b"= ?",
    ]
)
_CALLS = st.sampled_from(
    [
        b"openat(AT_FDCWD</ws>, %s, O_RDONLY",
        b"openat(3, %s, O_WRONLY|O_CREAT, 0666",
        b'openat(4</ws/q"d>, %s, O_RDONLY|O_NOFOLLOW',
        b"open(%s, O_RDWR",
        b"stat(%s, {st_mode=S_IFREG|0644, ...}",
        b"execve(%s, [%s, %s], 0x7f /* 2 vars */",
        b"rename(%s, %s",
        b"chdir(%s",
        b"newfstatat(AT_FDCWD, %s, 0x1, 0",
    ]
)
_OTHERS = st.sampled_from(
    [
        b"vfork(",
        b"clone(child_stack=NULL, flags=CLONE_FS|SIGCHLD",
        b"fchdir(3",
        b"exit_group(0",
        b"+++ exited with 0 +++",
        b"--- SIGINT {si_signo=SIGINT} ---",
        b"+++ superseded by execve in pid 3 +++",
        b"<... open resumed>) = 3",
        b"<... vfork resumed>) = 4",
    ]
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """One line, whole or a half, of one of few processes."""
    pid = draw(st.integers(1, 5))
    head = draw(_OTHERS) if draw(st.booleans()) and draw(st.booleans()) else draw(_CALLS)
    if b"%s" in head:
        head = head % tuple(quoted(draw(_PATHS)) for _ in range(head.count(b"%s")))
    elif head[:1] in b"+-<":
        return b"%-5d %s" % (pid, head)
    if draw(st.integers(0, 4)) == 0:
        return b"%-5d %s <unfinished ...>" % (pid, head)
    if draw(st.integers(0, 4)) == 0:
        return b"%-5d <... %s resumed>) %s" % (pid, head.partition(b"(")[0], draw(_RESULTS))
    return b"%-5d %s) %s" % (pid, head, draw(_RESULTS))


_TRACES = st.lists(lines(), max_size=12).map(lambda found: b"".join(line + b"\n" for line in found))
_GARBAGE = st.lists(
    st.binary(max_size=30) | lines() | st.sampled_from([b"\n", b"1 openat(", b'"\\', b") = -1 E"]), max_size=12
)


RECORDED = sorted(
    {
        line.split(b" ", 1)[1].lstrip()
        for path in (Path(__file__).resolve().parents[2] / "fixtures/traces").glob("*.strace")
        for line in path.read_bytes().splitlines()
    }
)
_BITS = st.sampled_from(
    [b'"', b"(", b")", b" = ", b"<", b">", b",", b", ", b"\\", b"{", b"]", b" ", b"O_WRONLY", b"3</a>", b"...", b"= 3"]
)


@st.composite
def recorded(draw: st.DrawFn) -> bytes:
    """What one process did, as it was recorded, or spoilt in a few places."""
    line = draw(st.sampled_from(RECORDED))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(_BITS) + line[at + draw(st.integers(0, 5)) :]
    return line


def fed(pieces: list[bytes], *, noted: bool = False) -> tuple[list[Access], bool, str]:
    parser = TraceParser(X86_64, Places(), cwd="/ws/p", root=1, noted=noted)
    found = [access for piece in pieces for access in parser.feed(piece)]
    return found + parser.finish(), parser.ended, parser.incomplete


def bytewise(trace: bytes) -> list[bytes]:
    return [trace[at : at + 1] for at in range(len(trace))]


@given(_TRACES, st.integers(1, 50))
@settings(max_examples=80)
def test_whole_by_line_and_by_byte_are_the_same(trace: bytes, size: int) -> None:
    whole = fed([trace])
    assert fed(trace.splitlines(keepends=True)) == whole
    assert fed(bytewise(trace)) == whole
    assert fed([trace[at : at + size] for at in range(0, len(trace), size)]) == whole


@given(_GARBAGE.map(b"".join))
@settings(max_examples=80)
def test_garbage_is_answered_and_is_the_same_however_it_is_cut(garbage: bytes) -> None:
    assert fed(bytewise(garbage)) == fed([garbage])


@given(_TRACES.flatmap(lambda trace: st.tuples(st.just(trace), st.integers(0, len(trace)))))
@settings(max_examples=40)
def test_a_trace_cut_short_tells_no_more_than_the_whole(drawn: tuple[bytes, int]) -> None:
    trace, end = drawn
    kept = fed([trace[:end]])
    told = {(a.pid, a.operation, a.asked, a.errno) for a in fed([trace])[0]}
    assert {(a.pid, a.operation, a.asked, a.errno) for a in kept[0]} <= told
    if end and not trace[:end].endswith(b"\n"):
        assert kept[2]


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
@settings(max_examples=80)
def test_any_name_comes_back_as_it_is(name: bytes) -> None:
    line = b"1 openat(AT_FDCWD</ws>, %s, O_RDONLY) = -1 ENOENT (No such file or directory)\n" % quoted(name)
    found, _, incomplete = fed([line])
    assert [access.asked for access in found if access.operation == "openat"][-1] == os.fsdecode(name)
    assert incomplete == ""


def test_a_gigabyte_of_nothing_takes_little_memory() -> None:
    parser = TraceParser(X86_64, Places(), cwd="/ws/p", root=1)
    block = (b"\x00\xffgarbage " * 2 + b"x" * (1 << 20))[: 1 << 20]
    tracemalloc.start()
    try:
        for _ in range(1 << 10):
            assert parser.feed(block) == []
        parser.finish()
        assert tracemalloc.get_traced_memory()[1] < (8 << 20) + LINE_LIMIT
    finally:
        tracemalloc.stop()
    assert (parser.ended, parser.incomplete) == (False, "a line of the trace is too long")


def test_lines_made_to_be_slow_are_not() -> None:
    """Each would take minutes where every quote, parenthesis or result is tried against the rest of the line."""
    size = LINE_LIMIT - 100
    for unit in (
        b'\\"',
        b'"',
        b"(",
        b") = 1<",
        b") = -1 EINVAL (",
        b" = ",
        b"1<",
        b"AT_FDCWD<",
        b"{[",
        b"\\",
        b", ",
        b"<... ",
        b"..",
        b"/..",
    ):
        for head in (
            b"1 openat(AT_FDCWD, ",
            b"1 openat(3<",
            b'1 open("',
            b'1 readlink("',
            b"1 connect(3, ",
            b"1 sendmsg(3, {",
            b"1 +++ ",
        ):
            line = head + (unit * size)[:size]
            fed([line + b" = -1 ENOENT (No such file or directory)\n", line + b'") = -1 ENOENT (No such file)\n'])


@given(st.lists(recorded() | lines().map(lambda line: line.split(b" ", 1)[1].lstrip()), max_size=8), st.booleans())
@settings(max_examples=80)
def test_what_is_passed_over_tells_nothing_when_it_is_read(said: list[bytes], noted: bool) -> None:
    trace = b"".join(b"1     %b\n" % line for line in said)
    swift = fed([trace], noted=noted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_parser, "_LINES", re.compile(trace_parser.LINE))
        assert fed([trace], noted=noted) == swift


@given(recorded())
@settings(max_examples=80)
def test_a_frequent_shape_is_read_as_any_other(line: bytes) -> None:
    assert line_grammar.result(line) == line_grammar.searched_result(line)
    body = line.partition(b"(")[2].rpartition(b")")[0]
    for limit in range(1, 6):
        assert line_grammar.arguments(body, limit) == line_grammar.searched_arguments(body, limit)


def test_every_recorded_line_is_read_the_same_by_its_shape_and_by_none() -> None:
    for line in RECORDED:
        assert line_grammar.result(line) == line_grammar.searched_result(line)
        body = line.partition(b"(")[2].rpartition(b")")[0]
        assert line_grammar.arguments(body, 6) == line_grammar.searched_arguments(body, 6)


@pytest.mark.parametrize("end", [b") = 0", b") = -1 ENOENT (No such file or directory)"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_line_that_is_too_long_is_said_however_it_comes(end: bytes, over: int) -> None:
    head, behind = b'1     stat("/', b'1     stat("/b", 0) = -1 ENOENT (No such file or directory)\n'
    line = head + b"a" * (LINE_LIMIT - len(head) - len(end) - 4 + over) + b'", 0' + end
    assert len(line) == LINE_LIMIT + over
    whole = fed([b"1     getpid() = 1\n" + line + b"\n" + behind])
    assert [access.asked for access in whole[0]][-1:] == ["/b"]
    assert whole[2] == ("a line of the trace is too long" if over else "")
    assert fed([line + b"\n", behind]) == fed([line[:9999], line[9999:], b"\n" + behind]) == whole
