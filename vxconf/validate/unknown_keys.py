"""Keys that are not known where they are: misspelt, put elsewhere, or brought from another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.schema import schema_files
from vxconf.suggest import NearestNames, folded_name
from vxconf.validate.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath

_SHOWN = 80
_RUNS = "what a task may read it may execute: list it under allow.read"

#: By the name of the table and the folded key: what to do instead.
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
    """One finding for each key of a table that the schema does not know there."""
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
    """The one or two tables nearest to `path` that know the key."""
    known = schema_files.homes(name)
    if key not in known:
        key = next((k for k in known if folded_name(k) == folded_name(key)), key)
    homes = known.get(key, ())
    here = [schema_files.ANY if i == 1 and path[0] == "tasks" else str(part) for i, part in enumerate(path)]

    def shared(home: tuple[str, ...]) -> int:
        return next((i for i, (a, b) in enumerate(zip(here, home, strict=False)) if a != b), min(len(here), len(home)))

    best = max((shared(home) for home in homes), default=0)
    if not homes or (here and not best):
        return []
    chosen = [home for home in homes if shared(home) == best and home]
    # who writes a grant in the wrong place means the grant
    chosen = [home for home in chosen if home[-1] == "allow"] or chosen
    if len(chosen) > 2:  # noqa: PLR2004  more are no help
        return []
    task = path[1] if len(path) > 1 else schema_files.ANY
    return [
        dotted(tuple(task if part == schema_files.ANY else part for part in (*home, key))).replace('"*"', "<name>")
        for home in chosen
    ]


def is_misspelling(wrong: str, right: str) -> bool:
    """Whether somebody who wrote `wrong` meant `right`."""
    return NearestNames([right]).to(wrong) == right
