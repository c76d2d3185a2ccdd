"""A project of a workspace and its tasks: what the project's file says, and what becomes of each sandbox block.

A project and its tasks see the workspace around them as an `EnclosingWorkspace`; `vxconf.workspace.workspace` is the
one that exists.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from sandbox.base import globs, paths
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.machine.ask_facts import HostFiles
from vxconf.diagnostics.diagnostic import Diagnostic, Severity, dotted, in_order
from vxconf.workspace.load_file import START, config_file, file_without_tasks, load_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import HostFacts
    from sandbox.contract.config import Platform, ResolvedSandboxConfig
    from sandbox.machine.ask_facts import Snapshot
    from sandbox.request.request import Request
    from vxconf.resolve.judge_block import BlockSetting, JudgedBlock, UpstreamTasks
    from vxconf.resolve.task_model import TaskModel
    from vxconf.workspace.find_projects import ProjectFinder
    from vxconf.workspace.load_file import Known, LoadedFile
    from vxconf.workspace.root import Root


class Refused(Exception):
    """A task that cannot be resolved or run.

    Attributes:
        diagnostics: every reason, in file order.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(f"{d.file}:{d.place.line}:{d.place.column}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


class EnclosingWorkspace(Protocol):
    """A workspace as its projects, its tasks and their checks see it; `Workspace` documents each member."""

    known: Known

    @property
    def root(self) -> str:
        """The canonical root directory."""

    @property
    def chosen_by(self) -> Root:
        """The root with the rule that chose it."""

    @property
    def index(self) -> ProjectFinder:
        """The projects as directories."""

    @property
    def files(self) -> Snapshot:
        """The file system as it was first seen."""

    @property
    def credential_stores(self) -> frozenset[str]:
        """The places of the user's credential stores."""

    @property
    def cache_dir(self) -> str | None:
        """The cache directory of a run."""

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The faults of the workspace as a whole."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The faults of the workspace and of every file in it."""

    @property
    def projects(self) -> tuple[Project, ...]:
        """Every project."""

    @property
    def unreadable(self) -> tuple[Project, ...]:
        """The projects whose file may hide tasks."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task of every project."""

    def name_of(self, path: str) -> str:
        """The name of a file in reports."""

    def facts_on(self, platform: Platform) -> HostFacts:
        """The facts of this machine, were it of that platform."""

    def project_at(self, directory: str) -> Project:
        """The project in a directory."""

    def project(self, reference: str) -> Project:
        """The project of a reference."""

    def has_task(self, name: str) -> bool:
        """Whether any project has, or may have, a task of that name."""

    def unknown_references(self, task: Task) -> tuple[Diagnostic, ...]:
        """The refusals of a task's references to other projects that name nothing."""

    def possible_task(self, reference: str) -> Task:
        """The task of a reference, or one that an unreadable file may have."""

    def upstream_of(self, task: Task) -> UpstreamTasks:
        """The outputs of the tasks before a task, and the projects its cache key answers for."""


class Project:
    """A directory with tasks, or one the workspace names."""

    def __init__(self, workspace: EnclosingWorkspace, directory: str) -> None:
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
        """The project's name in a sentence: its directory from the root, the absolute one for the root itself."""
        return self.directory if self.relative == "." else self.relative

    @cached_property
    def loaded(self) -> LoadedFile | None:
        """The project's task file; `None` when it has none."""
        found = config_file(self.directory, self.workspace.name_of)
        if found is None:
            return None
        if isinstance(found, str):
            return load_file(found, file=self.workspace.name_of(found), known=self.workspace.known)
        return file_without_tasks(os.path.join(self.directory, "vx.json"), found)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names the project goes by: its task file's, `package.json`'s, `pyproject.toml`'s."""
        from vxconf.workspace.manifests import manifest_names

        own = self.loaded.model.name if self.loaded is not None else None
        return tuple(dict.fromkeys(name for name in (own, *manifest_names(self.directory)) if name))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The project's tasks by name, those with mistakes too."""
        if self.loaded is None:
            return ()
        return tuple(Task(self, name) for name in sorted(self.loaded.task_names))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The faults in the text of the project's file, in file order."""
        return self.loaded.diagnostics if self.loaded is not None else ()

    def task(self, name: str) -> Task | None:
        """The project's task of that name, `None` when it has none."""
        return self._by_name.get(name)

    def possible_task(self, name: str) -> Task | None:
        """The project's task of that name, or one without a model where the project's file may hide it."""
        hidden = self.loaded is not None and self.loaded.hides_tasks
        return self.task(name) or (Task(self, name) if hidden else None)

    @cached_property
    def _by_name(self) -> dict[str, Task]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def models(self) -> dict[str, TaskModel]:
        """The model of each task by its name; of a task with mistakes the well-formed part."""
        return {model.name: model for model in self.loaded.model.tasks} if self.loaded is not None else {}

    @cached_property
    def made(self) -> tuple[frozenset[str], frozenset[str]]:
        """The places the project's tasks write or name as outputs, and the directories above those places."""
        places = frozenset(place for task in self.tasks for place in task.places_made())
        return places, frozenset(above for place in places for above in paths.parents(place))

    def setting(self, platform: Platform) -> BlockSetting:
        """The setting that the project's blocks are judged against.

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


class Task:
    """One task of a project."""

    def __init__(self, project: Project, name: str) -> None:
        """Takes the project that has the task, and the task's name."""
        self.project = project
        self.name = name
        self._judged: dict[Platform, JudgedBlock | None] = {}

    def __repr__(self) -> str:
        return f"Task({self.id!r})"

    @property
    def id(self) -> str:
        """The task's full reference, such as `apps/shop#build`."""
        return f"{self.project.relative}#{self.name}"

    @property
    def model(self) -> TaskModel | None:
        """The task as its file says it, of one with mistakes the well-formed part; `None` where the file hides it."""
        return self.project.models.get(self.name)

    @property
    def has_mistakes(self) -> bool:
        """Whether the model is not all of the task."""
        loaded = self.project.loaded
        return self.model is None or loaded is None or self.name in loaded.broken

    @property
    def command(self) -> str | None:
        """The command line, `None` for a group, and for a task whose mistakes hide it."""
        model = self.model
        return (model.exec.command or None) if model is not None and model.exec is not None else None

    @property
    def sandboxed(self) -> bool:
        """Whether the task has a sandbox block; one whose mistakes may hide a block counts as having one."""
        model = self.model
        if model is None or self.has_mistakes:
            return True
        return model.exec is not None and model.exec.sandbox is not None

    @property
    def output_files(self) -> tuple[str, ...]:
        """The patterns of `cache.outputs.files`, relative to the project."""
        model = self.model
        return model.cache.output_files if model is not None and model.cache is not None else ()

    def places_made(self) -> Iterator[str]:
        """The places where the task's write grants and output patterns begin; of a pattern without its wildcards."""
        judged = self.judged("linux")
        written = judged.resolution.config.allow_write if judged is not None else ()
        directory = globs.escape(self.project.directory)
        for grant in map(globs.collapse, (*written, *(paths.join(directory, glob) for glob in self.output_files))):
            yield globs.head(grant)

    def judged(self, platform: Platform | None = None) -> JudgedBlock | None:
        """The task's block, judged, of one with mistakes the well-formed part; `None` when there is none.

        Raises:
            TooManyDirectories: see `Project.setting`.
        """
        platform = platform or this_platform()
        if platform not in self._judged:
            self._judged[platform] = self._judge(platform)
        return self._judged[platform]

    def _judge(self, platform: Platform) -> JudgedBlock | None:
        from vxconf.resolve.judge_block import judge_block

        model, loaded = self.model, self.project.loaded
        if model is None or model.exec is None or model.exec.sandbox is None or loaded is None:
            return None
        assert loaded.document is not None  # noqa: S101  a model comes from a document
        setting, workspace = self.project.setting(platform), self.project.workspace
        return judge_block(model.exec.sandbox, loaded.document, setting, lambda: workspace.upstream_of(self))

    def diagnostics(self, platform: Platform | None = None) -> tuple[Diagnostic, ...]:
        """Every reason to refuse the task, in file order: its file's, its workspace's, its references', its block's."""
        found = [d for d in self.project.diagnostics if d.is_error]
        problems = tuple(d for d in self.project.workspace.problems if d.is_error)
        if problems:
            return (*found, *problems)
        # a field that the text alone refuses is not refused again for the file system
        refused = {diagnostic.path for diagnostic in found}
        judged = self.judged(platform)
        more = (*self.project.workspace.unknown_references(self), *(judged.refusals if judged is not None else ()))
        return in_order((*found, *(one for one in more if one.path not in refused)))

    def resolve(self, platform: Platform | None = None) -> ResolvedSandboxConfig:
        """The frozen config of the task's sandbox block.

        Raises:
            Refused: the file, the workspace or the block is refused, or there is no block; all reasons.
        """
        refusals = self.diagnostics(platform)
        if refusals:
            raise Refused(refusals)
        judged = self.judged(platform)
        if judged is None:
            raise Refused((self._without_block(),))
        return judged.resolution.config

    def _without_block(self) -> Diagnostic:
        """The refusal to resolve a task that has no block."""
        loaded, path = self.project.loaded, ("tasks", self.name)
        place = START
        if loaded is not None and loaded.document is not None:
            from vxconf.document.spans import locate

            place = locate(loaded.document, path)
        return Diagnostic(
            code="VX104",
            severity=Severity.ERROR,
            file=loaded.file if loaded is not None else self.project.title,
            place=place,
            path=dotted(path),
            message=f'task "{self.name}" has no sandbox block to resolve',
            help="add exec.sandbox to it; an empty table is the baseline",
        )

    def request(self, platform: Platform | None = None) -> Request:
        """The engine's request for one attempt, as the file system is now.

        The tasks that the task depends on have to be run before: their outputs are looked up.

        Raises:
            Refused: see `resolve`; also for a cache key with a file that no grant reaches.
        """
        self.resolve(platform)
        judged = self.judged(platform)
        assert judged is not None  # noqa: S101  resolve has refused a task without a block
        return self._request(judged)

    def _request(self, judged: JudgedBlock) -> Request:
        from vxconf.resolve.judge_block import refusal_diagnostic
        from vxconf.resolve.unreadable_cache_inputs import unreadable_inputs

        loaded, model = self.project.loaded, self.model
        assert loaded is not None and loaded.document is not None and model is not None  # noqa: S101, PT018  see _judge
        files = HostFiles()
        try:
            request = judged.request_now(files)
        except (Refusal, RequestRefused) as fault:
            found = fault.refusals if isinstance(fault, RequestRefused) else (fault,)
            path = model.exec.sandbox.path if model.exec is not None and model.exec.sandbox is not None else model.path
            raise Refused(tuple(refusal_diagnostic(refusal, path, loaded.document) for refusal in found)) from None
        assert request is not None  # noqa: S101  a block without refusals has a bare request
        if refusals := unreadable_inputs(request, model, loaded.document, files):
            raise Refused(refusals)
        return request


def this_platform() -> Platform:
    """The platform of this machine."""
    return "macos" if sys.platform == "darwin" else "linux"
