"""The references of a task that name nothing: no task of a named project, or of any project where they begin with `^`.

A reference to a task of the same file is judged by the rules on the file's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.validate.finding import Finding
from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.references import Unknown, split_reference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.resolve.task_model import FieldPath
    from vxconf.workspace.project import EnclosingWorkspace, Project, Task

_LISTS = (("dependsOn",), ("cache", "inputs", "tasks"))


def unknown_references(task: Task) -> tuple[Diagnostic, ...]:
    """The refusals of a task's references to other projects that name nothing, in file order."""
    return tuple(diagnostic for _, diagnostic in _unknown(task))


def references_broken_elsewhere(
    workspace: EnclosingWorkspace, changed: Collection[str]
) -> Iterator[tuple[Project, Diagnostic]]:
    """The references of other projects that name nothing, and that a change of some projects may have broken.

    A project that is not found counts, since a changed file may have had its name.

    Args:
        workspace: the workspace.
        changed: the canonical directories of the projects that may have changed.

    Yields:
        Each refusal, with the project whose file it is in.
    """
    try:
        projects = workspace.projects
    except TooManyDirectories:
        return
    for project in projects:
        if project.directory in changed:
            continue
        for task in project.tasks:
            for reference, diagnostic in _unknown(task):
                if _may_mean(workspace, reference, changed):
                    yield project, diagnostic


def _may_mean(workspace: EnclosingWorkspace, reference: str, changed: Collection[str]) -> bool:
    """Whether a reference that names nothing may mean a task of one of these projects."""
    named, _ = split_reference(reference)
    if named is None:
        return True
    try:
        return workspace.project(named).directory in changed
    except Unknown:
        return True


def _unknown(task: Task) -> Iterator[tuple[str, Diagnostic]]:
    loaded = task.project.loaded
    if loaded is None or loaded.document is None:
        return
    for path, reference in _references(task.name, loaded.document.data):
        try:
            fault = _named_nowhere(task, reference[1:]) if reference[0] == "^" else _not_found(task, reference)
        except TooManyDirectories:
            return
        if fault is not None:
            message, remedy = fault
            yield (
                reference,
                Finding(code="VX312", path=path, message=message, help=remedy).to_diagnostic(loaded.document),
            )


def _references(name: str, data: Any) -> Iterator[tuple[FieldPath, str]]:
    """The references of a task to other projects, from a file that may have mistakes."""
    for keys in _LISTS:
        value = data
        for key in ("tasks", name, *keys):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, list):
            for index, entry in enumerate(value):
                if isinstance(entry, str) and ("#" in entry[1:] or entry[:1] == "^"):
                    yield ("tasks", name, *keys, index), entry


def _named_nowhere(task: Task, name: str) -> tuple[str, str] | None:
    """The fault of `^name`: no project of the workspace has a task of that name.

    It is no fault that a project has no dependencies, or that those it has lack the task.
    """
    workspace = task.project.workspace
    if not name or task.project.possible_task(name) is not None or workspace.has_task(name):
        return None
    from vxconf.nearest_names import near_names  # only a misspelt name needs it

    near = near_names(name, {other.name for other in workspace.tasks}, count=1)
    message = f'no project of the workspace {workspace.root} has a task "{name}"'
    return message, f'did you mean "^{near[0]}"?' if near else "check the spelling"


def _not_found(task: Task, reference: str) -> tuple[str, str] | None:
    """The fault of `project#name`: there is no such project, or it has no such task."""
    try:
        other = task.project.workspace.possible_task(reference)
    except Unknown as fault:
        return fault.message, f"did you mean {' or '.join(fault.near)}?" if fault.near else "check the spelling"
    if other.project.task(other.name) is not None:
        return None
    return "the file that would have this task is refused", f"repair the task file of {other.project.title}"
