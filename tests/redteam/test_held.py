"""Held directories, where nothing serves granted names, against a task that reaches beside them and a host that edits.

A mount over an entry goes when the host replaces the entry, so from then on the observer alone answers.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_tree
from tests.redteam.conftest import Box, shown, violated
from tests.redteam.test_host_edits import save
from tests.redteam.test_names import state

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox import RunResult


@pytest.fixture
def held(box: Box) -> Box:
    """`code.py` may be read and `out.txt` is granted, in a directory that holds more."""
    make_tree(box.project, {"code.py": "code\n", "out.txt": "old\n"})
    box.observer = "notify"
    box.read = ("lib/", "code.py")
    box.write = ("out.txt", "out/")
    return box


def without(found: dict[str, tuple[int, int, bytes]], *names: str) -> dict[str, tuple[int, int, bytes]]:
    return {path: told for path, told in found.items() if path.split("/")[0] not in names}


def replaced(project: Path) -> None:
    save(project / "secret.txt", "the secret anew\n")
    save(project / "code.py", "code anew\n")


@pytest.mark.parametrize("edited", [False, True], ids=["as it was", "replaced by the host"])
def test_nothing_beside_a_name_is_read_or_changed(held: Box, edited: bool) -> None:
    program = held.program("beside", "secret.txt", "code.py")
    wait = "echo ready; until [ -e out/go ]; do sleep 0.02; done; "
    before: dict[str, tuple[int, int, bytes]] = {}

    def ready(chunk: bytes) -> None:
        if b"ready" in chunk:
            if edited:
                replaced(held.project)
            before.update(state(held.project))
            (held.project / "out/go").touch()

    result = held.run(wait + program, on_stdout=ready)
    assert result.command_exit_code == 0, shown(result)
    assert b"the " not in result.stdout, shown(result)
    told = json.loads(result.stdout.removeprefix(b"ready\n"))
    assert told.pop("out.txt") == "changed\n"
    closed = {"ENOENT", "EROFS", "EXDEV", "EBUSY", "EACCES", "EPERM"}
    assert {label: answer for label, answer in told.items() if answer not in closed} == {}
    assert without(state(held.project), "out.txt", "out") == without(before, "out.txt", "out")
    assert (result.exit_code, result.trace) == (1, "complete"), shown(result)
    found = violated(result, held.project)
    assert {("read", "secret.txt"), ("write", "secret.txt"), ("write", "code.py")} <= found, shown(result)
    # a hard link of what is laid over cannot be made, whatever it would be called
    assert {path for _, path in found} - {"second"} == {"secret.txt", "code.py"}


def test_a_task_that_races_itself_finds_what_is_laid_over(held: Box) -> None:
    told, result = held.attack("beside", "secret.txt", "code.py", "race")
    assert set(told["raced"]) <= {"changed\n"}, shown(result)
    assert result.exit_code == 1


def meanwhile(box: Box, before: str, edit: object, after: str) -> RunResult:
    """Runs `before`, has the host edit, runs `after`."""

    def ready(chunk: bytes) -> None:
        if b"ready" in chunk:
            assert callable(edit)
            edit()
            (box.project / "out/go").touch()

    return box.run(f"{before}; echo ready; until [ -e out/go ]; do sleep 0.02; done; {after}; true", on_stdout=ready)


def test_what_the_host_makes_meanwhile_is_neither_seen_nor_touched_nor_counted(held: Box) -> None:
    project = held.project

    def edit() -> None:
        make_tree(project, {"fresh.txt": "the fresh one\n", "fresh/deep": "the deep one\n"})
        save(project / "out.txt", "saved\n")

    result = meanwhile(held, "echo x > .stage && mv .stage out.txt", edit, "cat out.txt; echo mine > out.txt")
    assert (result.exit_code, result.violations) == (0, ()), shown(result)
    assert b"saved" in result.stdout
    assert state(project).keys() >= {"fresh.txt", "fresh/deep"}
    assert (project / "out.txt").read_text() == "mine\n"


def test_looking_for_what_the_host_makes_meanwhile_finds_nothing_and_counts(held: Box) -> None:
    project = held.project

    def edit() -> None:
        make_tree(project, {"fresh.txt": "the fresh one\n", "fresh/deep": "the deep one\n"})

    attacks = "cat fresh.txt fresh/deep; echo x > fresh.txt; rm -rf fresh fresh.txt; mv fresh out/f; ln fresh.txt l"
    result = meanwhile(held, "true", edit, attacks)
    assert b"the " not in result.stdout, shown(result)
    assert {("read", "fresh.txt"), ("read", "fresh/deep")} <= violated(result, project), shown(result)
    assert (project / "fresh.txt").read_text() == "the fresh one\n"
    assert (project / "fresh/deep").read_text() == "the deep one\n"


@pytest.mark.parametrize("task", ["rm stage", "mv stage out.txt", "mv stage out/elsewhere"])
def test_a_name_the_task_gave_up_is_the_hosts_when_the_host_takes_it(held: Box, task: str) -> None:
    project = held.project

    def edit() -> None:
        (project / "stage").write_text("the host's\n")

    result = meanwhile(held, f"echo x > stage; {task}", edit, "cat stage; echo x > stage")
    assert b"the " not in result.stdout, shown(result)
    assert ("read", "stage") in violated(result, project), shown(result)
    assert (project / "stage").read_text() == "the host's\n"


def test_a_removal_that_fails_leaves_the_task_what_it_made(held: Box) -> None:
    fails = "rmdir d 2>/dev/null; unlink d 2>/dev/null"
    result = held.run(f"mkdir d && echo x > d/f; {fails}; cat d/f && rm -r d && echo x > out.txt")
    assert (result.exit_code, result.stdout) == (0, b"x\n"), shown(result)
    assert "d" not in os.listdir(held.project)


def test_what_is_left_is_kept_for_its_owner(held: Box, base: Path) -> None:
    result = held.run("echo junk > junk; mkdir -p d/e; echo deep > d/e/f; ln -s secret.txt l")
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert violated(result, held.project) == {("write", "junk"), ("write", "d"), ("write", "l")}
    assert without(state(held.project), "out").keys() & {"junk", "d", "l"} == set()
    kept = sorted(str(path.relative_to(base)).split("/", 4)[-1] for path in base.glob("vx-*/set-aside/*/*/*"))
    assert kept == ["d", "junk", "l"]
    assert next(base.glob("vx-*/set-aside/*/*/d/e/f")).read_text() == "deep\n"


def test_names_other_programs_execute_are_refused_and_what_got_past_is_taken_away(held: Box) -> None:
    make_tree(held.project, {".vscode/tasks.json": "{}\n", "dist/.bashrc": "rc\n"})
    held.write = ("out.txt", "out/", "dist")

    def edit() -> None:
        # as a task would that changed the path after the look
        make_tree(held.project, {".mcp.json": "evil\n", ".git/hooks/pre-commit": "evil\n"})

    attacks = (
        "echo x > .bashrc; mkdir -p .vscode; echo x > .vscode/more; echo x > dist/.bashrc; rm dist/.bashrc;"
        " mv dist/.bashrc dist/rc; mkdir -p dist/a/.git/hooks; mkdir d; echo x > d/.zshrc; mv d dist/d; mv .vscode v"
    )
    result = meanwhile(held, "true", edit, attacks)
    found = {path for _, path in violated(result, held.project)}
    assert {".bashrc", ".vscode/more", "dist/.bashrc", "dist/a/.git/hooks", "d/.zshrc", ".vscode"} <= found
    assert {".mcp.json", ".git/hooks"} <= found, shown(result)
    assert (held.project / "dist/.bashrc").read_text() == "rc\n"
    assert os.listdir(held.project / ".vscode") == ["tasks.json"]
    assert not (held.project / ".mcp.json").exists()
    assert not (held.project / ".bashrc").exists()
