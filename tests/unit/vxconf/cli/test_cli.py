"""The contract of the command line, held with real processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import REPOSITORY, Link, Tree, make_tree
from vxconf.schema import schema_files

Factory = Callable[[Tree], Path]

_OK = '[tasks.build.exec]\ncommand = "true"\n[tasks.build.exec.sandbox.allow]\nread = ["."]\n'
_BAD = '[tasks.build.exec]\ncommand = "true"\nsandbox.allow.network = ["https://pkg.test"]\n'


def _vx(*words: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "vxconf", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture
def root(workspace_factory: Factory) -> Path:
    return workspace_factory(
        {"apps/shop/vx.toml": _OK, "libs/bad/vx.toml": _BAD, "apps/shop/package.json": '{"name": "@acme/shop"}'}
    )


def test_a_healthy_file_exits_0_with_nothing_on_stdout_and_the_rule_that_chose_the_root(root: Path) -> None:
    done = _vx("check", "apps/shop/vx.toml", cwd=root)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"workspace {root}: it holds .vx/workspace.toml" in done.stderr


def test_the_whole_workspace_is_checked_from_anywhere_in_it(root: Path) -> None:
    done = _vx("check", cwd=root / "apps" / "shop")
    assert done.returncode == 1
    assert done.stdout.startswith("../../libs/bad/vx.toml:3:26: error VX103: ")
    assert "2 files checked, 1 error found" in done.stderr


def test_a_directory_is_checked_with_everything_below_it(root: Path) -> None:
    data = json.loads(_vx("check", "apps", "--format", "json", cwd=root).stdout)
    assert (data["files"], data["errors"]) == (1, 0)
    data = json.loads(_vx("check", ".", "--format", "json", cwd=root).stdout)
    assert (data["files"], data["errors"]) == (2, 1)


def test_the_json_form_has_the_keys_of_the_contract(root: Path) -> None:
    done = _vx("check", "--format=json", "libs/bad/vx.toml", "apps/shop/vx.toml", cwd=root)
    data = json.loads(done.stdout)
    assert {key: data[key] for key in ("files", "errors", "warnings")} == {"files": 2, "errors": 1, "warnings": 0}
    (found,) = data["diagnostics"]
    assert (found["file"], found["line"], found["column"], found["severity"]) == ("libs/bad/vx.toml", 3, 26, "error")
    assert found["path"] == "tasks.build.exec.sandbox.allow.network[0]"
    assert data["workspaces"] == [
        {"root": str(root), "rule": "workspace.toml", "reason": "it holds .vx/workspace.toml"}
    ]


def test_a_file_named_twice_counts_once(root: Path) -> None:
    data = json.loads(_vx("check", "--format=json", "libs/bad/vx.toml", "./libs/bad/vx.toml", cwd=root).stdout)
    assert (data["files"], data["errors"]) == (1, 1)


def test_sarif_and_annotations_name_the_same_place(root: Path) -> None:
    log = json.loads(_vx("check", "--format", "sarif", cwd=root).stdout)
    (result,) = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startColumn"] == 26
    done = _vx("check", "--format", "github", cwd=root)
    assert done.stdout.startswith("::error file=libs/bad/vx.toml,line=3,endLine=3,col=26,")
    assert (done.returncode, done.stderr) == (1, "")


def test_strict_turns_a_warning_into_a_refusal(workspace_factory: Factory) -> None:
    root = workspace_factory({"vx.toml": '[tasks.a.exec]\ncommand = "x"\nsandbox.allow.read = ["scr/*"]\n'})
    assert _vx("check", cwd=root).returncode == 0
    done = _vx("check", "--strict", cwd=root)
    assert done.returncode == 1
    assert "error VX403" in done.stdout


def test_standard_input_is_checked_as_the_file_it_stands_for(root: Path) -> None:
    done = _vx("check", "--stdin-filename", "apps/shop/vx.toml", cwd=root, input=_BAD)
    assert done.returncode == 1
    assert done.stdout.startswith("apps/shop/vx.toml:3:26: error VX103")
    assert (root / "apps/shop/vx.toml").read_text() == _OK
    assert _vx("check", "--stdin-filename", "new/vx.json", cwd=root, input="{}").returncode == 0


def test_a_file_that_does_not_exist_is_a_problem_of_that_file(root: Path) -> None:
    done = _vx("check", "gone/vx.toml", cwd=root)
    assert done.returncode == 1
    assert done.stdout.startswith("gone/vx.toml:1:1: error VX001: the file does not exist")


def test_a_platform_filters_what_is_said_of_the_other(workspace_factory: Factory) -> None:
    root = workspace_factory({"vx.toml": '[tasks.a.exec]\ncommand = "x"\nsandbox.allow.systemInfo = ["hw.ncpu"]\n'})
    told = {
        name: [d["code"] for d in json.loads(_vx("check", "--format=json", *flags, cwd=root).stdout)["diagnostics"]]
        for name, flags in (("linux", ["--platform", "linux"]), ("macos", ["--platform", "macos"]), ("all", []))
    }
    assert told["linux"] == ["VX401"]
    assert "VX401" not in told["macos"]
    assert told["all"] == ["VX401"]


@pytest.mark.parametrize(
    "words", [("-C", "apps/shop", "check"), ("check", "-C", "apps/shop"), ("-C", "apps", "check", "-C", "shop")]
)
def test_a_directory_can_be_given_before_and_after_the_command(root: Path, words: tuple[str, ...]) -> None:
    done = _vx(*words, "vx.toml", cwd=root)
    assert done.returncode == 0
    assert "1 file checked" in done.stderr


@pytest.mark.parametrize("words", [("-C", "apps/shop", "resolve", "build"), ("resolve", "build", "-C", "apps/shop")])
def test_any_name_can_be_printed_by_the_other_commands(root: Path, words: tuple[str, ...]) -> None:
    assert json.loads(_vx(*words, cwd=root).stdout)["project"] == str(root / "apps/shop")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("chekc",), "check"),
        (("check", "--formt", "json"), "--format"),
        (("check", "--format", "yaml"), "sarif"),
        (("check", "--platform", "windows"), "macos"),
        (("check", "--format"), "--format"),
        (("-C", "nowhere", "check"), "nowhere"),
        (("-C", "nowhere", "doctor"), "nowhere"),
        (("resolve",), "TASK"),
        (("resolve", "apps/shop#biuld"), "did you mean build?"),
        (("resolve", "app/shop#build"), "apps/shop"),
        (("resolve", "@acme/shpo#build"), "@acme/shop"),
        (("resolve", "build"), "apps/shop#build"),
        (("run", "apps/shop#build", "--timeout", "0"), "--timeout"),
        (("run", "apps/shop#build", "--timeout", "nan"), "--timeout"),
    ],
)
def test_wrong_usage_exits_2_and_names_what_was_probably_meant(root: Path, words: tuple[str, ...], says: str) -> None:
    done = _vx(*words, cwd=root)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["check"], ["run", "x"], ["init"]])
def test_a_working_directory_that_is_gone_is_wrong_usage(tmp_path: Path, words: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", program, sys.executable, "-P", "-m", "vxconf", *words],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: the working directory is gone: go to another one\n"


def test_a_task_has_three_names(root: Path) -> None:
    found = {
        _vx("resolve", "apps/shop#build", cwd=root).stdout,
        _vx("resolve", "@acme/shop#build", cwd=root / "libs").stdout,
        _vx("resolve", "build", cwd=root / "apps" / "shop").stdout,
    }
    assert len(found) == 1
    jsonschema.validate(json.loads(found.pop()), schema_files.load("resolved"))


def test_a_refused_task_is_not_resolved(root: Path) -> None:
    done = _vx("resolve", "libs/bad#build", cwd=root)
    assert (done.returncode, done.stdout) == (1, "")
    assert "VX103" in done.stderr


def test_the_schemas_are_printed_as_they_are(tmp_path: Path) -> None:
    assert json.loads(_vx("schema", cwd=tmp_path).stdout) == schema_files.load("vx")
    assert json.loads(_vx("schema", "--resolved", cwd=tmp_path).stdout) == schema_files.load("resolved")


@pytest.mark.parametrize("taken", ["vx.toml", "vx.json", "link"])
def test_init_writes_a_file_that_checks_and_never_overwrites_one(tmp_path: Path, home: Path, taken: str) -> None:
    assert home.is_dir()
    project = make_tree(tmp_path / "new", {"x": ""})
    assert _vx("init", cwd=project).returncode == 0
    assert (project / "vx.toml").read_text().startswith("#:schema ")
    done = _vx("check", "--strict", cwd=project)
    assert (done.returncode, done.stdout) == (0, "")
    other = make_tree(tmp_path / "taken", {"vx.toml": Link("nowhere")} if taken == "link" else {taken: "mine"})
    done = _vx("init", cwd=other)
    assert done.returncode == 1
    assert taken.replace("link", "vx.toml") in done.stderr
    assert not (tmp_path / "taken" / "nowhere").exists()
    assert taken == "link" or (other / taken).read_text() == "mine"


def test_the_version_and_the_help_are_printed(tmp_path: Path) -> None:
    assert _vx("--version", cwd=tmp_path).stdout == "vxconf 0.1.0\n"
    for words in (["--help"], ["check", "--help"], ["run", "-h"]):
        done = _vx(*words, cwd=tmp_path)
        assert done.returncode == 0
        assert done.stdout.startswith("Usage: vxconf")


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    done = _vx("check", "--format", "json", cwd=root)
    read, write = os.pipe()
    os.close(read)
    try:
        closed = subprocess.run(
            [sys.executable, "-m", "vxconf", "check", "--format", "json"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    assert done.returncode == 1
    assert closed.returncode == 141
    assert closed.stderr == ""


_MISTAKEN = """
import sys, vxconf.workspace.check_files as c
def boom(*a): raise RuntimeError('planted\\nsecond line')
c.check_project = boom
from vxconf.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_unforeseen_mistake_is_one_line_and_its_traceback_is_for_whoever_asks(root: Path) -> None:
    program = _MISTAKEN
    for debug, traceback in (("", False), ("1", True)):
        done = subprocess.run(
            [sys.executable, "-c", program, "check"],
            cwd=root,
            # no file can be written into this home
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "VXCONF_DEBUG": debug, "HOME": os.devnull},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "VXCONF_DEBUG=1" in done.stderr
        assert ("Traceback" in done.stderr) is traceback
        assert traceback or done.stderr.count("\n") == 1


