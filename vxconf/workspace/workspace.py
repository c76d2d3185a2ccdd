"""A workspace: its projects and their tasks, each read from disk when it is first asked for.

No mistake in a file raises: `diagnostics` has them all. One `Workspace` is one look at the disk; another one sees what
has changed since.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox.machine.ask_facts import Snapshot, home_directory, host_facts
from vxconf.workspace.check_files import check_workspace, workspace_diagnostics
from vxconf.workspace.find_projects import ProjectFinder, misnamed_in
from vxconf.workspace.project import Project, Refused, Task
from vxconf.workspace.references import Unknown, split_reference
from vxconf.workspace.root import Root, RootFinder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.base.host_facts import HostFacts
    from sandbox.contract.config import Platform
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.resolve.judge_block import UpstreamTasks
    from vxconf.workspace.load_file import Known
    from vxconf.workspace.task_graph import TaskGraph


def load(path: str = ".") -> Workspace:
    """The workspace a path belongs to; never raises on what its files say.

    Args:
        path: a directory or file in the workspace, relative to the working directory or absolute.
    """
    real = os.path.realpath(path)
    here = real if os.path.isdir(real) else os.path.dirname(real)
    return Workspace(RootFinder(home_directory()).find(here), here=here)


class Workspace:
    """A workspace root and everything below it."""

    def __init__(self, root: Root, *, here: str | None = None, name_of: Callable[[str], str] | None = None) -> None:
        """Opens a workspace; no file is read yet.

        Args:
            root: the workspace root.
            here: the canonical directory whose project has the tasks of bare names; the root by default.
            name_of: gives the name of an absolute path in reports; by default the path from the root.
        """
        self._root = root
        self._here = here or root.path
        self._name_of = name_of or self._relative
        self._loaded: dict[str, Project] = {}
        self._projects = ProjectFinder(root)
        self._facts: dict[Platform, HostFacts] = {}
        self._named_tasks: dict[str, bool] = {}
        #: The files loaded before; see `vxconf.workspace.load_file`.
        self.known: Known = {}

    def __repr__(self) -> str:
        return f"Workspace({self.root!r})"

    @property
    def root(self) -> str:
        """The canonical root directory."""
        return self._root.path

    @property
    def chosen_by(self) -> Root:
        """The root with the rule that chose it."""
        return self._root

    @cached_property
    def facts(self) -> HostFacts:
        """The facts of this machine that a plan needs."""
        return host_facts()

    def facts_on(self, platform: Platform) -> HostFacts:
        """The facts of this machine, were it of that platform."""
        if platform not in self._facts:
            self._facts[platform] = replace(self.facts, platform=platform)
        return self._facts[platform]

    @cached_property
    def files(self) -> Snapshot:
        """The file system as it was when this workspace first looked at each place."""
        return Snapshot()

    @cached_property
    def credential_stores(self) -> frozenset[str]:
        """The canonical paths where credential stores of this user are or would be."""
        from vxconf.lint.grant_warnings import credential_store_places

        return credential_store_places(self.facts.homes, self.files)

    @cached_property
    def cache_dir(self) -> str | None:
        """The canonical cache directory that `.vx/workspace.toml` names; `None` when it names none."""
        named = self._projects.members.cache_dir
        return os.path.realpath(os.path.join(self.root, os.path.expanduser(named))) if named else None

    @cached_property
    def projects(self) -> tuple[Project, ...]:
        """Every project, sorted by directory.

        Raises:
            TooManyDirectories: the workspace is too large to be searched.
        """
        return tuple(self.project_at(directory) for directory in self._projects.all())

    @property
    def unreadable(self) -> tuple[Project, ...]:
        """The projects whose file may hide tasks; see `LoadedFile.hides_tasks`."""
        return tuple(one for one in self.projects if one.loaded is not None and one.loaded.hides_tasks)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task of every project, by project and name."""
        return tuple(task for project in self.projects for task in project.tasks)

    def has_task(self, name: str) -> bool:
        """Whether a project of the workspace has a task of that name, or an unreadable file may have one.

        Raises:
            TooManyDirectories: see `projects`.
        """
        if name not in self._named_tasks:
            self._named_tasks[name] = any(project.possible_task(name) is not None for project in self.projects)
        return self._named_tasks[name]

    def unknown_references(self, task: Task) -> tuple[Diagnostic, ...]:
        """The refusals of a task's references to other projects that name nothing."""
        from vxconf.workspace.unknown_references import unknown_references

        return unknown_references(task)

    @property
    def index(self) -> ProjectFinder:
        """The projects as directories."""
        return self._projects

    @cached_property
    def graph(self) -> TaskGraph:
        """The graph of the tasks by what they refer to."""
        from vxconf.workspace.task_graph import TaskGraph

        return TaskGraph(self)

    def upstream_of(self, task: Task) -> UpstreamTasks:
        """The outputs of the tasks before a task, and the projects its cache key answers for."""
        from vxconf.workspace.keyed_tasks import upstream_of

        return upstream_of(self.graph, task)

    @cached_property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The faults of the workspace as a whole, which are no one file's."""
        return workspace_diagnostics(self)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every diagnostic that `check` prints for the whole workspace: its own, then file by file."""
        return check_workspace(self)

    def project_at(self, directory: str) -> Project:
        """The project in a canonical directory; whether there is one is not looked at."""
        project = self._loaded.get(directory)
        if project is None:
            project = self._loaded[directory] = Project(self, directory)
        return project

    def name_of(self, path: str) -> str:
        """The name of an absolute path in reports."""
        return self._name_of(path)

    def project(self, reference: str) -> Project:
        """The project of a reference: a directory from the root, or a project's name.

        Raises:
            Unknown: no project has that directory or name, or several have the name.
            TooManyDirectories: see `projects`.
        """
        directory = os.path.normpath(os.path.join(self.root, reference))
        if directory in self._projects.all():
            return self.project_at(directory)
        found = [project for project in self.projects if reference in project.names]
        if len(found) == 1:
            return found[0]
        if found:
            places = " and ".join(project.relative for project in found)
            raise Unknown(f'project "{reference}" is in {places}: name its directory')
        known = [name for project in self.projects for name in (project.relative, *project.names)]
        raise Unknown(f'no project "{reference}" in the workspace {self.root}', _near_names(reference, known))

    def task(self, reference: str) -> Task:
        """The task of a reference: `build`, `apps/shop#build` or `@acme/shop#build`.

        A bare name is looked up in the project of the directory the workspace was loaded from.

        Raises:
            Unknown: there is no such project or task; the message suggests the nearest.
            Refused: the file that may have the task cannot be read; the file's diagnostics.
            TooManyDirectories: see `projects`.
        """
        found = self.possible_task(reference)
        if found.project.task(found.name) is None:
            raise Refused(tuple(d for d in found.project.diagnostics if d.is_error))
        return found

    def possible_task(self, reference: str) -> Task:
        """The task of a reference as `task` finds it, or one without a model where an unreadable file may have it.

        A task without a model is refused for the faults of its file.

        Raises:
            Unknown, TooManyDirectories: see `task`.
        """
        named, name = split_reference(reference)
        if named is not None:
            project = self.project(named)
        else:
            directory = self._projects.enclosing(self._here)
            if directory is None:
                near = _near_names(name, [task.name for task in self.tasks], count=1)
                known = [task.id for task in self.tasks if task.name in {name, *near}][:3]
                message = f'no task "{name}": {self._here} is in no project'
                raise Unknown(message + self._misnamed_here(), tuple(known))
            project = self.project_at(directory)
        task = project.possible_task(name)
        if task is not None:
            return task
        note = self._misnamed_here() if named is None and project.directory != self._here else ""
        raise Unknown(f'no task "{name}" in {project.title}{note}', self._near(project, name))

    def _misnamed_here(self) -> str:
        """The end of a message where the directory of bare names has a file that may be meant as its task file."""
        found = next(misnamed_in(self._here), None)
        return f", and {os.path.basename(found.path)} is not read: {found.remedy}" if found is not None else ""

    def _near(self, project: Project, name: str) -> tuple[str, ...]:
        near = _near_names(name, [task.name for task in project.tasks])
        if near:
            return near
        return tuple(task.id for task in self.tasks if task.name == name)[:3]

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root) if path.startswith(self.root + "/") else path


def _near_names(name: str, known: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    from vxconf.nearest_names import near_names  # only a misspelt name needs it

    return near_names(name, known, count=count)
