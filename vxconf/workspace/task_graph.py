"""The graph of a workspace's tasks: which tasks run before a task, and which of them its cache key folds.

`dependsOn` and `cache.inputs.tasks` are the edges. A group has no cache key, and a key folds what the group names. A
task without a cache has no key either: a key stops there and folds neither that task nor what it depends on.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sandbox.request.task_outputs import Declared, anchored
from vxconf.resolve.judge_block import Folded
from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.manifests import manifest_dependencies, python_name
from vxconf.workspace.references import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.resolve.task_model import TaskModel
    from vxconf.workspace.project import EnclosingWorkspace, Project, Task


class TaskGraph:
    """The tasks of one workspace and what they refer to; manifests are read when a `^` is met."""

    def __init__(self, workspace: EnclosingWorkspace) -> None:
        self._workspace = workspace
        self._direct: dict[str, tuple[Project, ...]] = {}

    def folded(self, task: Task) -> Folded:
        """What the cache key of a task folds of other tasks."""
        return Folded(
            keyed=self.keyed(task),
            made=tuple((other.project.directory, other.output_files) for other in self.folded_tasks(task)),
            declared=Declared(
                own=anchored(task.project.directory, task.output_files),
                upstream=tuple(
                    (one.id, anchored(one.project.directory, one.output_files)) for one in self.upstream(task)
                ),
            ),
        )

    def folded_tasks(self, task: Task) -> tuple[Task, ...]:
        """Every task with a cache that the key of this one folds, nearest first; nothing for one without a cache."""
        if task.model is None or task.model.cache is None:
            return ()
        # a key stops at what runs without one; a group only passes on
        keyed = self._before(task, through=lambda model: model.exec is None or model.cache is not None)
        return tuple(other for other in keyed if other.model is not None and other.model.exec is not None)

    def upstream(self, task: Task) -> tuple[Task, ...]:
        """Every task that says what it makes and runs before this one, nearest first; a cache is no matter."""
        before = self._before(task, through=lambda _: True)
        return tuple(other for other in before if other.model is not None and other.model.cache is not None)

    def _before(self, task: Task, *, through: Callable[[TaskModel], bool]) -> Iterator[Task]:
        """Every task that runs before this one, each once, nearest first, as far as `through` lets pass."""
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

    def keyed(self, task: Task) -> frozenset[str] | None:
        """The directories of the projects a task's key answers for; `None` for a task without a cache.

        A server keeps running past any key, so it has none.
        """
        model = task.model
        if model is None or model.cache is None or (model.exec is not None and model.exec.persistent is not None):
            return None
        return frozenset(other.project.directory for other in self.folded_tasks(task))

    def references(self, task: Task) -> Iterator[Task]:
        """The tasks a task names, in file order; a name nobody has is left out, and a check says so.

        One that a file which cannot be read may have is among them, without a model.
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
                # the name of a project may stand in a file that cannot be read
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