def test_an_unforeseen_mistake_is_written_down_for_its_user_alone(root: Path, home: Path) -> None:
    for _ in range(12):
        done = subprocess.run(
            [sys.executable, "-c", _MISTAKEN, "check", "secret-word/vx.toml"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "VXCONF_DEBUG": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stderr.count("\n") == 1
    report = Path(done.stderr.strip().rpartition("written down in ")[2])
    text = report.read_text(encoding="utf-8")
    assert "RuntimeError: planted\nsecond line" in text
    assert "secret-word" not in text
    assert report.is_relative_to(home)
    assert (report.stat().st_mode & 0o777, report.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert len(list(report.parent.iterdir())) == 10


def test_a_machine_without_memory_is_no_mistake_of_ours(root: Path) -> None:
    program = (
        "import sys, vxconf.workspace.check_files as c\n"
        "c.check_project = lambda *_: bytearray(1 << 62)\n"
        "from vxconf.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: no memory is left, free some or raise the limit of it (ulimit -v)\n"


def test_names_that_are_no_text_and_no_utf8_locale_are_printed_all_the_same(workspace_factory: Factory) -> None:
    root = workspace_factory({"p/vx.toml": _BAD})
    os.rename(os.fsencode(root / "p"), os.fsencode(root) + b"/p\xff \xe2\x98\x83")
    for form in ("text", "json", "sarif", "github"):
        done = _vx("check", "--format", form, cwd=root, env={"LC_ALL": "C", "PYTHONUTF8": "0"})
        assert done.returncode == 1
        assert "VX103" in done.stdout


def test_colour_is_for_a_terminal_that_wants_it(root: Path) -> None:
    def shown(**env: str) -> bytes:
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "vxconf", "check", "libs/bad/vx.toml"],
            cwd=root,
            env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "PYTHONPATH": str(REPOSITORY), **env},
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        ):
            os.close(theirs)
            found = b""
            try:
                while chunk := os.read(ours, 4096):
                    found += chunk
            except OSError:
                # a closed terminal answers a write with EIO
                pass
        os.close(ours)
        return found

    assert b"\x1b[31m" in shown(TERM="xterm")
    assert b"\x1b" not in shown(TERM="xterm", NO_COLOR="1")
    assert b"\x1b" not in shown(TERM="dumb")


def test_an_interrupt_is_130(root: Path) -> None:
    program = "import os, signal\nos.kill(os.getppid(), signal.SIGINT)\nimport time; time.sleep(1)"
    (root / "apps" / "shop" / "stop.py").write_text(program)
    code = (
        "import sys, os, signal, vxconf.workspace.check_files as c\n"
        "c.check_project = lambda *a: os.kill(os.getpid(), signal.SIGINT) or ()\n"
        "from vxconf.__main__ import main\nsys.exit(main(['check']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize(("command", "status"), [("run", 125), ("explain", 1), ("resolve", 1)])
def test_a_file_that_does_not_parse_is_what_is_told_of_its_tasks(root: Path, command: str, status: int) -> None:
    (root / "apps/shop/vx.toml").write_text("oops\n", encoding="utf-8")
    done = _vx(command, "apps/shop#build", cwd=root)
    assert done.returncode == status
    assert "apps/shop/vx.toml:1:5: error VX004" in done.stdout + done.stderr
    assert "1 | oops" in done.stdout + done.stderr
