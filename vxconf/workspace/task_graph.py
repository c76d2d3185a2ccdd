"""The graph of a workspace's tasks: which tasks run before a task.

`dependsOn` and `cache.inputs.tasks` are the edges.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.manifests import manifest_dependencies, python_name
from vxconf.workspace.references import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.resolve.task_model import TaskModel
    from vxconf.workspace.project import EnclosingWorkspace, Project, Task


class TaskGraph:
    """The tasks of one workspace and the tasks they refer to; manifests are read once a reference begins with `^`."""

    def __init__(self, workspace: EnclosingWorkspace) -> None:
        self._workspace = workspace
        self._direct: dict[str, tuple[Project, ...]] = {}

    def makers_before(self, task: Task) -> tuple[Task, ...]:
        """The tasks that run before a task and have output patterns, nearest first, whatever lies between."""
        before = self.before(task, through=lambda _: True)
        return tuple(other for other in before if other.model is not None and other.model.cache is not None)

    def before(self, task: Task, *, through: Callable[[TaskModel], bool]) -> Iterator[Task]:
        """The tasks that run before a task, each once, nearest first; the search ends at a model `through` refuses."""
        seen = {task.id}
        todo = list(self.references(task))
        while todo:
            other = todo.pop(0)
            if other.id in seen:
                continue
            seen.add(other.id)
            if other.model is None or not through(other.model):
                continue
            yield other
            todo += self.references(other)

    def references(self, task: Task) -> Iterator[Task]:
        """The tasks a task refers to, in file order.

        A name that no task has is left out: a check refuses it. A task that an unreadable file may have is among them,
        without a model.
        """
        model = task.model
        if model is None:
            return
        own = model.cache.input_tasks if model.cache is not None else ()
        for reference in dict.fromkeys((*model.depends_on, *own)):
            yield from self._named(task, reference)

    def _named(self, task: Task, reference: str) -> Iterator[Task]:
        if reference.startswith("^"):
            for project in self.packages(task.project):
                found = project.possible_task(reference[1:])
                if found is not None:
                    yield found
        elif "#" in reference:
            try:
                yield self._workspace.possible_task(reference)
            except Unknown:
                # the project's name may stand in a file that cannot be read
                name = reference.rpartition("#")[2]
                yield from filter(None, (project.possible_task(name) for project in self._workspace.unreadable))
            except TooManyDirectories:
                return
        else:
            found = task.project.task(reference)
            if found is not None:
                yield found

    def packages(self, project: Project) -> tuple[Project, ...]:
        """The projects of the workspace that a project's manifests depend on."""
        found = self._direct.get(project.directory)
        if found is None:
            npm, python = manifest_dependencies(project.directory)
            named = [self._by_name.get(name) for name in npm] + [self._by_python_name.get(name) for name in python]
            others = {one.directory: one for one in named if one is not None and one is not project}
            found = self._direct[project.directory] = tuple(others.values())
        return found

    @cached_property
    def _by_name(self) -> dict[str, Project]:
        try:
            projects = self._workspace.projects
        except TooManyDirectories:
            return {}
        return {name: project for project in reversed(projects) for name in project.names}

    @cached_property
    def _by_python_name(self) -> dict[str, Project]:
        return {python_name(name): project for name, project in self._by_name.items()}
