"""Rules on a task's environment, and on NUL in any text of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.validate.finding import Finding
from vxconf.validate.rules.well_typed_view import CACHE_LISTS, GRANTS, SANDBOX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.validate.rules.well_typed_view import FileView, TaskView

_LISTS_OF_NAMES = (("exec", "env", "passThrough"), ("cache", "inputs", "env"))
_TEXTS = (
    *GRANTS,
    (*SANDBOX, "allow", "unixSockets"),
    (*SANDBOX, "ignore", "read"),
    (*SANDBOX, "ignore", "write"),
    *CACHE_LISTS,
    ("cache", "inputs", "runtime"),
)


def _defined(task: TaskView) -> Iterator[tuple[FieldPath, str]]:
    for name in task.table("exec", "env", "define"):
        yield (*task.path, "exec", "env", "define", name), name


def _bad_name(name: str) -> bool:
    return not name or "=" in name or " " in name or not name.isprintable()


def variable_name(file: FileView) -> Iterator[Finding]:
    """A variable's name is not empty and holds no `=`, blank or control character (VX203)."""
    for task in file.tasks:
        for path, name in _defined(task):
            if _bad_name(name):
                message = f"{quoted(name)} cannot be the name of an environment variable"
                yield Finding(code="VX203", path=path, message=message, help=_name_advice(name), at_key=True)
        for keys in _LISTS_OF_NAMES:
            for path, name in task.strings(*keys):
                if _bad_name(name):
                    message = f"{quoted(name)} cannot be the name of an environment variable"
                    yield Finding(code="VX203", path=path, message=message, help=_name_advice(name))


def _name_advice(name: str) -> str:
    before, equals, _ = name.partition("=")
    if equals and before and not _bad_name(before):
        return f"write the name alone, {quoted(before)}; define is where values go"
    return "a name holds no =, no blank and no control character"


def defined_and_passed(file: FileView) -> Iterator[Finding]:
    """A variable is not both defined and passed through (VX204)."""
    for task in file.tasks:
        defined = task.table("exec", "env", "define")
        for path, name in task.strings("exec", "env", "passThrough"):
            if name in defined:
                message = f"variable {quoted(name)} is both defined and passed through"
                yield Finding(code="VX204", path=path, message=message, help="remove it from one of the two")


def reserved_variable(file: FileView) -> Iterator[Finding]:
    """A sandboxed task sets no variable that the sandbox sets (VX408)."""
    for task in file.sandboxed:
        names = [(True, *one) for one in _defined(task)]
        names += [(False, *one) for one in task.strings("exec", "env", "passThrough")]
        if not names:
            continue
        from sandbox.base.task_environment_variables import RESERVED

        for at_key, path, name in names:
            if name in RESERVED:
                yield Finding(
                    code="VX408",
                    path=path,
                    message=f"variable {quoted(name)} is set by the sandbox, so this value does not reach the task",
                    help="remove it, or give the variable another name",
                    at_key=at_key,
                )


def nul(file: FileView) -> Iterator[Finding]:
    """No path, argument or value of a variable holds NUL (VX205)."""
    if not file.escapes:
        return
    for task in file.tasks:
        command = task.text("exec", "command")
        texts = [] if command is None else [((*task.path, "exec", "command"), command)]
        texts += [((*path,), value) for path, value in _values(task)]
        for keys in _TEXTS:
            texts += task.strings(*keys)
        if not any("\0" in text for _, text in texts):
            continue
        for path, text in texts:
            if "\0" in text:
                message = f"{dotted(path)} holds a NUL character"
                yield Finding(code="VX205", path=path, message=message, help="remove it")


def _values(task: TaskView) -> Iterator[tuple[FieldPath, str]]:
    for name, value in task.table("exec", "env", "define").items():
        if isinstance(value, str):
            yield (*task.path, "exec", "env", "define", name), value
