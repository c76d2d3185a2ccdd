"""TOML that is hard to edit is edited correctly, or the file is refused and stays as it was."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from vxconf.edit import toml_edits
from vxconf.edit.add_entries import Uneditable, with_entries

READ = ("tasks", "t", "exec", "sandbox", "allow", "read")
_HEAD = "[tasks.t.exec.sandbox.allow]\n"


def _added(text: str) -> str:
    return with_entries(text.encode(), file="vx.toml", additions={READ: ["n", "it's"]})[0].decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["a" , ]', '["a", "n", "it\'s", ]'),
        ("[ ]  # c", '["n", "it\'s"]  # c'),
        ("[ # c\n]", '[ # c\n  "n",\n  "it\'s"\n]'),
        ("[\n\n]", '[\n  "n",\n  "it\'s"\n\n]'),
        ('["a", # "a",\n]', '["a", # "a",\n  "n",\n  "it\'s",\n]'),
        ('["a", "b",\n     "c" ]', '["a", "b",\n     "c",\n     "n",\n     "it\'s" ]'),
        ('[\n  "a" # x\n  ,"b"\n]', '[\n  "a" # x\n  ,"b",\n  "n",\n  "it\'s"\n]'),
        ('["""a\n#"""]', '["""a\n#""", "n", "it\'s"]'),
        ("['''a''', 'b']", "['''a''', 'b', 'n', \"it's\"]"),
    ],
)
def test_a_list_grows_as_it_is_written(before: str, after: str) -> None:
    assert _added(f"{_HEAD}read = {before}\n") == f"{_HEAD}read = {after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tasks = {t.exec.sandbox.allow.write=['x']}", ", t.exec.sandbox.allow.read = ['n', \"it's\"]}"),
        ("[ tasks . \"t\" . exec ]\nsandbox . allow . write = [ 'x' ]", "\nsandbox.allow.read = ['n', \"it's\"]"),
        ('[tasks."t"]\n[tasks."t".exec]\n[tasks.\'t\'.exec.sandbox]', '\nallow.read = ["n", "it\'s"]'),
        ("[[x]]\n[[x]]\n[tasks.t.exec.sandbox]", '\nallow.read = ["n", "it\'s"]'),
    ],
)
def test_a_list_is_made_where_its_neighbours_are(before: str, after: str) -> None:
    assert _added(before) == before.removesuffix("}") + after


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f'{_HEAD}read = ["a" # x\n , ]\n', id="a comma on a line of its own, below a remark"),
        pytest.param("[[x]]\n[[x]]\n[tasks.t.exec.sandbox]\n[[y]]\n[tasks.u]\n", id="tables that tomlkit reorders"),
    ],
)
def test_a_list_that_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(Uneditable, match="is written in a way that entries cannot be added to"):
        _added(text)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [("# why\n", ""), ("a = 1\n", "a  = 1\n"), ("a = 1\nb = 2\n", "b = 2\na = 1\n"), ("'x'", '"x"'), ("\n\n", "\n")],
)
def test_a_result_that_changes_another_line_is_refused(monkeypatch: pytest.MonkeyPatch, was: str, becomes: str) -> None:
    text = f"# why\n[env]\na = 1\nb = 2\nc = 'x'\n\n{_HEAD}read = []\n"
    real = toml_edits.with_entries
    monkeypatch.setattr(toml_edits, "with_entries", lambda *given: real(*given).replace(was, becomes))
    with pytest.raises(Uneditable, match="cannot be added to"):
        _added(text)


def test_lines_of_both_ends_keep_theirs() -> None:
    assert _added(f"{_HEAD}\r\n# mixed\r\n") == f'{_HEAD}read = ["n", "it\'s"]\n\r\n# mixed\r\n'


def test_tomlkit_is_loaded_only_once_a_file_is_edited() -> None:
    script = (
        "import sys, vxconf.run.apply_fix, vxconf.cli.commands.run, vxconf.cli.commands.explain\n"
        "from vxconf.edit.add_entries import with_entries\n"
        "assert 'tomlkit' not in sys.modules\n"
        f"with_entries(b'[tasks.t]', file='vx.toml', additions={{{READ!r}: ['n']}})\n"
        "assert 'tomlkit' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, check=True, timeout=60)
