"""A report after a command's own output: on a line of its own, and on a terminal in letters and a colour of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

_PROGRAM = """
import os, sys
from vxconf.cli.after_output import AfterOutput
after = AfterOutput()
for stream, text in {said!r}:
    after.heard(stream, lambda chunk, stream=stream: os.write(stream, chunk))(text)
after.err("shop#task: 1 violation\\n")
after.err("  more\\n")
sys.stderr.flush()
"""
_REPORT = b"shop#task: 1 violation\n  more\n"
_PLAIN = b"\x1b\\\x1b(B\x0f\x1b[0m"


def _said(*said: tuple[int, bytes], stderr: int = subprocess.STDOUT, stdout: int = subprocess.PIPE) -> bytes:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(said=said)], cwd=REPOSITORY, stdout=stdout, stderr=stderr, check=True
    )
    return done.stdout if stderr == subprocess.STDOUT else done.stderr


@pytest.mark.parametrize(
    ("output", "begins"),
    [
        (b"", b""),
        (b"whole\n", b""),
        (b"whole\r\n", b""),
        (b"red\n\x1b[0m", b""),
        (b"\x1b[31mred\n\x1b[1;31m", b""),
        (b"half", b"\n"),
        (b"half\x1b[0m", b"\n"),
        (b"over\n\x1b[5C", b"\n"),
    ],
)
def test_a_report_begins_on_a_line_of_its_own(output: bytes, begins: bytes) -> None:
    assert _said((1, output)) == output + begins + _REPORT
    # cut anywhere, the same
    assert _said(*((1, output[at : at + 1]) for at in range(len(output)))) == output + begins + _REPORT


def test_output_that_goes_elsewhere_leaves_no_empty_line_before_a_report() -> None:
    assert _said((1, b"half"), stderr=subprocess.PIPE) == _REPORT
    assert _said((2, b"half"), stderr=subprocess.PIPE) == b"half\n" + _REPORT


@pytest.mark.parametrize("left", [b"\x1b[8;41mhidden", b"\x1b]0;a title without end", b"\x1bP", b"\x0e", b"\x1b(0\n"])
def test_a_terminal_shows_a_report_whatever_the_command_left(left: bytes) -> None:
    ours, theirs = os.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(said=[(1, left)])],
            cwd=REPOSITORY,
            stdout=theirs,
            stderr=theirs,
            check=True,
        )
        os.close(theirs)
        shown = b""
        while not shown.endswith(b"more\r\n"):
            shown += os.read(ours, 1 << 16)
    finally:
        os.close(ours)
    before, _, report = shown.partition(_PLAIN)
    assert (before.replace(b"\r\n", b"\n"), report.lstrip(b"\r\n").replace(b"\r\n", b"\n")) == (left, _REPORT)
