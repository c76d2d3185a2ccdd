"""The findings of unknown keys: misspelt, in the wrong table, or known from another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.nearest_names import NearestNames, folded_name
from vxconf.schema import schema_files
from vxconf.validate.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath

_SHOWN = 80
_RUNS = "what a task may read it may execute: list it under allow.read"

#: The advice by the name of the table and the key as `folded_name` spells it.
_KNOWN: dict[tuple[str, str], str] = {
    ("allow", "execute"): _RUNS,
    ("allow", "exec"): _RUNS,
    ("allow", "run"): _RUNS,
    ("allow", "env"): "the environment is exec.env",
    ("allow", "net"): "did you mean network?",
    ("allow", "hosts"): "did you mean network?",
    ("allow", "ports"): "did you mean localBinding?",
    ("deny", "read"): "what allow.read does not grant is hidden already: remove it, or narrow allow.read",
    ("deny", "write"): "what allow.write does not grant is refused already: remove it, or narrow allow.write",
    ("sandbox", "enabled"): "a block is in force by being there; remove the block to run unsandboxed",
    ("exec", "cmd"): "did you mean command?",
    ("exec", "run"): "did you mean command?",
    ("exec", "script"): "did you mean command?",
    ("task", "cmd"): "write exec.command",
    ("task", "run"): "write exec.command",
    ("task", "script"): "write exec.command",
    ("task", "needs"): "did you mean dependsOn?",
    ("task", "deps"): "did you mean dependsOn?",
    ("task", "dependencies"): "did you mean dependsOn?",
    ("file", "sandbox"): "nothing is inherited: a sandbox block belongs to each task's exec",
}


def unknown_key_findings(
    value: dict[str, Any], path: FieldPath, root: schema_files.Schema, name: schema_files.Name
) -> Iterator[Finding]:
    """The findings of a table: one for each key that the schema does not know there.

    Args:
        value: the table.
        path: the table's path in the document.
        root: the schema.
        name: the schema's name.
    """
    node = schema_files.lookup(root, path)
    known = [key for key in schema_files.properties(root, node or {}) if key != schema_files.ANY]
    nearest = NearestNames(known)
    for key in value:
        if key in known:
            continue
        where = f" in {dotted(path)}" if path else ""
        yield Finding(
            code="VX101",
            path=(*path, key),
            message=f"unknown key {quoted(key[:_SHOWN])}{where}",
            help=_advice(key, value, path, nearest, name),
            at_key=True,
        )


def _advice(key: str, value: dict[str, Any], path: FieldPath, nearest: NearestNames, name: schema_files.Name) -> str:
    table = _table(path)
    if table == "task" and key == "sandbox":
        if "exec" in value:
            return f"move it into exec: [{dotted((*path, 'exec', 'sandbox'))}]"
        return "a task without exec is a group and takes no sandbox: put it on the tasks it depends on"
    said = _KNOWN.get((table, folded_name(key)))
    if said is not None:
        return said
    near = nearest.to(key)
    if near is not None and folded_name(near) == folded_name(key):
        return f"did you mean {quoted(near)}?"
    elsewhere = _elsewhere(key, path, name)
    if elsewhere:
        return f"write {' or '.join(elsewhere)}"
    if near is not None:
        return f"did you mean {quoted(near)}?"
    return f"known here: {', '.join(nearest.names)}"


def _table(path: FieldPath) -> str:
    if not path:
        return "file"
    if len(path) == 2 and path[0] == "tasks":  # noqa: PLR2004  tasks.NAME
        return "task"
    return str(path[-1])


def _elsewhere(key: str, path: FieldPath, name: schema_files.Name) -> list[str]:
    """The full paths of a key in the one or two tables that know it and are nearest to `path`; none for more tables."""
    known = schema_files.homes(name)
    if key not in known:
        key = next((other for other in known if folded_name(other) == folded_name(key)), key)
    tables = _nearest_tables(known.get(key, ()), path)
    if len(tables) > 2:  # noqa: PLR2004  more are no help
        return []
    task = path[1] if len(path) > 1 else schema_files.ANY
    return [
        dotted(tuple(task if part == schema_files.ANY else part for part in (*table, key))).replace('"*"', "<name>")
        for table in tables
    ]


_Table = tuple[str, ...]


def _nearest_tables(tables: tuple[_Table, ...], path: FieldPath) -> list[_Table]:
    """The tables that share the longest beginning with `path`; where `allow` is among them, `allow` alone."""
    here = [schema_files.ANY if i == 1 and path[0] == "tasks" else str(part) for i, part in enumerate(path)]
    shared = {table: _shared(here, table) for table in tables}
    most = max(shared.values(), default=0)
    if here and not most:
        return []
    nearest = [table for table, count in shared.items() if table and count == most]
    # a key that is a grant in one place is meant as a grant
    return [table for table in nearest if table[-1] == "allow"] or nearest


def _shared(here: list[str], table: _Table) -> int:
    """How many leading parts two paths share."""
    return next((at for at, (a, b) in enumerate(zip(here, table, strict=False)) if a != b), min(len(here), len(table)))


def is_misspelling(wrong: str, right: str) -> bool:
    """Whether `wrong` is near enough to `right` to be a misspelling of it."""
    return NearestNames([right]).to(wrong) == right
