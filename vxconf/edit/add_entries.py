"""The adding of entries to the lists of a task file: bytes in, bytes out, everything else as it was. Pure.

The result is parsed again. It has to hold the data of the file and the entries, or the edit is refused.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from vxconf.diagnostics.diagnostic import UnreadableFile, dotted
from vxconf.document.parse import parse
from vxconf.document.spans import locate
from vxconf.edit import json_edits
from vxconf.edit.text_edits import Uneditable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sandbox.contract.results import Fix
    from vxconf.document.document import Document
    from vxconf.resolve.task_model import FieldPath, TaskModel

__all__ = ["Change", "Uneditable", "additions", "with_entries"]

_BOM = b"\xef\xbb\xbf"


class Change(NamedTuple):
    """One entry that was added.

    Attributes:
        file: the file's name.
        line: the line of the entry, from 1.
        path: the dotted list, such as `tasks.build.exec.sandbox.allow.read`.
        entry: the entry, unquoted.
    """

    file: str
    line: int
    path: str
    entry: str


def additions(task: TaskModel, fix: Fix) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The entries of a fix by the path of their list in the task's file, without empty lists."""
    if task.exec is None or task.exec.sandbox is None:
        return {}
    block, inputs = _keys(task.exec.sandbox.path), (*_keys(task.path), "cache", "inputs")
    lists = {
        (*block, "allow", "read"): fix.allow.read,
        (*block, "allow", "write"): fix.allow.write,
        (*block, "allow", "network"): fix.allow.network,
        (*block, "ignore", "read"): fix.ignore.read,
        (*block, "ignore", "write"): fix.ignore.write,
        (*block, "ignore", "network"): fix.ignore.network,
        (*inputs, "files"): fix.inputs.files,
        (*inputs, "workspaceFiles"): fix.inputs.workspace_files,
    }
    return {path: entries for path, entries in lists.items() if entries}


def with_entries(
    raw: bytes, *, file: str, additions: Mapping[tuple[str, ...], Sequence[str]]
) -> tuple[bytes, tuple[Change, ...]]:
    """The file's bytes with entries added, and the entries that were not there before.

    Args:
        raw: the file's content.
        file: the file's name, whose ending gives the format.
        additions: the entries by the path of their list.

    Raises:
        UnreadableFile: the file does not parse.
        Uneditable: the entries cannot be added without changing anything else.
    """
    document = parse(raw, file=file)
    expected = copy.deepcopy(document.data)
    added: list[tuple[tuple[str, ...], int, str]] = []
    for path, entries in additions.items():
        there = _listed(expected, path)
        new = [entry for entry in dict.fromkeys(entries) if entry not in there]
        if not new:
            continue
        added += [(path, len(there) + index, entry) for index, entry in enumerate(new)]
        there.extend(new)
        document = _grown(document, path, new)
        if document.data != expected:
            raise _beyond(path)
    changes = [Change(file, locate(document, (*path, index)).line, dotted(path), entry) for path, index, entry in added]
    bom = _BOM if raw.startswith(_BOM) else b""
    return bom + document.text.encode(), tuple(changes)


def _grown(document: Document, path: tuple[str, ...], entries: Sequence[str]) -> Document:
    text = document.text
    if document.format == "toml":
        from vxconf.edit import toml_edits  # tomlkit takes long to load, and only an edited file needs it

        text = toml_edits.with_entries(text, path, entries)
    else:
        text = json_edits.with_entries(text, path, entries)
    try:
        grown = parse(text.encode(), file=document.file)
    except UnreadableFile:
        raise _beyond(path) from None
    if not _kept(document, path, text):
        raise _beyond(path)
    return grown


def _kept(old: Document, path: tuple[str, ...], new: str) -> bool:
    """Whether a new text has every letter of the old one in order, and every line outside the edited list unchanged."""
    # line ends count as letters: a last line without one gets one
    place, lines = locate(old, path), old.text.replace("\r\n", "\n").split("\n")
    around, rest = lines[: place.line - 1] + lines[place.end_line :], iter(new.replace("\r\n", "\n").split("\n"))
    if not all(line in rest for line in around):
        return False
    letters = iter(new)
    return all(letter in letters for letter in old.text if letter not in " \t")


def _beyond(path: tuple[str, ...]) -> Uneditable:
    return Uneditable(f"{dotted(path)} is written in a way that entries cannot be added to")


def _listed(data: Any, path: Iterable[str]) -> list[Any]:
    """The list at a path of the data; a missing list is added with the tables around it."""
    *around, name = path
    for key in around:
        data = data.setdefault(key, {}) if isinstance(data, dict) else None
    found = data.setdefault(name, []) if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise Uneditable(f"{dotted(tuple(path))} is no list")
    return found


def _keys(path: FieldPath) -> tuple[str, ...]:
    return tuple(map(str, path))
