"""The look-up of the task a user named, and the text of its diagnostics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.machine.ask_facts import home_directory
from vxconf.cli.console import UsageError
from vxconf.diagnostics.render import diagnostics_text
from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.load_file import load_file
from vxconf.workspace.references import Unknown
from vxconf.workspace.root import RootFinder
from vxconf.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.workspace.project import Task


def workspace_here() -> Workspace:
    """The workspace of the working directory."""
    cwd = os.getcwd()
    finder = RootFinder(home_directory())
    return Workspace(finder.find(os.path.realpath(cwd)), here=os.path.realpath(cwd), name_of=os.path.relpath)


def find_task(reference: str) -> Task:
    """The task of the workspace here that a user named; see `task_in`."""
    return task_in(workspace_here(), reference)


def task_in(workspace: Workspace, reference: str) -> Task:
    """The task of a workspace that a user named.

    Args:
        workspace: the workspace.
        reference: the task's reference, such as `apps/shop#build`.

    Raises:
        UsageError: there is no such task; the message has the nearest names.
    """
    try:
        return workspace.possible_task(reference)
    except Unknown as fault:
        raise UsageError(str(fault)) from None
    except TooManyDirectories as fault:
        raise UsageError(f"{fault.directory} holds more directories than can be searched for projects") from None


def task_diagnostics_text(diagnostics: Iterable[Diagnostic], task: Task, *, colour: bool) -> str:
    """Diagnostics of a task as text, with the source lines they are about."""
    loaded, workspace = task.project.loaded, task.project.workspace
    found = tuple(diagnostics)
    sources = {loaded.file: loaded.text} if loaded is not None else {}
    marker = workspace.chosen_by.marker
    name = workspace.name_of(marker)
    if name not in sources and any(one.file == name for one in found) and os.path.isfile(marker):
        sources[name] = load_file(marker, file=name).text
    return diagnostics_text(found, sources, colour=colour)
