"""Rules on text that another tool expands and that is taken literally here, or the reverse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.validate.finding import Finding
from vxconf.validate.rules.well_typed_view import CACHE_LISTS, GRANTS, SANDBOX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.validate.rules.well_typed_view import FileView, TaskView

_SHOWN = 80
_PATHS = (
    *GRANTS,
    (*SANDBOX, "ignore", "read"),
    (*SANDBOX, "ignore", "write"),
    (*SANDBOX, "allow", "unixSockets"),
    *CACHE_LISTS,
)
_NAMES = (("exec", "env", "passThrough"), ("cache", "inputs", "env"))

# Expressions are compiled when a text first needs one, which hardly any does.
# A variable in capitals, as shells, Turborepo and Windows write one; routes such as `$id.tsx` are names of files.
_VARIABLE = r"\$\{[A-Za-z_][^}/]*\}|\$[A-Z_][A-Z0-9_]+\$?(?![a-z])|%[A-Z_][A-Z0-9_]+%"
# Tokens that Nx replaces.
_OF_NX = r"\{(?:projectRoot|workspaceRoot|projectName|options\.[\w.]+|args\.[\w.]+)\}"
# A component of a route: `[slug]`, `[...slug]`, `[[...slug]]`, with or without an ending.
_ROUTE = r"\[\[?(?:\.\.\.)?[A-Za-z_][\w-]+\]\]?(?:\.\w+)*"


def taken_literally(file: FileView) -> Iterator[Finding]:
    """No path, name or value looks like another tool's variable or pattern, which is not expanded here (VX418)."""
    for task in file.tasks:
        for keys in _PATHS:
            for path, entry in task.strings(*keys):
                if (found := _expanded_elsewhere(entry)) is not None:
                    yield _literal(path, keys, entry, f"{quoted(found)} is no variable here", _path_advice(found))
        for keys in _NAMES:
            for path, name in task.strings(*keys):
                if (told := _no_name(name)) is not None:
                    yield _literal(path, keys, name, *told)
        yield from _in_definitions(task)
        yield from _in_command(task)


def _in_definitions(task: TaskView) -> Iterator[Finding]:
    keys = ("exec", "env", "define")
    for name, value in task.table(*keys).items():
        path: FieldPath = (*task.path, *keys, name)
        if (told := _no_name(name)) is not None:
            yield _literal(path, keys, name, *told, at_key=True)
        elif isinstance(value, str) and (found := _expanded_elsewhere(value)) is not None:
            remedy = "write the value itself, or set the variable in the command, where the shell expands it"
            yield _literal(path, (*keys, name), value, f"{quoted(found)} is no variable here", remedy)


def _in_command(task: TaskView) -> Iterator[Finding]:
    command = task.text("exec", "command")
    token = re.search(_OF_NX, command) if command is not None and "{" in command else None
    if token is not None and command is not None:
        path: FieldPath = (*task.path, "exec", "command")
        remedy = "a command starts in its project's directory: write the path from there"
        yield _literal(path, ("exec", "command"), command, f"{quoted(token[0])} is no variable here", remedy)


def _literal(
    path: FieldPath, keys: tuple[str, ...], text: str, what: str, remedy: str, *, at_key: bool = False
) -> Finding:
    message = f"{'.'.join(keys[-2:])} {quoted(text[:_SHOWN])} is taken literally: {what}"
    return Finding(code="VX418", path=path, message=message, help=remedy, at_key=at_key)


def _expanded_elsewhere(text: str) -> str | None:
    """The first stretch of a text that another tool would expand, `None` when there is none."""
    found = re.search(_VARIABLE, text) if "$" in text or "%" in text else None
    if found is None and "{" in text:
        found = re.search(_OF_NX, text)
    return found[0] if found is not None else None


def _path_advice(found: str) -> str:
    if found in {"$TURBO_DEFAULT$", "$TURBO_EXTENDS$"}:
        return 'write "**" for all files of the project'
    if found in {"$TURBO_ROOT$", "{workspaceRoot}"}:
        return "write the path from the project's directory, or under workspaceFiles the one from the workspace root"
    if found in {"{projectRoot}", "$PWD", "${PWD}"}:
        return "a path begins in the project's directory: leave it out"
    if found in {"$HOME", "${HOME}", "%HOME%", "%USERPROFILE%"}:
        return 'variables are not expanded here: write "~/" for home'
    if found in {"$TMPDIR", "${TMPDIR}", "$TMP", "$TEMP", "%TEMP%", "%TMP%"}:
        return "leave it out: each task has a temporary directory of its own"
    return 'variables are not expanded here: write the path itself, or "~/" for home'


def _no_name(name: str) -> tuple[str, str] | None:
    """The fault of a variable's name that looks like a pattern or a reference, and advice; `None` for a plain name."""
    bare = name.strip("${}!%")
    if name[:1] == "!":
        return "no entry takes another back", "leave it out: a variable that no entry names is not passed"
    if "*" in name or "?" in name:
        return "no name stands for several variables", "list each variable by its whole name"
    if name[:1] == "$" or (name[:1] == "%" and name[-1:] == "%"):
        return "a name is written without a sign", f"write {quoted(bare)}" if bare else "write the name"
    return None


def brackets_of_routes(file: FileView) -> Iterator[Finding]:
    """No path that is written or keyed has a route's brackets, which stand for one of their characters (VX419)."""
    for task in file.tasks:
        for keys in ((*SANDBOX, "allow", "write"), *CACHE_LISTS):
            for path, entry in task.strings(*keys):
                if "[" not in entry:
                    continue
                route = next((part for part in entry.removeprefix("!").split("/") if re.fullmatch(_ROUTE, part)), None)
                if route is not None:
                    inside = route.partition("]")[0].lstrip("[")
                    yield Finding(
                        code="VX419",
                        path=path,
                        message=f"{dotted(keys[-2:])} {quoted(entry[:_SHOWN])} has brackets, which stand for one "
                        f"character of {quoted(inside[:_SHOWN])}",
                        help=f"write {quoted(escaped_brackets(entry)[:_SHOWN])} for the name itself",
                    )


def escaped_brackets(entry: str) -> str:
    """The entry with each opening bracket taken literally."""
    return re.sub(r"(?<!\\)\[", r"\\[", entry)
