"""A check with closed or full streams, or of files that are no text, ends with a status and no traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, Link, Tree

# each starts the program
pytestmark = pytest.mark.slow

Factory = Callable[[Tree], Path]

_OK = '[tasks.a.exec]\ncommand = "true"\n'


def _vx(*words: str, cwd: Path, streams: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-W", "error", "-m", "vxconf", *words]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {streams}', "sh", *program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.fixture
def root(workspace_factory: Factory) -> Path:
    return workspace_factory({"good/vx.toml": _OK, "bad/vx.toml": "[tasks\n"})


@pytest.mark.parametrize(("project", "status"), [("good", 0), ("bad", 1)])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_changes_no_verdict(root: Path, project: str, status: int, closed: str) -> None:
    done = _vx("check", f"{project}/vx.toml", cwd=root, streams=closed)
    assert (done.returncode, done.stderr if "2>" in closed else "") == (status, "")


def test_output_that_cannot_be_written_is_reported_and_is_no_pass(root: Path) -> None:
    done = _vx("check", "--format", "json", "good/vx.toml", cwd=root, streams=">/dev/full")
    assert (done.returncode, done.stderr) == (2, "error: standard output cannot be written: no space left on device\n")


def test_output_that_cannot_be_written_is_reported_where_typer_reads_the_words_too(root: Path) -> None:
    done = _vx("schema", cwd=root, streams=">/dev/full")
    assert (done.returncode, done.stderr) == (2, "error: standard output cannot be written: no space left on device\n")


def test_a_summary_nobody_can_be_told_changes_no_verdict(root: Path) -> None:
    assert _vx("check", "good/vx.toml", cwd=root, streams="2>/dev/full").returncode == 0
    assert _vx("check", "bad/vx.toml", cwd=root, streams="2>/dev/full").returncode == 1


def test_a_text_that_cannot_be_read_is_no_empty_one(root: Path) -> None:
    done = _vx("check", "--stdin-filename", "good/vx.toml", cwd=root, streams="<&-")
    assert done.returncode == 2
    assert done.stderr == "error: standard input is closed: pipe the text into it, or name the file alone\n"


def test_no_name_is_no_pass(root: Path) -> None:
    assert _vx("check", "", cwd=root).returncode == 1


_NOT_TOML = '[tasks.a.exec]\ncommand = "x\0y"\n'
_KINDS: list[tuple[str, str | bytes | Link | None, str]] = [
    ("a directory", None, "VX001: the file is a directory"),
    ("nothing", Link("nowhere"), "VX001: the file does not exist"),
    ("a loop", Link("vx.toml"), "VX001: the file cannot be read"),
    ("a device", Link("/dev/zero"), "VX001: the file is a device"),
    ("another encoding", _OK.encode("utf-16"), "VX003: the file is UTF-16"),
    ("no encoding", b"\xc3\x28", "VX003: byte 0xc3 is not UTF-8"),
    ("a NUL", _NOT_TOML, "VX004: not TOML"),
    ("a key twice", _OK + 'command = "y"\n', "VX005: "),
    ("brackets", "a = " + "[" * 50_000, "VX006: "),
    ("a long key", ".".join("a" * 50_000) + " = 1\n", "VX006: "),
    ("a long number", "a = " + "1" * 50_000, "VX008: "),
    ("too much", "#" * (9 << 20), "VX002: "),
]


@pytest.mark.parametrize(("content", "says"), [row[1:] for row in _KINDS], ids=[row[0] for row in _KINDS])
def test_a_file_of_another_kind_is_one_diagnostic(
    workspace_factory: Factory, content: str | bytes | Link | None, says: str
) -> None:
    root = workspace_factory({"p/vx.toml": content, "q/vx.toml": _OK})
    for words in (("p/vx.toml",), ("p",), ()):
        done = _vx("check", *words, cwd=root)
        assert done.returncode == 1
        assert done.stdout.startswith("p/vx.toml:")
        assert f"error {says}" in done.stdout
        assert done.stderr.endswith(", 1 error found\n")


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_nobody_waits_for_a_pipe_or_a_socket(root: Path, kind: str) -> None:
    place = root / "good" / "vx.toml"
    place.unlink()
    with socket.socket(socket.AF_UNIX) as end:
        if kind == "pipe":
            os.mkfifo(place)
        else:
            here = os.open(place.parent, os.O_RDONLY)
            end.bind(f"/proc/self/fd/{here}/vx.toml")  # a socket's path has 107 bytes at most
            os.close(here)
        done = _vx("check", "good/vx.toml", cwd=root)
    assert done.returncode == 1
    assert "VX001: the file is a" in done.stdout


@pytest.mark.parametrize(
    "text",
    [b"\xef\xbb\xbf" + _OK.encode(), _OK.replace("\n", "\r\n").encode(), b""],
    ids=["mark", "line ends", "empty"],
)
def test_marks_and_line_ends_are_no_problem(workspace_factory: Factory, text: bytes) -> None:
    root = workspace_factory({"p/vx.toml": text, "real.toml": text, "q/vx.toml": Link("../real.toml")})
    assert _vx("check", cwd=root).stderr.endswith("2 files checked, no problem found\n")


def test_a_file_that_goes_away_after_it_was_found_is_a_problem(root: Path) -> None:
    program = (
        "import os, sys\nfrom vxconf.cli.commands import check\nfrom vxconf.__main__ import main\n"
        "finish = check.CheckCommand.finish\n"
        "def gone(self):\n    os.unlink('good/vx.toml')\n    finish(self)\n"
        "check.CheckCommand.finish = gone\n"
        "sys.exit(main(['check', 'good/vx.toml']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "VX001: the file does not exist" in done.stdout


@pytest.mark.slow
def test_a_file_of_thousands_of_tasks_with_missing_paths_is_checked(workspace_factory: Factory) -> None:
    tasks = "".join(f'[tasks.t{i}.exec]\ncommand = "x"\nsandbox.allow.read = ["a{i}"]\n' for i in range(2000))
    done = _vx("check", cwd=workspace_factory({"p/vx.toml": tasks}))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "1 file checked, 2000 warnings found")
