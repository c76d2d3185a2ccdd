"""One task of a workspace: what its file says, what became of its block, what may be run of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.machine.ask_facts import HostFiles

if TYPE_CHECKING:
    from sandbox.contract.config import Platform, ResolvedSandboxConfig
    from sandbox.request.build import Request
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.resolve.judge_block import Folded, JudgedBlock
    from vxconf.resolve.task_model import TaskModel
    from vxconf.workspace.workspace import Project


class Refused(Exception):
    """A task that cannot be resolved or run.

    Attributes:
        diagnostics: every reason, in file order.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(f"{d.file}:{d.place.line}:{d.place.column}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


def this_platform() -> Platform:
    """The platform of this machine."""
    return "macos" if sys.platform == "darwin" else "linux"


class Task:
    """One task of a project."""

    def __init__(self, project: Project, name: str) -> None:
        """Takes the project that has it."""
        self.project = project
        self.name = name
        self._judged: dict[Platform, JudgedBlock | None] = {}

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

    def judged(self, platform: Platform | None = None) -> JudgedBlock | None:
        """What became of its block; `None` when it has none, or one with mistakes.

        Raises:
            TooManyDirectories: see `Project.setting`.
        """
        platform = platform or this_platform()
        if platform not in self._judged:
            self._judged[platform] = self._judge(platform)
        return self._judged[platform]

    def _judge(self, platform: Platform) -> JudgedBlock | None:
        from vxconf.resolve.judge_block import judge

        model, loaded = self.model, self.project.loaded
        if model is None or model.exec is None or model.exec.sandbox is None or loaded is None:
            return None
        assert loaded.document is not None  # noqa: S101  a model comes from a document
        return judge(model.exec.sandbox, loaded.document, self.project.setting(platform), self._folded)

    def _folded(self) -> Folded:
        from sandbox.request.task_outputs import Declared, anchored
        from vxconf.resolve.judge_block import Folded

        def outputs(task: Task) -> tuple[str, ...]:
            return task.model.cache.output_files if task.model is not None and task.model.cache is not None else ()

        graph, place = self.project.workspace.graph, self.project.directory
        return Folded(
            keyed=graph.keyed(self),
            made=tuple((other.project.directory, outputs(other)) for other in graph.folded(self)),
            declared=Declared(
                own=anchored(place, outputs(self)),
                upstream=tuple((one.id, anchored(one.project.directory, outputs(one))) for one in graph.upstream(self)),
            ),
        )

    def diagnostics(self, platform: Platform | None = None) -> tuple[Diagnostic, ...]:
        """Every reason why it would be refused, in file order: its file's, its workspace's, its block's."""
        from vxconf.workspace.check_files import workspace_diagnostics

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
        from vxconf.resolve.judge_block import not_yet

        refusals = tuple(d for d in self.diagnostics(platform) if not not_yet(d))
        if refusals:
            raise Refused(refusals)
        judged = self.judged(platform)
        if judged is None:
            from vxconf.workspace.check_files import unsandboxed

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

    def _request(self, judged: JudgedBlock) -> Request:
        from vxconf.resolve.cache_inputs import unread
        from vxconf.resolve.judge_block import diagnose

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
