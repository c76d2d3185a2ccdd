"""Task files keep their own style, byte for byte, when entries are added: pairs of files before and after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vxconf.document.parse import parse
from vxconf.edit.add_entries import with_entries

EDITS = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists()) / "fixtures" / "edits"
CASES = sorted(path for path in EDITS.iterdir() if ".after" not in path.name)
BLOCK = ("tasks", "build", "exec", "sandbox")
ADDED = {
    (*BLOCK, "allow", "read"): ["notes.md", "it's.md"],
    (*BLOCK, "allow", "write"): ["gen/"],
    (*BLOCK, "ignore", "read"): ['say "no".ini'],
    ("tasks", "build", "cache", "inputs", "files"): ["notes.md"],
}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_entries_are_added_in_the_files_own_style(path: Path) -> None:
    raw = path.read_bytes()
    found, changes = with_entries(raw, file=path.name, additions=ADDED)
    expected = path.with_name(f"{path.stem}.after{path.suffix}")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        expected.write_bytes(found)
    assert found == expected.read_bytes()
    document = parse(found, file=path.name)
    lines = document.text.split("\n")
    assert {(change.path, change.entry) for change in changes} == {
        (".".join(at), entry) for at, entries in ADDED.items() for entry in entries
    }
    spelled = [(change.entry.replace('"', '\\"'), change.entry, lines[change.line - 1]) for change in changes]
    assert all(basic in line or literal in line for basic, literal, line in spelled)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_an_edit_keeps_every_value_and_a_second_one_changes_nothing(path: Path) -> None:
    raw = path.read_bytes()
    found, _ = with_entries(raw, file=path.name, additions=ADDED)
    rest = iter(found)
    assert all(byte in rest for byte in raw.replace(b" ", b"").replace(b"\n", b"").replace(b"\r", b""))
    assert (b"\r\n" in raw) is (b"\r\n" in found)
    assert found.count(b"\n") - found.count(b"\r\n") == 0 or b"\r\n" not in raw
    assert found.endswith(b"\n") is raw.endswith(b"\n")
    assert with_entries(found, file=path.name, additions=ADDED) == (found, ())


def test_cases_and_expectations_come_in_pairs() -> None:
    assert {path.name for path in EDITS.iterdir() if ".after" in path.name} == {
        f"{path.stem}.after{path.suffix}" for path in CASES
    }
