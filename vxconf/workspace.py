"""The library's surface: a workspace, its projects and their tasks, read when they are asked for.

Nothing here raises on what a file says: that is in `diagnostics`. One value is one look at the disk;
load again to see what has changed.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox.errors import Refusal, RequestRefused
from sandbox.host import HostFiles, Snapshot, home_directory, host_facts
from sandbox.light import replace
from vxconf.loading import Loaded, config_file, load_file, unloaded
from vxconf.naming import Unknown, nearest, split
from vxconf.projects import Projects
from vxconf.roots import Root, RootFinder

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract import Platform, ResolvedSandboxConfig
    from sandbox.facts import HostFacts
    from sandbox.request import Request
    from vxconf.diagnostics import Diagnostic
    from vxconf.graph import Graph
    from vxconf.judging import Folded, Judged, Setting
    from vxconf.model import TaskModel


class Refused(Exception):
    """A task that cannot be resolved or run.

    Attributes:
        diagnostics: every reason, in file order.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(f"{d.file}:{d.place.line}:{d.place.column}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


def load(path: str = ".") -> Workspace:
    """The workspace a path belongs to.

    Args:
        path: a directory or file in it, relative to the working directory or absolute.
    """
    real = os.path.realpath(path)
    here = real if os.path.isdir(real) else os.path.dirname(real)
    return Workspace(RootFinder(home_directory()).find(here), here=here)


def this_platform() -> Platform:
    """The platform of this machine."""
    return "macos" if sys.platform == "darwin" else "linux"


class Workspace:
    """A workspace root and everything below it."""

    def __init__(self, root: Root, *, here: str | None = None, name_of: Callable[[str], str] | None = None) -> None:
        """Takes a root, the directory bare task names are looked up from, and how to spell a file's name."""
        self._root = root
        self._here = here or root.path
        self._name_of = name_of or self._relative
        self._loaded: dict[str, Project] = {}
        self._projects = Projects(root)

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

    @cached_property
    def files(self) -> Snapshot:
        """The file system, as this value has seen it."""
        return Snapshot()

    @cached_property
    def store_places(self) -> frozenset[str]:
        """Where credential stores of this user are or would be."""
        from vxconf.cautions import store_places  # noqa: PLC0415  only a check asks

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
    def tasks(self) -> tuple[Task, ...]:
        """Every task of every project, by project and name."""
        return tuple(task for project in self.projects for task in project.tasks)

    @property
    def index(self) -> Projects:
        """The projects as directories."""
        return self._projects

    @cached_property
    def graph(self) -> Graph:
        """Which tasks the key of a task folds."""
        from vxconf.graph import Graph  # noqa: PLC0415  most commands never ask

        return Graph(self)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What `check` finds in the whole workspace, file by file."""
        from vxconf.checking import check_workspace  # noqa: PLC0415  reading a workspace is not judging it

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
        task = project.task(name)
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
        self._settings: dict[Platform, Setting] = {}

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
    def loaded(self) -> Loaded | None:
        """Its task file; `None` when it has none."""
        found = config_file(self.directory, self.workspace.name_of(os.path.join(self.directory, "vx.json")))
        if found is None:
            return None
        if isinstance(found, str):
            return load_file(found, file=self.workspace.name_of(found))
        return unloaded(os.path.join(self.directory, "vx.json"), found)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names it goes by: its task file's, `package.json`'s, `pyproject.toml`'s."""
        from vxconf.manifests import names  # noqa: PLC0415  most commands never ask for a name

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

    @cached_property
    def _by_name(self) -> dict[str, Task]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def models(self) -> dict[str, TaskModel]:
        """What its file says of each task without a mistake."""
        return {model.name: model for model in self.loaded.model.tasks} if self.loaded is not None else {}

    def setting(self, platform: Platform) -> Setting:
        """What its blocks are judged against.

        Raises:
            TooManyDirectories: the project is too large to be searched for others in it.
        """
        from vxconf.judging import Setting  # noqa: PLC0415  loads the engine's planner

        if platform not in self._settings:
            workspace = self.workspace
            self._settings[platform] = Setting(
                platform=platform,
                workspace=workspace.root,
                project=self.directory,
                projects=workspace.index,
                cache_dir=workspace.cache_dir,
                files=workspace.files,
                facts=replace(workspace.facts, platform=platform),
            )
        return self._settings[platform]


class Task:
    """One task of a project."""

    def __init__(self, project: Project, name: str) -> None:
        """Takes the project that has it."""
        self.project = project
        self.name = name
        self._judged: dict[Platform, Judged | None] = {}

    def __repr__(self) -> str:
        return f"Task({self.id!r})"

    @property
    def id(self) -> str:
        """`apps/shop#build`, whatever way it was asked for."""
        return f"{self.project.relative}#{self.name}"

    @property
    def model(self) -> TaskModel | None:
        """What the file says, `None` when there are mistakes in it."""
        return self.project.models.get(self.name)

    @property
    def command(self) -> str | None:
        """The command line, `None` for a group."""
        model = self.model
        return model.exec.command if model is not None and model.exec is not None else None

    @property
    def sandboxed(self) -> bool:
        """Whether it has a sandbox block."""
        model = self.model
        return model is not None and model.exec is not None and model.exec.sandbox is not None

    def judged(self, platform: Platform | None = None) -> Judged | None:
        """What became of its block; `None` when it has none, or one with mistakes.

        Raises:
            TooManyDirectories: see `Project.setting`.
        """
        platform = platform or this_platform()
        if platform not in self._judged:
            self._judged[platform] = self._judge(platform)
        return self._judged[platform]

    def _judge(self, platform: Platform) -> Judged | None:
        from vxconf.judging import judge  # noqa: PLC0415  loads the engine's planner

        model, loaded = self.model, self.project.loaded
        if model is None or model.exec is None or model.exec.sandbox is None or loaded is None:
            return None
        assert loaded.document is not None  # noqa: S101  a model comes from a document
        return judge(model.exec.sandbox, loaded.document, self.project.setting(platform), self._folded)

    def _folded(self) -> Folded:
        from sandbox.outputs import Declared, anchored  # noqa: PLC0415  see above
        from vxconf.judging import Folded  # noqa: PLC0415  see above

        def outputs(task: Task) -> tuple[str, ...]:
            return task.model.cache.output_files if task.model is not None and task.model.cache is not None else ()

        graph, place = self.project.workspace.graph, self.project.directory
        others = [(other.id, other.project.directory, outputs(other)) for other in graph.folded(self)]
        return Folded(
            keyed=graph.keyed(self),
            made=tuple((directory, patterns) for _, directory, patterns in others),
            declared=Declared(
                own=anchored(place, outputs(self)),
                upstream=tuple((name, anchored(directory, patterns)) for name, directory, patterns in others),
            ),
        )

    def diagnostics(self, platform: Platform | None = None) -> tuple[Diagnostic, ...]:
        """Every reason why it would be refused, in file order: its file's, its workspace's, its block's."""
        from vxconf.checking import workspace_diagnostics  # noqa: PLC0415  reading a task is not judging it

        found = [d for d in self.project.diagnostics if d.is_error]
        found += [d for d in workspace_diagnostics(self.project.workspace) if d.is_error]
        if not found:
            judged = self.judged(platform)
            found += judged.refusals if judged is not None else ()
        return tuple(found)

    def resolve(self, platform: Platform | None = None) -> ResolvedSandboxConfig:
        """The frozen config of its sandbox block.

        Raises:
            Refused: the file, the workspace or the block is refused, or there is no block; all reasons.
        """
        from vxconf.judging import not_yet  # noqa: PLC0415  loads the engine's planner

        refusals = tuple(d for d in self.diagnostics(platform) if not not_yet(d))
        if refusals:
            raise Refused(refusals)
        judged = self.judged(platform)
        if judged is None:
            from vxconf.checking import unsandboxed  # noqa: PLC0415  only a mistake needs it

            raise Refused((unsandboxed(self),))
        return judged.resolution.config

    def request(self, platform: Platform | None = None) -> Request:
        """The engine's request for one attempt as the file system is now: ask once the tasks it depends on have run.

        Raises:
            Refused: as `resolve`, for what is not enforced yet, and for a cache key that holds what no grant reaches.
        """
        config = self.resolve(platform)
        refusals = self.diagnostics(platform)
        judged = self.judged(platform)
        if refusals or judged is None or judged.bare is None or judged.bare.config != config:
            raise Refused(refusals)
        return self._request(judged)

    def _request(self, judged: Judged) -> Request:
        from vxconf.judging import diagnose  # noqa: PLC0415  loads the engine's planner
        from vxconf.keying import unread  # noqa: PLC0415  only what is run is asked

        loaded, model = self.project.loaded, self.model
        assert loaded is not None and loaded.document is not None and model is not None  # noqa: S101, PT018  see _judge
        files = HostFiles()
        try:
            request = judged.request_now(files)
        except (Refusal, RequestRefused) as fault:
            found = fault.refusals if isinstance(fault, RequestRefused) else (fault,)
            path = model.exec.sandbox.path if model.exec is not None and model.exec.sandbox is not None else model.path
            raise Refused(tuple(diagnose(refusal, path, loaded.document) for refusal in found)) from None
        assert request is not None  # noqa: S101  there is a bare one
        if refusals := unread(request, model, loaded.document, files):
            raise Refused(refusals)
        return request
