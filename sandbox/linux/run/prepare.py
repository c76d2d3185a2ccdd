"""EFFECT: the preparation of one run on Linux: its programs, its plan, its directories, its staging area."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.errors import NotStarted
from sandbox.linux.run import choose_observer
from sandbox.linux.warden_messages import Base
from sandbox.machine.ask_facts import Snapshot
from sandbox.machine.required_programs import check_bwrap, find_bwrap
from sandbox.planning import linux_plan
from sandbox.scratch import grant_directories, names_left_behind, staging_area

if TYPE_CHECKING:
    import contextlib

    from sandbox.machine.learned_kernel_limits import LearnedKernelLimits
    from sandbox.planning.path_reach import Plan
    from sandbox.request.request import Request

#: Observers that let every call go on.
WITHOUT_ANSWERS = ("none", "strace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The programs one run is built and observed by.

    Attributes:
        base: what the sandbox is built on.
        tracer: absolute path of strace, where it is the observer; else empty.
    """

    base: Base
    tracer: str = ""


def find_programs(request: Request, observer: str, machine: LearnedKernelLimits, *, nested: bool) -> Programs:
    """The programs of a run.

    Args:
        request: nothing in its workspace is taken.
        observer: the observer of the run.
        machine: what the session's runs found out.
        nested: whether the sandbox's base is a nested one.

    Raises:
        Unavailable: one is missing, or of no use.
    """
    bwrap = find_bwrap(os.environ.get("PATH", ""), request.workspace_root)
    check_bwrap(bwrap)
    tracer = choose_observer.strace(request.workspace_root, machine) if observer == "strace" else ""
    return Programs(base=Base(bwrap, nested), tracer=tracer)


class Staging:
    """The staging area of one run; each attempt begins with an empty one."""

    def __init__(self, workspace: str) -> None:
        """Make the first area.

        Raises:
            NotStarted: it cannot be made.
        """
        self._workspace = workspace
        self._area = staging_area.make(workspace)

    @property
    def path(self) -> str:
        """The directory of the present area."""
        return self._area.path

    def note(self, made: list[str]) -> None:
        """Remember directories made for the run, so that they are taken back should it be killed."""
        self._area.note(made)

    def renew(self) -> None:
        """Put an empty area in the place of one that an attempt has used."""
        self._area.remove()
        self._area = staging_area.make(self._workspace)

    def remove(self) -> None:
        """Remove the area with all it holds."""
        self._area.remove()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The plan of one run, and what was made for it.

    Attributes:
        asked: the observer that was asked for.
        observer: the one the run gets, which may have to answer for held directories.
        staging: `None` where the plan grants no name.
        made: directories made for the run that stay, parents first.
        before: what the write grants held before the run.
    """

    planned: Plan
    asked: str
    observer: str
    staging: Staging | None
    made: tuple[str, ...]
    before: names_left_behind.NamesBefore


def prepare(request: Request, observer: str, temp: str, undo: contextlib.ExitStack) -> Prepared:
    """Plan a run and make what it needs on the host.

    Args:
        request: what may be reached.
        observer: as it was asked for.
        temp: the task's own temporary directory.
        undo: takes back at its end what is made for the time of the run.

    Raises:
        RequestRefused: the file system has changed so that a grant cannot be given any more.
        NotStarted: something cannot be made, or the observer cannot answer for a held directory.
    """
    files = Snapshot()
    planned = linux_plan.plan(request, files, temp=temp, served=observer not in WITHOUT_ANSWERS)
    if planned.held:
        _insist_on_mounts(planned, observer)
    used = "notify" if planned.granted and observer == "auto" and not _has_fuse() else observer
    staging: Staging | None = None
    if planned.granted:
        staging = Staging(request.workspace_root)
        undo.callback(staging.remove)
    made, held = grant_directories.PASSING.make(planned.operations)
    undo.callback(held.release)
    before = names_left_behind.before(planned, files)
    if staging is not None:
        staging.note(held.used)
    return Prepared(planned=planned, asked=observer, observer=used, staging=staging, made=tuple(made), before=before)


def _has_fuse() -> bool:
    """Whether a mask can serve granted names here."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _insist_on_mounts(planned: Plan, observer: str) -> None:
    """Insist that mounts alone keep a task from what is beside its granted names, since nobody answers its calls.

    Raises:
        NotStarted: something else is there.
    """
    kept = _beside(planned)
    if kept:
        raise NotStarted(
            f"the observer {observer} keeps no task from {kept}, beside a granted name, once the host replaces it",
            hint="use the observer auto, or grant directories instead, with a trailing slash",
        )


def _beside(plan: Plan) -> str:
    """A path in a held directory that only a mount keeps from the task; empty when there is none."""
    placed = (one.path for one in plan.operations if one.path not in plan.held)
    return next((path for path in placed if paths.parent(path) in plan.held and not plan.granted.served(path)), "")
