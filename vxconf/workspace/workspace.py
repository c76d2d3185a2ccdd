"""The library's surface: a workspace, its projects and their tasks, read when they are asked for.

Nothing here raises on what a file says: that is in `diagnostics`. One value is one look at the disk;
load again to see what has changed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.machine.ask_facts import Snapshot, home_directory, host_facts
from vxconf.workspace.load_file import Known, LoadedFile, config_file, load_file, unloaded
from vxconf.workspace.projects import ProjectFinder
from vxconf.workspace.references import Unknown, nearest, split
from vxconf.workspace.root import Root, RootFinder
from vxconf.workspace.task import Refused, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.base.host_facts import HostFacts
    from sandbox.contract.config import Platform
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.resolve.judge_block import BlockSetting
    from vxconf.resolve.task_model import TaskModel
    from vxconf.workspace.task_graph import TaskGraph


def load(path: str = ".") -> Workspace:
    """The workspace a path belongs to.

    Args:
        path: a directory or file in it, relative to the working directory or absolute.
    """
    real = os.path.realpath(path)
    here = real if os.path.isdir(real) else os.path.dirname(real)
    return Workspace(RootFinder(home_directory()).find(here), here=here)


class Workspace:
    """A workspace root and everything below it."""

    def __init__(self, root: Root, *, here: str | None = None, name_of: Callable[[str], str] | None = None) -> None:
        """Takes a root, the directory bare task names are looked up from, and how to spell a file's name."""
        self._root = root
        self._here = here or root.path
        self._name_of = name_of or self._relative
        self._loaded: dict[str, Project] = {}
        self._projects = ProjectFinder(root)
        self._facts: dict[Platform, HostFacts] = {}
        #: Files loaded before; see `vxconf.workspace.load_file`.
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
        """What a plan needs to know of this machine."""
        return host_facts()

    def facts_on(self, platform: Platform) -> HostFacts:
        """The same facts, were this machine of that platform."""
        if platform not in self._facts:
            self._facts[platform] = replace(self.facts, platform=platform)
        return self._facts[platform]

    @cached_property
    def files(self) -> Snapshot:
        """The file system, as this value has seen it."""
        return Snapshot()

    @cached_property
    def store_places(self) -> frozenset[str]:
        """Where credential stores of this user are or would be."""
        from vxconf.lint.grant_warnings import store_places

        return store_places(self.facts.home, self.files)

    @cached_property
    def cache_dir(self) -> str | None:
        """The run's cache directory, canonical, as `.vx/workspace.toml` names it."""
        named = self._projects.members.cache_dir
        return os.path.realpath(os.path.join(self.root, os.path.expanduser(named))) if named else None

    @cached_property
    def projects(self) -> tuple[Project, ...]:
        """Every project, by directory.

        Raises:
            TooManyDirectories: the workspace is too large to be searched.
        """
        return tuple(self.project_at(directory) for directory in self._projects.all())

    @property
    def unreadable(self) -> tuple[Project, ...]:
        """The projects whose file may have tasks nobody can see."""
        return tuple(one for one in self.projects if one.loaded is not None and one.loaded.hides_tasks)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task of every project, by project and name."""
        return tuple(task for project in self.projects for task in project.tasks)

    @property
    def index(self) -> ProjectFinder:
        """The projects as directories."""
        return self._projects

    @cached_property
    def graph(self) -> TaskGraph:
        """Which tasks the key of a task folds."""
        from vxconf.workspace.task_graph import TaskGraph

        return TaskGraph(self)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What `check` finds in the whole workspace, file by file."""
        from vxconf.workspace.check_files import check_workspace

        return check_workspace(self)

    def project_at(self, directory: str) -> Project:
        """The project in a canonical directory, which is taken to be one."""
        project = self._loaded.get(directory)
        if project is None:
            project = self._loaded[directory] = Project(self, directory)
        return project

    def name_of(self, path: str) -> str:
        """How a file is named in reports."""
        return self._name_of(path)

    def project(self, reference: str) -> Project:
        """The project of a directory from the root, or of a name.

        Raises:
            Unknown: there is none, or there are several of that name.
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
        raise Unknown(f'no project "{reference}" in the workspace {self.root}', nearest(reference, known))

    def task(self, reference: str) -> Task:
        """The task of a reference: `build`, `apps/shop#build` or `@acme/shop#build`.

        A bare name is looked up in the project of the directory the workspace was loaded from.

        Raises:
            Unknown: there is no such project or task; the message suggests the nearest.
            Refused: the file that would have it cannot be read; its diagnostics.
        """
        found = self.asked(reference)
        if found.project.task(found.name) is None:
            raise Refused(tuple(d for d in found.project.diagnostics if d.is_error))
        return found

    def asked(self, reference: str) -> Task:
        """As `task`; where the file cannot be read, a task without a model that is refused for what is wrong with it.

        Raises:
            Unknown: as `task`.
        """
        named, name = split(reference)
        if named is not None:
            project = self.project(named)
        else:
            directory = self._projects.enclosing(self._here)
            if directory is None:
                near = nearest(name, [task.name for task in self.tasks], count=1)
                known = [task.id for task in self.tasks if task.name in {name, *near}][:3]
                raise Unknown(f'no task "{name}": {self._here} is in no project', tuple(known))
            project = self.project_at(directory)
        task = project.asked(name)
        if task is not None:
            return task
        raise Unknown(f'no task "{name}" in {project.title}', self._near(project, name))

    def _near(self, project: Project, name: str) -> tuple[str, ...]:
        near = nearest(name, [task.name for task in project.tasks])
        if near:
            return near
        return tuple(task.id for task in self.tasks if task.name == name)[:3]

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root) if path.startswith(self.root + "/") else path


class Project:
    """A directory with tasks, or one the workspace names."""

    def __init__(self, workspace: Workspace, directory: str) -> None:
        """Takes a canonical directory of the workspace."""
        self.workspace = workspace
        self.directory = directory
        self._settings: dict[Platform, BlockSetting] = {}

    def __repr__(self) -> str:
        return f"Project({self.relative!r})"

    @property
    def relative(self) -> str:
        """The directory from the workspace root, `.` for the root itself."""
        return os.path.relpath(self.directory, self.workspace.root)

    @property
    def title(self) -> str:
        """How a sentence names it."""
        return self.directory if self.relative == "." else self.relative

    @cached_property
    def loaded(self) -> LoadedFile | None:
        """Its task file; `None` when it has none."""
        found = config_file(self.directory, self.workspace.name_of)
        if found is None:
            return None
        if isinstance(found, str):
            return load_file(found, file=self.workspace.name_of(found), known=self.workspace.known)
        return unloaded(os.path.join(self.directory, "vx.json"), found)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names it goes by: its task file's, `package.json`'s, `pyproject.toml`'s."""
        from vxconf.workspace.manifests import names

        own = self.loaded.model.name if self.loaded is not None else None
        return tuple(dict.fromkeys(name for name in (own, *names(self.directory)) if name))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Its tasks by name, those with mistakes too."""
        if self.loaded is None:
            return ()
        return tuple(Task(self, name) for name in sorted(self.loaded.task_names))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the text of its file."""
        return self.loaded.diagnostics if self.loaded is not None else ()

    def task(self, name: str) -> Task | None:
        """Its task of that name."""
        return self._by_name.get(name)

    def asked(self, name: str) -> Task | None:
        """Its task of that name, or one that is refused where its file may hide it."""
        hidden = self.loaded is not None and self.loaded.hides_tasks
        return self.task(name) or (Task(self, name) if hidden else None)

    @cached_property
    def _by_name(self) -> dict[str, Task]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def models(self) -> dict[str, TaskModel]:
        """What its file says of each task without a mistake."""
        return {model.name: model for model in self.loaded.model.tasks} if self.loaded is not None else {}

    @cached_property
    def made(self) -> tuple[frozenset[str], frozenset[str]]:
        """The places its tasks write or name as outputs, and the directories those are in."""
        from vxconf.workspace.check_files import places_made

        places = frozenset(places_made(self))
        return places, frozenset(above for place in places for above in paths.parents(place))

    def setting(self, platform: Platform) -> BlockSetting:
        """What its blocks are judged against.

        Raises:
            TooManyDirectories: the project is too large to be searched for others in it.
        """
        from vxconf.resolve.judge_block import BlockSetting

        if platform not in self._settings:
            workspace = self.workspace
            self._settings[platform] = BlockSetting(
                platform=platform,
                workspace=workspace.root,
                project=self.directory,
                projects=workspace.index,
                cache_dir=workspace.cache_dir,
                files=workspace.files,
                facts=workspace.facts_on(platform),
            )
        return self._settings[platform]
