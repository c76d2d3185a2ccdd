"""`vxconf run --fix` through real processes: the file it leaves lets the next run pass."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Tree

Factory = Callable[[Tree], Path]

_COMMAND = "cat src/x notes.md; cat optional.ini; mkdir -p gen && echo a > gen/a; echo b > log.txt; true"
_HEAD = f"[tasks.t.exec]\ncommand = {json.dumps(_COMMAND)}\n"
_BLOCKS = {
    "headers": f"{_HEAD}\n[tasks.t.exec.sandbox.allow]\nread = ['src/'] # sources\n\n# the end\n",
    "dotted": f"{_HEAD}sandbox.allow.read = [\n  'src/',\n]\n",
    "inline": f"{_HEAD}sandbox = {{ allow = {{ read = ['src/'] }} }}\n",
    "cached": f"{_HEAD}sandbox.allow.read = ['src/']\n\n[tasks.t.cache]\noutputs.files = ['gen/**']\n",
}


def _run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "vxconf", *words]
    return subprocess.run(
        command, cwd=project, env=env, capture_output=True, check=False, text=True, stdin=subprocess.DEVNULL
    )


def _project(make: Factory, text: str, name: str = "vx.toml") -> Path:
    return make({f"p/{name}": text, "p/src/x": "x\n", "p/notes.md": "notes\n"}) / "p"


@pytest.mark.parametrize("shape", _BLOCKS)
def test_a_failed_run_is_fixed_and_the_next_one_passes(workspace_factory: Factory, shape: str) -> None:
    project = _project(workspace_factory, _BLOCKS[shape])
    failed = _run(project, "run", "t", "--fix")
    assert failed.returncode == 1, failed.stderr
    for entry, field in (("notes.md", "allow.read"), ("gen", "allow.write"), ("log.txt", "allow.write")):
        assert f': added "{entry}" to tasks.t.exec.sandbox.{field}' in failed.stderr
    assert ': added "optional.ini" to tasks.t.exec.sandbox.ignore.read' in failed.stderr
    assert ": add " not in failed.stderr
    assert (': added "notes.md" to tasks.t.cache.inputs.files' in failed.stderr) is (shape == "cached")
    assert _run(project, "check").returncode == 0
    passed = _run(project, "run", "t", "--fix")
    assert (passed.returncode, passed.stdout) == (0, "x\nnotes\n"), passed.stderr
    assert "added" not in passed.stderr
    assert ((project / "gen/a").read_text(), (project / "log.txt").read_text()) == ("a\n", "b\n")


def test_the_json_has_what_was_changed_beside_what_was_suggested(workspace_factory: Factory) -> None:
    text = json.dumps({"tasks": {"t": {"exec": {"command": "cat notes.md; true", "sandbox": {}}}}}, indent=2)
    project = _project(workspace_factory, text, "vx.json")
    data = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert data["fix"]["allow"]["read"] == ["notes.md"]
    assert data["unfixed"] is None
    where = {"file": "vx.json", "line": 8, "path": "tasks.t.exec.sandbox.allow.read", "entry": "notes.md"}
    assert data["changes"] == [where]
    assert data["violations"][0]["class"] == "grant"
    again = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert (again["exitCode"], again["changes"], again["unfixed"]) == (0, [], None)


def test_a_failure_that_no_entry_cures_writes_nothing_and_says_so(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _HEAD.replace(_COMMAND, "exit 3") + "sandbox = {}\n")
    before = (project / "vx.toml").read_bytes()
    done = _run(project, "run", "t", "--fix")
    assert done.returncode == 3
    assert "nothing was written: nothing was denied: exit 3 is the command's own" in done.stderr
    assert (project / "vx.toml").read_bytes() == before


@pytest.mark.parametrize("outputs", ["", "cache.outputs.files = ['build/**']\n"])
@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("mkdir build && echo 1 > build/1", True),
        ("mkdir build && mkdir build/b && echo 1 > build/b/x", True),
        ("mkdir -p build && echo 1 > build/1 && rm -r build", False),
    ],
)
def test_a_directory_the_task_makes_is_granted_so_that_it_can(
    workspace_factory: Factory, command: str, left: bool, outputs: str
) -> None:
    text = f"[tasks.t]\n{outputs}exec.command = {json.dumps(command)}\nexec.sandbox = {{}}\n"
    project = _project(workspace_factory, text)
    failed = _run(project, "run", "t", "--fix")
    assert ': added "build" to tasks.t.exec.sandbox.allow.write' in failed.stderr, failed.stderr
    passed = _run(project, "run", "t")
    assert passed.returncode == 0, passed.stderr
    assert (project / "build").exists() is left


def test_a_name_other_programs_execute_is_written_into_no_file(workspace_factory: Factory) -> None:
    command = "echo 1 > .bashrc; mkdir .vscode; true"
    project = _project(workspace_factory, _HEAD.replace(json.dumps(_COMMAND), json.dumps(command)) + "sandbox = {}\n")
    data = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert [violation["class"] for violation in data["violations"]] == ["tool-fault", "tool-fault"]
    assert ([one["target"] for one in data["fix"]["byHand"]], data["changes"]) == (
        [str(project / name) for name in (".bashrc", ".vscode")],
        [],
    )
    assert data["unfixed"]["message"] == "no entry would let the task pass"


_CLOSED = (
    "echo x >> vx.toml; echo '{}' > vx.json; cat .env sub/.env.local; ls etc; echo 1 > node_modules/.bin/tsc;"
    " cat .git/HEAD; echo 1 > conf/a; echo 1 > conf/b; echo 1 > out.txt; true"
)


def test_a_fix_writes_what_is_harmless_and_says_of_each_other_grant_why_not(workspace_factory: Factory) -> None:
    text = _HEAD.replace(json.dumps(_COMMAND), json.dumps(_CLOSED)) + "sandbox = {}\n"
    extra = {
        f"p/{name}": "S\n"
        for name in (".env", "sub/.env.local", "conf/.env", "etc/in/.env", ".git/HEAD", "node_modules/.bin/x")
    }
    project = workspace_factory({"p/vx.toml": text, **extra}) / "p"
    done = _run(project, "run", "t", "--fix", "--format", "json")
    data = json.loads(done.stdout)
    written = sorted((one["path"].rpartition("sandbox.")[2], one["entry"]) for one in data["changes"])
    assert written == [("allow.write", name) for name in ("conf/a", "conf/b", "out.txt")], done.stderr
    told = {os.path.relpath(one["target"], project): one["reason"] for one in data["fix"]["byHand"]}
    for name, reason in (
        ("vx.toml", "says what tasks may do"),
        ("vx.json", "says what tasks may do"),
        (".env", "secrets"),
        ("sub/.env.local", "secrets"),
        ("etc", "holds in/.env"),
        ("node_modules/.bin/tsc", "programs they start"),
        (".git/HEAD", "repository's data"),
    ):
        assert reason in told[name], (name, told)
    again = _run(project, "run", "t", "--fix")
    assert "S" not in again.stdout
    assert "never suggested: " in again.stderr
    assert "by hand" in again.stderr


def test_the_whole_project_is_written_into_no_file(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _HEAD.replace(json.dumps(_COMMAND), '"chmod 755 .; true"') + "sandbox = {}\n")
    data = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert (data["exitCode"], data["changes"], data["fix"]["withheld"]) == (1, [], [str(project)])
    assert "is the project itself" in data["fix"]["byHand"][0]["reason"]


_DIALS = "python3 -c 'import socket; socket.create_connection((\"registry.test\", 443))'; cat notes.md; true"


def test_a_host_is_shown_and_written_with_a_flag_of_its_own_alone(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _HEAD.replace(json.dumps(_COMMAND), json.dumps(_DIALS)) + "sandbox = {}\n")
    data = json.loads(_run(project, "run", "t", "--fix", "--format", "json").stdout)
    assert [change["entry"] for change in data["changes"]] == ["notes.md"]
    (host,) = data["unwrittenNetwork"]
    assert "registry.test" in host
    shown = _run(project, "run", "t", "--fix")
    assert f'not written: "{host}"' in shown.stderr
    assert "--fix-network" in shown.stderr
    assert "registry" not in (project / "vx.toml").read_text().partition("sandbox = ")[2]
    given = json.loads(_run(project, "run", "t", "--fix-network", "--format", "json").stdout)
    assert [change["entry"] for change in given["changes"]] == [host]
    assert given["unwrittenNetwork"] == []


@pytest.mark.parametrize(("typed", "written"), [("y\n", True), ("\n", False), ("no\n", False)])
def test_a_host_is_written_after_a_yes_at_the_terminal_and_what_was_typed_before_is_none(
    workspace_factory: Factory, typed: str, written: bool
) -> None:
    command = f"read -r early; {_DIALS}"
    project = _project(workspace_factory, _HEAD.replace(json.dumps(_COMMAND), json.dumps(command)) + "sandbox = {}\n")
    ours, theirs = os.openpty()
    env = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"}
    os.write(ours, b"go\ny\n")
    with subprocess.Popen(
        [sys.executable, "-m", "vxconf", "run", "t", "--fix"],
        cwd=project,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 4096)
        os.write(ours, typed.encode())
        with contextlib.suppress(OSError):  # the terminal is gone with the process
            while chunk := os.read(ours, 4096):
                said += chunk
    os.close(ours)
    assert ("registry" in (project / "vx.toml").read_text().partition("sandbox = ")[2]) is written, said.decode()
    assert (b"not written: " in said) is not written


def test_without_the_flag_nothing_is_written(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _BLOCKS["headers"])
    done = _run(project, "run", "t")
    assert done.returncode == 1
    assert '    read = ["notes.md"]' in done.stderr
    assert (project / "vx.toml").read_text() == _BLOCKS["headers"]


def test_no_link_has_a_policy_or_a_secret_granted_under_another_name(workspace_factory: Factory) -> None:
    command = (
        "for n in 1 2; do echo '# evil' >> plain; echo '# evil' >> sub/deep; done; cat settings; echo x > log.txt; true"
    )
    project = _project(workspace_factory, f"[tasks.t.exec]\ncommand = {json.dumps(command)}\nsandbox = {{}}\n")
    (project / ".env.local").write_text("SECRET=1\n")
    (project / "sub").mkdir()
    for link, target in (("plain", "vx.toml"), ("sub/deep", "../plain"), ("settings", ".env.local")):
        (project / link).symlink_to(target)
    done = [_run(project, "run", "t", "--fix") for _ in range(2)]
    text = (project / "vx.toml").read_text()
    assert ("\n# evil" in text, "SECRET" in done[1].stdout) == (False, False), done[1].stderr
    assert not any(f'"{name}"' in text for name in ("plain", "sub/deep", "settings")), text
    assert '"log.txt"' in text
    assert "vx.toml, which says what tasks may do" in done[1].stderr


def test_a_line_that_a_link_leads_to_a_policy_is_refused(workspace_factory: Factory) -> None:
    text = "[tasks.t.exec]\ncommand = 'echo >> plain'\nsandbox.allow.write = ['plain']\n"
    project = _project(workspace_factory, text)
    (project / "plain").symlink_to("vx.toml")
    done = _run(project, "run", "t")
    assert done.returncode == 125
    assert "leads through a link into" in done.stderr
    assert (project / "vx.toml").read_text() == text


_TWO = """[tasks.a.exec]
command = "cat notes.md"
sandbox = {}
[tasks.b.exec]
command = "cat src/x && echo x > log.txt"
sandbox.allow.read = []
[tasks.c.exec]
command = "true"
sandbox = {}
"""


def test_several_tasks_are_fixed_at_once_in_one_file_and_in_others(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {"p/vx.toml": _TWO, "p/src/x": "x\n", "p/notes.md": "n\n", "q/vx.toml": _TWO, "q/src/x": "", "q/notes.md": ""}
    )
    data = json.loads(_run(root / "p", "run", "a", "b", "c", "q#b", "--fix", "--format", "json").stdout)
    changed = {one["task"]: [change["entry"] for change in one["changes"]] for one in data["tasks"]}
    assert changed == {"p#a": ["notes.md"], "p#b": ["src/x"], "p#c": [], "q#b": ["src/x"]}
    assert [one["unfixed"] for one in data["tasks"]] == [None] * 4
    told = _run(root / "p", "run", "a", "b", "c", "q#b", "--fix")
    assert told.stderr.count('vx.toml:7: added "log.txt" to tasks.b.exec.sandbox.allow.write') == 2, told.stderr
    assert _run(root / "p", "check").returncode == 0
    assert _run(root / "p", "run", "a", "b", "c", "q#b").returncode == 0


def test_several_tasks_with_nothing_to_write_say_so(workspace_factory: Factory) -> None:
    project = _project(workspace_factory, _TWO.replace("cat notes.md", "exit 3"))
    done = _run(project, "run", "a", "c", "--fix")
    assert done.returncode == 1
    assert "nothing was denied: exit 3 is the command's own" in done.stderr
