"""A fix is written into a task's file as a whole or not at all, and never over another's change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import vxconf
from sandbox.contract.results import Fix, FixInputs, FixPaths
from tests.conftest import Link
from vxconf.run import apply_fix
from vxconf.run.apply_fix import Unfixed, write_fix
from vxconf.run.report import changes_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Tree
    from vxconf.workspace.project import Task

    Factory = Callable[[Tree], Path]

_TEXT = """\
[tasks.t.exec]
command = "x"

[tasks.t.exec.sandbox.allow]
read = ["src/"] # sources
"""
_FIX = Fix(allow=FixPaths(read=("notes.md",), write=("gen/",)))


def _root(make: Factory, text: str = _TEXT) -> Path:
    return make({"p/vx.toml": text, "p/notes.md": "", "p/src/x": "", "p/base.toml": ""})


def _task(root: Path) -> Task:
    return vxconf.load(str(root)).task("p#t")


def _refused(task: Task, fix: Fix = _FIX) -> Unfixed:
    with pytest.raises(Unfixed) as caught:
        write_fix(task, fix)
    return caught.value


def test_the_entries_are_written_and_told_with_their_lines(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    changes = write_fix(_task(root), _FIX)
    assert (root / "p/vx.toml").read_text().splitlines()[-2:] == [
        'read = ["src/", "notes.md"] # sources',
        'write = ["gen/"]',
    ]
    assert changes_text(changes).splitlines() == [
        'p/vx.toml:5: added "notes.md" to tasks.t.exec.sandbox.allow.read',
        'p/vx.toml:6: added "gen/" to tasks.t.exec.sandbox.allow.write, where "gen/" opens everything below',
    ]
    assert vxconf.load(str(root)).diagnostics == ()
    assert sorted(os.listdir(root / "p")) == ["base.toml", "notes.md", "src", "vx.toml"]


def test_inputs_of_a_cached_task_go_where_its_key_looks(workspace_factory: Factory) -> None:
    root = _root(workspace_factory, _TEXT + "\n[tasks.t.cache.inputs]\nfiles = ['src/**']\n")
    fix = Fix(
        allow=FixPaths(read=("notes.md", "../p/base.toml")),
        inputs=FixInputs(files=("notes.md",), workspace_files=("p/base.toml",)),
    )
    changes = write_fix(_task(root), fix)
    assert [(change.line, change.path.removeprefix("tasks.t."), change.entry) for change in changes] == [
        (5, "exec.sandbox.allow.read", "notes.md"),
        (5, "exec.sandbox.allow.read", "../p/base.toml"),
        (8, "cache.inputs.files", "notes.md"),
        (9, "cache.inputs.workspaceFiles", "p/base.toml"),
    ]


def test_mode_and_a_link_inside_the_workspace_stay(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    (root / "p/vx.toml").rename(root / "shared.toml")
    (root / "shared.toml").chmod(0o640)
    (root / "p/vx.toml").symlink_to("../shared.toml")
    write_fix(_task(root), _FIX)
    assert (root / "p/vx.toml").is_symlink()
    assert '"notes.md"' in (root / "shared.toml").read_text()
    assert (root / "shared.toml").stat().st_mode & 0o7777 == 0o640


def test_a_link_out_of_the_workspace_is_not_written_through(workspace_factory: Factory, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text(_TEXT)
    root = workspace_factory({"p/vx.toml": Link(str(tmp_path / "elsewhere.toml")), "p/notes.md": "", "p/src/x": ""})
    fault = _refused(_task(root))
    assert "a link out of the workspace" in fault.message
    assert "by hand" in fault.help
    assert (tmp_path / "elsewhere.toml").read_text() == _TEXT


def test_a_file_changed_while_the_task_ran_is_left_alone(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    task = _task(root)
    assert task.sandboxed
    (root / "p/vx.toml").write_text(_TEXT + "# mine\n")
    assert "was changed while the task ran" in _refused(task).message
    assert (root / "p/vx.toml").read_text() == _TEXT + "# mine\n"
    (root / "p/vx.toml").unlink()
    assert "does not exist" in _refused(task).message


def test_a_file_changed_just_before_it_is_replaced_is_left_alone(
    workspace_factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _root(workspace_factory)
    path = root / "p/vx.toml"
    real = apply_fix._judge

    def judged_while_somebody_saves(task: Task, new: bytes) -> None:
        real(task, new)
        path.write_text(_TEXT + "# mine\n")

    monkeypatch.setattr(apply_fix, "_judge", judged_while_somebody_saves)
    assert "changed meanwhile" in _refused(_task(root)).message
    assert path.read_text() == _TEXT + "# mine\n"
    assert "vx.toml" in os.listdir(root / "p")
    assert not [name for name in os.listdir(root / "p") if name.endswith(".tmp")]


def test_a_result_that_check_would_refuse_is_not_written(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    before = (root / "p/vx.toml").read_bytes()
    fault = _refused(_task(root), Fix(allow=FixPaths(write=("notes.md/",))))
    assert "was not changed, since it would be refused" in fault.message
    assert "notes.md" in fault.message
    assert (root / "p/vx.toml").read_bytes() == before


def test_an_entry_with_a_secret_in_it_is_never_written(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    assert "secret" in _refused(_task(root), Fix(allow=FixPaths(write=("gen/***/",)))).message
    assert (root / "p/vx.toml").read_text() == _TEXT


def test_credential_stores_are_never_added(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    assert "no entry" in _refused(_task(root), Fix(withheld=("/home/mel/.npmrc",))).message
    write_fix(_task(root), Fix(allow=FixPaths(read=("notes.md",)), withheld=("/home/mel/.npmrc",)))
    assert "npmrc" not in (root / "p/vx.toml").read_text()


def test_an_entry_that_is_there_already_changes_nothing(workspace_factory: Factory) -> None:
    root = _root(workspace_factory)
    assert "already" in _refused(_task(root), Fix(allow=FixPaths(read=("src/",)))).message


@pytest.mark.parametrize("text", [_TEXT.replace('["src/"]', "true"), _TEXT + "read = []\n"])
def test_a_file_with_a_mistake_is_left_alone(workspace_factory: Factory, text: str) -> None:
    root = _root(workspace_factory, text)
    found = vxconf.load(str(root)).project("p").task("t")
    if found is not None:
        assert _refused(found).message
    assert (root / "p/vx.toml").read_text() == text


def test_a_list_that_is_true_is_not_turned_into_one(workspace_factory: Factory) -> None:
    root = _root(workspace_factory, _TEXT + "network = true\n")
    fault = _refused(_task(root), Fix(allow=FixPaths(network=("a.test:443",))))
    assert "allow.network is no list" in fault.message


def test_a_list_that_cannot_be_added_to_is_left_alone_and_named(workspace_factory: Factory) -> None:
    text = _TEXT.replace('["src/"]', '["src/" # why\n  , ]')
    assert text != _TEXT
    root = _root(workspace_factory, text)
    fault = _refused(_task(root))
    assert "allow.read is written in a way that entries cannot be added to" in fault.message
    assert fault.help == "add the lines of the report by hand"
    assert (root / "p/vx.toml").read_text() == text


def test_a_directory_nobody_may_write_in_is_said(workspace_factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _root(workspace_factory)
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if path.endswith(".tmp"):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", refusing)
    assert _refused(_task(root)).message == "p/vx.toml cannot be replaced: permission denied"
