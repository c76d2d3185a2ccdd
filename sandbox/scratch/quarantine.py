"""EFFECT: the quarantine for files a run left where it may leave none; they are kept, outside the workspace."""

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
    from sandbox.planning.path_reach import Plan

#: The place of set-aside files, below the directory of all tasks' temporary directories, which no task sees.
_KEPT = "set-aside"
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Quarantine:
    """The place one run's files are moved to, each by itself; it is made for the first."""

    def __init__(self, temp_root: str) -> None:
        self._root = paths.join(temp_root, _KEPT)
        self._place = ""
        self._count = 0

    def put(self, path: str, *, or_remove: bool = False) -> str:
        """Move a file or a directory at a canonical path away; its fate, for people.

        Args:
            path: not followed, should it be a link.
            or_remove: whether a file that cannot be moved is removed.
        """
        import shutil

        holder = -1
        try:
            target = paths.join(self._room(), paths.name(path))
            holder = _holder(path)
            # A move to another file system copies.
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
        """A new directory for one file, since a name may be as long as names can be."""
        if not self._place:
            import tempfile

            os.makedirs(self._root, mode=0o700, exist_ok=True)
            self._place = tempfile.mkdtemp(dir=self._root)
        room = paths.join(self._place, str(self._count))
        self._count += 1
        os.mkdir(room)
        return room


def listed(plan: Plan, files: Files) -> frozenset[str]:
    """Every entry of held directories; asked before a run, it tells later which are new."""
    return frozenset(paths.join(directory, name) for directory in plan.held for name in files.entries(directory))


def set_aside(
    plan: Plan, *, workspace: str, shelf: Quarantine, files: Files, before: frozenset[str] = frozenset()
) -> tuple[Violation, ...]:
    """Move away every protected name that a run has brought, where the task may write.

    Call it once no process of the run lives any more. The call that made such a name was refused: the name is there
    since the task got past that by racing itself, or since somebody else made it. It is kept, and its new place told.

    Args:
        plan: the run's plan.
        workspace: canonical.
        shelf: where the names go.
        files: the host's file system, as it is now.
        before: `listed` as it was before the run.
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
    """Protected names in held directories that were not there before; older ones are laid over."""
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
    """New entries of held directories that no grant covers, whoever made them."""
    for path in sorted(listed(plan, files) - before):
        if not plan.granted.served(path) and not plan.leads(path):
            yield path


def beside(plan: Plan) -> str:
    """A path in a held directory that only a mount keeps from the task; empty when there is none."""
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
