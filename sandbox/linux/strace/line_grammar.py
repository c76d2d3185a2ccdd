"""The grammar of a line that strace writes: C strings, arguments, flags, results. Pure.

Every function is total: it answers whatever the bytes are, with `None` where strace does not write them.
"""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

from sandbox.linux.kernel import observed_syscalls

# error texts hold neither quotes nor parentheses, and a path may hold both
_RESULT = re.compile(
    # "errno" with a number that no register holds is what strace reads of a process killed inside the call
    rb'(-1 (E[A-Z0-9]+) \([^"()]*\)|-1 \(errno \d{16,}\)|-?\d+|0x[0-9a-f]+'
    rb'|\?(?: <unavailable>| E[A-Z_0-9]+ \([^"()]*\))?)'
    rb"(<.*>(?:\(deleted\))?)?"
)
# the most spellings of a result that a noted path behind the result may hold
_TRIES = 16
# a directory's name may hold anything, a quote and `>` too, so a note ends only where an argument does
_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*"(?:\.\.\.)?|(?:AT_FDCWD|\d+)<(?:[^>]|>(?![,)}\] (]|$))*>'
    rb'|[\[{(]|[\]})]|, *|[^"\[\]{}(),]+|".*',
    re.DOTALL,
)
# arguments without a comma
_SIMPLE = rb'(?:(?:AT_FDCWD|\d++)<[^>,]*+>|"[^"\\,]*+"(?:\.\.\.)?+|[^"<>,(){}\[\]]*+)'
_ALL_SIMPLE = re.compile(rb"(?:%b, )*+%b" % (_SIMPLE, _SIMPLE))
#: The most answers kept of questions that come again and again: a directory's note, the flags of an open.
_KEPT = 128
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b", b"e": b"\x1b"}
_DESCRIPTOR = re.compile(rb"(AT_FDCWD|-?\d+)(?:<(.*)>(\(deleted\))?)?", re.DOTALL)
_WORDS = re.compile(r"[A-Z_0-9x]+[a-f0-9]*")
_DELETED = b" (deleted)"
_REGISTER = 20  # the digits of the longest number a register holds

#: Bits of flags by name; those that differ between architectures come from the architecture.
_BITS = {
    "O_WRONLY": 0o1,
    "O_RDWR": 0o2,
    "O_CREAT": observed_syscalls.O_CREAT,
    "O_EXCL": observed_syscalls.O_EXCL,
    "O_TRUNC": observed_syscalls.O_TRUNC,
    "O_PATH": observed_syscalls.O_PATH,
    "O_TMPFILE": observed_syscalls.O_TMPFILE_BIT,
    "AT_SYMLINK_NOFOLLOW": observed_syscalls.AT_SYMLINK_NOFOLLOW,
    "AT_SYMLINK_FOLLOW": observed_syscalls.AT_SYMLINK_FOLLOW,
    "AT_EMPTY_PATH": observed_syscalls.AT_EMPTY_PATH,
    "IN_DONT_FOLLOW": observed_syscalls.IN_DONT_FOLLOW,
    "RESOLVE_IN_ROOT": 0x10,
}


class CallResult(NamedTuple):
    """The result of a call.

    Attributes:
        at: where the arguments end in the line.
        value: the number the call returned, `None` for `?`.
        errno: the error's name, such as `ENOENT`, empty for a success.
        noted: the returned descriptor with the note of its file (`-y`), empty without a note.
    """

    at: int
    value: int | None
    errno: str
    noted: bytes


class TracedDescriptor(NamedTuple):
    """A descriptor among the arguments.

    Attributes:
        number: `observed_syscalls.AT_FDCWD` for the working directory.
        path: the noted file, absolute, empty without a note.
        other: whether the note is of something without a path.
    """

    number: int
    path: str
    other: bool


def result(line: bytes) -> CallResult | None:
    """The result at the end of a line; `None` when there is none."""
    at = line.rfind(b" = ")
    said = line[at + 3 :]
    if at >= 0 and said.isdigit() and len(said) <= _REGISTER and (end := line[:at].rstrip(b" ")).endswith(b")"):
        return CallResult(len(end) - 1, int(said), "", b"")
    return searched_result(line)


