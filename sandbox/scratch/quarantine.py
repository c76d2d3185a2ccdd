"""EFFECT: takes what a run left where it may leave nothing out of the workspace, without losing it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.results import Violation
from sandbox.request.protected_names import CARRIERS, ProtectedNames, existing, folded, named_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.planning.plan import Plan

#: Below the directory of all tasks' temporary directories, which no task sees.
_KEPT = "set-aside"
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Quarantine:
    """Where one run's things are moved to, each by itself; made with the first."""

    def __init__(self, temp_root: str) -> None:
        self._root = paths.join(temp_root, _KEPT)
        self._place = ""
        self._count = 0

    def put(self, path: str, *, or_remove: bool = False) -> str:
        """Move what stands at a canonical path away; what became of it, for people.

        Args:
            path: not followed, should it be a link.
            or_remove: whether a file that cannot be moved is removed.
        """
        import shutil

        holder = -1
        try:
            target = paths.join(self._room(), paths.name(path))
            holder = _holder(path)
            # copied where the place is on another file system
            shutil.move(f"/proc/self/fd/{holder}/{paths.name(path)}", target)
        except OSError as error:
            if or_remove and holder >= 0:
                with contextlib.suppress(OSError):
                    os.unlink(paths.name(path), dir_fd=holder)
            return f"could not be moved away ({error.strerror or error})"
        finally:
            if holder >= 0:
                os.close(holder)
        return f"was moved to {target}"

    def _room(self) -> str:
        """A new directory, since a name may be as long as names can be."""
        if not self._place:
            import tempfile

            os.makedirs(self._root, mode=0o700, exist_ok=True)
            self._place = tempfile.mkdtemp(dir=self._root)
        room = paths.join(self._place, str(self._count))
        self._count += 1
        os.mkdir(room)
        return room


def listed(plan: Plan, files: Files) -> frozenset[str]:
    """Everything in held directories, to be asked before the run."""
    return frozenset(paths.join(directory, name) for directory in plan.held for name in files.entries(directory))


def set_aside(
    plan: Plan, *, workspace: str, shelf: Quarantine, files: Files, before: frozenset[str] = frozenset()
) -> tuple[Violation, ...]:
    """Move away every name other programs execute that was not there when the run began, where the task may write.

    Call when nothing of it lives any more. The call that made one was refused, so this is what a task got past that by
    racing itself, or what somebody else made meanwhile: it is kept and its new place told. `before` is `listed` then.
    """
    executed = plan.executed
    now = existing(executed.roots, workspace, files, git_config=executed.git_config) if executed.roots else ()
    found: list[Violation] = []
    for path in dict.fromkeys((*now, *_in_held(plan, workspace, files, before))):
        if path in executed.kept or not os.path.lexists(path):
            continue
        fate = shelf.put(path, or_remove=True)
        line = f"{path} is a name other programs execute: it was made during the run and {fate}"
        found.append(Violation(kind="write", operation="create", target=path, path=path, errno="", line=line))
    return tuple(found)


def _in_held(plan: Plan, workspace: str, files: Files, before: frozenset[str]) -> Iterator[str]:
    """Such names in held directories, where what was there before is laid over."""
    executed: ProtectedNames = plan.executed
    for directory in plan.held:
        for name in files.entries(directory):
            path = paths.join(directory, name)
            if path in before:
                continue
            if named_below(path, directory, git_config=executed.git_config):
                yield path
            elif folded(name) in CARRIERS:
                if files.kind(path) is Kind.DIRECTORY:
                    yield from existing((path,), workspace, files, git_config=executed.git_config)
                else:
                    yield path


def unknown(plan: Plan, files: Files, before: frozenset[str]) -> Iterable[str]:
    """What is in held directories that was not there before and no grant covers, whoever made it."""
    for path in sorted(listed(plan, files) - before):
        if not plan.granted.served(path) and not plan.leads(path):
            yield path


def beside(plan: Plan) -> str:
    """Something a mount alone has to keep from the task in a held directory; empty when there is nothing."""
    placed = (one.path for one in plan.operations if one.path not in plan.held)
    return next((path for path in placed if paths.parent(path) in plan.held and not plan.granted.served(path)), "")


def _holder(path: str) -> int:
    """The directory a canonical path is in, opened through no link: other tasks may be putting some there."""
    fd = os.open("/", _DIRECTORY)
    for name in paths.parts(paths.parent(path)):
        try:
            below = os.open(name, _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd
