"""Granted names where no mask serves them, against a task that reaches beside them and a host that edits.

The directory they stand in is read-only, with nothing else of the host in it, so nothing depends on what an observer
made of a call.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.conftest import make_tree
from tests.redteam.conftest import PYTHON, Box, shown, violated
from tests.redteam.test_host_edits import save
from tests.redteam.test_names import state
from tests.support.named import NamedWorkspace
from tests.support.walls_away import NO_LANDLOCK, take_away

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
    closed = {"ENOENT", "EROFS", "EXDEV", "EBUSY", "EACCES", "EPERM"}
    # a hidden name is free for the task, whose own file of that name is apart
    mine = {label for label in told if "secret.txt" in label}
    assert {label: answer for label, answer in told.items() if answer not in closed and label not in mine} in (
        {},
        {"out.txt": "changed\n"},
    )
    assert without(state(held.project), "out.txt", "out") == without(before, "out.txt", "out")
    assert (result.exit_code, result.trace) == (1, "complete"), shown(result)
    assert {("read", "secret.txt"), ("write", "code.py")} <= violated(result, held.project), shown(result)


def test_a_task_that_races_itself_finds_nothing(held: Box) -> None:
    told, result = held.attack("beside", "secret.txt", "code.py", "race")
    assert set(told["raced"]) <= {"changed\n"}, shown(result)
    assert result.exit_code == 1


def test_no_race_of_paths_and_directories_reaches_beside_a_name(held: Box) -> None:
    held.write = ("out.txt", "out/", "dist")
    held.program("swapping")
    before = state(held.project)
    told, result = held.attack("swapping", "secret.txt", "code.py", 0.25)
    raced = told.pop("raced")
    assert all(raced[:2]), shown(result)
    closed = {"ENOENT", "ENOTDIR", "EROFS", "EXDEV", "EBUSY", "EACCES", "EPERM", "EINVAL"}
    assert {label: answer for label, answer in told.items() if answer not in closed} == {}
    granted = ("out.txt", "out", "dist")
    assert without(state(held.project), *granted) == without(before, *granted)
    assert result.trace == "complete", shown(result)


#: What covers show is as writable for the task as it is for the warden.
_WRITABLE_COVERS = """
from sandbox.linux.kernel import kernel_calls
change = kernel_calls.set_mount_attributes
def spare(fd, path, *, add=0, **more):
    if path or fd < 0 or more or add != kernel_calls.MOUNT_ATTR_RDONLY:
        change(fd, path, add=add, **more)
kernel_calls.set_mount_attributes = spare
"""


@pytest.mark.parametrize("wall", ["", _WRITABLE_COVERS], ids=["with the wall", "without it"])
def test_what_the_warden_does_not_make_the_read_only_directory_refuses(
    held: Box, wall: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the answer to every call is that it may go on, as if each had been changed after the look
    gullible = "from sandbox.linux.names.name_calls import NameCalls; NameCalls.answer = lambda self, asked: None"
    take_away(monkeypatch, f"{gullible}\n{NO_LANDLOCK}\n{wall}")
    with Session() as session:
        held.session = session
        result = held.run("echo x > planted; mkdir made; echo y > out.txt; cat secret.txt; ls; true")
    seen = {"made", "planted"} & set(result.stdout.decode().split())
    assert seen == ({"made", "planted"} if wall else set()), shown(result)
    assert b"the secret" not in result.stdout
    assert "planted" not in os.listdir(held.project)


def test_without_the_cover_around_a_name_what_lies_beside_it_is_read(tmp_path: Path) -> None:
    with Session() as session:
        shop = NamedWorkspace(str(tmp_path), session, pattern=False, observer="notify")
        look = "cat notes.md; true"
        assert shop.run(look).out == ""
        assert shop.run(look, without=("Cover", "Way", "Name")).out == "notes.md"


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


def test_a_granted_name_that_another_process_makes_a_link_to_a_hidden_file_opens_nothing(held: Box) -> None:
    def edit() -> None:
        (held.project / "out.txt").unlink()
        (held.project / "out.txt").symlink_to(held.project / "secret.txt")

    attacks = "cat out.txt; truncate -c -s 0 out.txt; chmod 600 out.txt; ln -L out.txt second; echo evil > out.txt"
    result = meanwhile(held, "cat out.txt", edit, attacks)
    assert b"the " not in result.stdout, shown(result)
    assert ("read", "secret.txt") in violated(result, held.project), shown(result)
    assert (held.project / "secret.txt").read_text() == "the secret\n"
    assert "second" not in os.listdir(held.project)
    assert (held.project / "out.txt").is_symlink()


def test_locks_mappings_and_watches_are_of_the_hosts_own_file(held: Box) -> None:
    program = (
        "import fcntl, mmap, os; file = open('out.txt', 'r+b'); fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB);"
        " fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB); pages = mmap.mmap(file.fileno(), 4);"
        " pages[:4] = b'new\\n'; os.mkfifo('out/done'); print('locked', flush=True); open('out/done').read()"
    )
    seen: list[str] = []

    def ready(chunk: bytes) -> None:
        if b"locked" not in chunk:
            return
        with (held.project / "out.txt").open("r+b") as file:
            seen.append(file.read().decode())
            for lock in (fcntl.flock, fcntl.lockf):
                with pytest.raises(BlockingIOError):
                    lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (held.project / "out/done").write_text("")

    result = held.run(f'{PYTHON} -c "{program}"', on_stdout=ready)
    assert (result.exit_code, seen) == (0, ["new\n"]), shown(result)


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


def test_names_other_programs_execute_are_refused(held: Box) -> None:
    make_tree(held.project, {".vscode/tasks.json": "{}\n", "dist/.bashrc": "rc\n"})
    held.write = ("out.txt", "out/", "dist")

    attacks = (
        "echo x > .bashrc; mkdir -p .vscode; echo x > .vscode/more; echo x > dist/.bashrc; rm dist/.bashrc;"
        " mv dist/.bashrc dist/rc; mkdir -p dist/a/.git/hooks; mkdir d; echo x > d/.zshrc; mv d dist/d; mv .vscode v"
    )
    result = held.run(f"{attacks}; true")
    found = {path for _, path in violated(result, held.project)}
    assert {".bashrc", ".vscode/more", "dist/.bashrc", "dist/a/.git/hooks", "d/.zshrc", ".vscode"} <= found
    assert (held.project / "dist/.bashrc").read_text() == "rc\n"
    assert os.listdir(held.project / ".vscode") == ["tasks.json"]
    assert not (held.project / ".bashrc").exists()