def searched_result(line: bytes) -> CallResult | None:
    """The result at the end of a line of any shape."""
    at = len(line)
    for _ in range(_TRIES):
        at = line.rfind(b" = ", 0, at)
        if at < 0:
            return None
        found = _RESULT.fullmatch(line, at + 3)
        if found is not None and (end := line[:at].rstrip(b" ")).endswith(b")"):
            return _result(len(end) - 1, found)
    return None


def _result(at: int, found: re.Match[bytes]) -> CallResult:
    said, errno, note = found.group(1, 2, 3)
    if errno is not None:
        return CallResult(at, -1, errno.decode("ascii"), b"")
    # a register has fewer digits than a longer number, which is garbage
    known = not said.startswith(b"?") and len(said) <= _REGISTER
    value = int(said, 16 if said.startswith(b"0x") else 10) if known else None
    return CallResult(at, value, "", found.group() if note is not None else b"")


def arguments(text: bytes, limit: int) -> list[bytes]:
    """The first `limit` top-level arguments of `a, {b, c}, "d"`."""
    if _ALL_SIMPLE.fullmatch(text):
        return [argument.strip() for argument in text.split(b",", limit)[:limit]]
    return searched_arguments(text, limit)


def searched_arguments(text: bytes, limit: int) -> list[bytes]:
    """The first `limit` top-level arguments in a text of any shape."""
    found: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in (b"[", b"{", b"("):
            depth += 1
        elif word in (b"]", b"}", b")"):
            depth -= 1
        elif depth <= 0 and word.startswith(b","):
            found.append(text[start : token.start()].strip())
            if len(found) == limit:
                return found
            start = token.end()
    found.append(text[start:].strip())
    return found


def string(argument: bytes) -> tuple[bytes, bool] | None:
    """The bytes of a C string, and whether strace cut it short; `None` for NULL, an address, anything else."""
    whole = not argument.endswith(b"...")
    quoted = argument if whole else argument[:-3]
    if len(quoted) < 2 or quoted[:1] != b'"' or quoted[-1:] != b'"':  # noqa: PLR2004  the two quotes
        return None
    inner = quoted[1:-1]
    return (_ESCAPE.sub(_unescaped, inner) if b"\\" in inner else inner), not whole


def _unescaped(match: re.Match[bytes]) -> bytes:
    what: bytes = match.group(1)
    if what[:1].isdigit():
        return bytes((int(what, 8) & 0xFF,))
    if what[:1] == b"x" and len(what) > 1:
        return bytes((int(what[1:], 16),))
    return _LETTERS.get(what, what)


@functools.lru_cache(_KEPT)
def descriptor(argument: bytes) -> TracedDescriptor | None:
    """The descriptor that an argument is, `None` when it is none."""
    found = _DESCRIPTOR.fullmatch(argument)
    if found is None or len(found.group(1)) > 11:  # noqa: PLR2004  the digits of an int
        return None
    number = observed_syscalls.AT_FDCWD if found.group(1) == b"AT_FDCWD" else int(found.group(1))
    note = found.group(2)
    if note is None:
        return TracedDescriptor(number, "", other=False)
    path = _ESCAPE.sub(_unescaped, note).removesuffix(_DELETED)
    if not path.startswith(b"/"):
        return TracedDescriptor(number, "", other=True)
    return TracedDescriptor(number, os.fsdecode(path), other=False)


def flags(argument: bytes, architecture: observed_syscalls.Architecture) -> int:
    """The bits of those flags that matter to what a call means."""
    bits, nofollow = _bits(argument)
    return (bits | architecture.nofollow) & 0xFFFFFFFF if nofollow else bits & 0xFFFFFFFF


@functools.lru_cache(_KEPT)
def _bits(argument: bytes) -> tuple[int, bool]:
    bits, nofollow = 0, False
    for word in _WORDS.findall(argument.decode("ascii", "replace")):
        if word in _BITS:
            bits |= _BITS[word]
        elif word == "O_NOFOLLOW":
            nofollow = True
        elif word[0].isdigit() and len(word) <= _REGISTER:
            bits |= _number(word)
    return bits, nofollow


def _number(word: str) -> int:
    try:
        if word.startswith("0x"):
            return int(word, 16)
        return int(word, 8 if word.startswith("0") else 10)
    except ValueError:
        return 0
