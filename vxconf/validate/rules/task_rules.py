"""Rules on a task's references, its cache paths and its readiness test."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.validate.finding import Finding
from vxconf.validate.rules.well_typed_view import CACHE_LISTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.nearest_names import NearestNames
    from vxconf.validate.rules.well_typed_view import FileView, TaskView

_REFERENCES = (("dependsOn",), ("cache", "inputs", "tasks"))
_LONGEST_REGEX = 10_000


def is_same_file(reference: str) -> bool:
    """Whether a well-formed reference names a task of the same file."""
    return "#" not in reference and not reference.startswith("^")


def _references(task: TaskView) -> Iterator[tuple[FieldPath, str]]:
    for keys in _REFERENCES:
        yield from task.strings(*keys)


def _malformed(reference: str) -> str | None:
    """The advice for a malformed reference, `None` for a well-formed one."""
    if reference != reference.strip() or not reference.isprintable():
        return (
            f"write {quoted(reference.strip())}" if reference.strip().isprintable() else "remove the control character"
        )
    if reference.startswith("^"):
        name = reference.lstrip("^")
        if reference == f"^{name}" and name and "#" not in name:
            return None
        return f"write {quoted('^' + name.rpartition('#')[2])}" if name else "write the task's name behind the ^"
    project, hash_, name = reference.rpartition("#")
    if not hash_ or (project and name and "#" not in project and "^" not in name):
        return None
    return 'write "task", "^task" or "project#task"'


def malformed_reference(file: FileView) -> Iterator[Finding]:
    """A reference is `task`, `^task` or `project#task` (VX206)."""
    for task in file.tasks:
        for path, reference in _references(task):
            remedy = _malformed(reference)
            if remedy is not None:
                message = f"{quoted(reference)} is not a task reference"
                yield Finding(code="VX206", path=path, message=message, help=remedy)


def self_dependency(file: FileView) -> Iterator[Finding]:
    """A task does not depend on itself (VX207)."""
    for task in file.tasks:
        for path, reference in _references(task):
            if reference == task.name:
                yield Finding(
                    code="VX207",
                    path=path,
                    message=f"task {quoted(task.name)} depends on itself",
                    help=f"remove it, or write {quoted('^' + task.name)} for that task of this one's dependencies",
                )


def unknown_task(file: FileView) -> Iterator[Finding]:
    """A reference without a project names a task of this file (VX208)."""
    nearest: NearestNames | None = None
    for task in file.tasks:
        for path, reference in _references(task):
            if reference in file.names or not is_same_file(reference) or _malformed(reference) is not None:
                continue
            if nearest is None:
                from vxconf.nearest_names import NearestNames  # only a misspelt name needs it

                nearest = NearestNames(file.names)
            near = nearest.to(reference)
            yield Finding(
                code="VX208",
                path=path,
                message=f"there is no task {quoted(reference)} in this file",
                help=f"did you mean {quoted(near)}?" if near else 'a task of another project is spelled "project#task"',
            )


def duplicate_reference(file: FileView) -> Iterator[Finding]:
    """No list has the same reference twice (VX209)."""
    for task in file.tasks:
        for keys in _REFERENCES:
            seen: set[str] = set()
            for path, reference in task.strings(*keys):
                if reference in seen:
                    message = f"{quoted(reference)} is listed twice in {dotted((*task.path, *keys))}"
                    yield Finding(code="VX209", path=path, message=message, help="remove one of the two")
                seen.add(reference)


def dependency_cycle(file: FileView) -> Iterator[Finding]:
    """The tasks of one file do not depend on each other in a circle (VX210)."""
    edges = {
        task.name: [
            (path, reference)
            for path, reference in task.strings("dependsOn")
            if reference in file.names and reference != task.name
        ]
        for task in file.tasks
    }
    done: set[str] = set()
    for start, first in edges.items():
        if start in done:
            continue
        trail = [start]
        on_trail = {start}
        stack = [iter(first)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                finished = trail.pop()
                on_trail.discard(finished)
                done.add(finished)
                continue
            path, name = step
            if name in on_trail:
                circle = [*trail[trail.index(name) :], name]
                shown = circle if len(circle) <= 8 else [*circle[:4], "...", *circle[-2:]]  # noqa: PLR2004  what fits a line
                message = "tasks depend on each other in a circle: " + " -> ".join(shown)
                yield Finding(code="VX210", path=path, message=message, help="remove one of the references")
            elif name not in done and name in edges:
                trail.append(name)
                on_trail.add(name)
                stack.append(iter(edges[name]))


def cache_on_persistent(file: FileView) -> Iterator[Finding]:
    """A persistent task has no cache (VX201)."""
    for task in file.tasks:
        if task.has("exec", "persistent") and task.has("cache"):
            yield Finding(
                code="VX201",
                path=(*task.path, "cache"),
                message=f"task {quoted(task.name)} is persistent and never has a result to keep",
                help="remove cache, or persistent",
                at_key=True,
            )


def ready_output(file: FileView) -> Iterator[Finding]:
    """A server's `readyWhen.output` is a regular expression (VX202)."""
    for task in file.tasks:
        output = task.text("exec", "persistent", "readyWhen", "output")
        if not output:
            continue
        path = (*task.path, "exec", "persistent", "readyWhen", "output")
        if len(output) > _LONGEST_REGEX:
            message = f"the regular expression has more than {_LONGEST_REGEX:,} characters"
            yield Finding(code="VX202", path=path, message=message, help="search for a shorter text")
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(output)
        except (re.error, OverflowError, RecursionError) as error:
            reason = error.msg if isinstance(error, re.error) else "it is too large"
            yield Finding(
                code="VX202",
                path=path,
                message=f"{quoted(output)[:80]} is not a regular expression: {reason}",
                help="a character that is meant literally takes a backslash",
            )


def absolute_cache_path(file: FileView) -> Iterator[Finding]:
    """Cache paths are relative, so that a result can be used in another checkout (VX212)."""
    for task in file.tasks:
        for keys in CACHE_LISTS:
            for path, entry in task.strings(*keys):
                bare = entry.removeprefix("!")
                if bare == "~" or bare.startswith(("/", "~/")):
                    base = "workspace root" if keys[-1] == "workspaceFiles" else "project"
                    yield Finding(
                        code="VX212",
                        path=path,
                        message=f"{dotted((*task.path, *keys))} {quoted(entry)} is not relative to the {base}",
                        help=f"write it relative to the {base}",
                    )
