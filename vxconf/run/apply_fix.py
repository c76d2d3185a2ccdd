"""EFFECT: writes the fix of a failed run into its task's file, the whole fix or nothing.

The new file is judged before it is written, and replaces the old one in one step. A file that somebody changed in the
meantime is left alone, and so is a file outside the workspace that a link leads to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import stat
from typing import TYPE_CHECKING

from vxconf.diagnostics.diagnostic import UnreadableFile
from vxconf.document.read_file import ReadError, read_file
from vxconf.edit.add_entries import Change, Uneditable, additions, with_entries
from vxconf.workspace.load_file import load_text
from vxconf.workspace.project import Refused
from vxconf.workspace.workspace import Workspace

if TYPE_CHECKING:
    from sandbox.contract.results import Fix
    from vxconf.workspace.project import Task

__all__ = ["Change", "Unfixed", "hosts_apart", "write_fix"]

#: The mark that stands for a secret taken out of an entry; no path and no pattern holds it.
_MASKED = "***"
_BOM = b"\xef\xbb\xbf"
_BY_HAND = "add the lines of the report by hand"


class Unfixed(Exception):
    """A fix that was not written.

    Attributes:
        message: the reason, as a clause.
        help: advice about it.
    """

    def __init__(self, message: str, help: str = _BY_HAND) -> None:  # noqa: A002  the name the diagnostics use
        super().__init__(message)
        self.message = message
        self.help = help


def hosts_apart(fix: Fix) -> tuple[Fix, tuple[str, ...]]:
    """A fix without the hosts and loopback ports in it, and those, which are written once somebody said yes."""
    rest = dataclasses.replace(fix, allow=dataclasses.replace(fix.allow, network=()))
    return rest, fix.allow.network


def write_fix(task: Task, fix: Fix, *, written: dict[str, bytes] | None = None) -> tuple[Change, ...]:
    """Write a fix into the file of a task.

    Args:
        task: the task, loaded before its run.
        fix: the entries to write.
        written: what files hold since the fixes of other tasks of this run were written; this one is noted there.

    Returns:
        The added entries, in the order of the lists.

    Raises:
        Unfixed: nothing was written.
    """
    loaded, root = task.project.loaded, task.project.workspace.root
    wanted = additions(task.model, fix) if task.model is not None else {}
    if loaded is None or loaded.document is None or not wanted:
        raise Unfixed("no entry would let the task pass", "see what the report says of each violation")
    if any(_MASKED in entry for entries in wanted.values() for entry in entries):
        raise Unfixed("an entry holds the value of a secret, which is not written into a file")
    target = os.path.realpath(loaded.path)
    if not target.startswith(root.rstrip("/") + "/"):
        raise Unfixed(f"{loaded.file} is a link out of the workspace, to {target}")
    old = _read(target, loaded.file)
    known = {} if written is None else written
    if old != known.get(target, old) or (target not in known and old.removeprefix(_BOM) != loaded.text.encode()):
        raise Unfixed(f"{loaded.file} was changed while the task ran", "run the task again")
    try:
        new, changes = with_entries(old, file=loaded.file, additions=wanted)
    except (Uneditable, UnreadableFile) as fault:
        raise Unfixed(f"{loaded.file} was not changed: {fault}") from None
    if not changes:
        raise Unfixed(f"{loaded.file} has every entry already", "see what the report says of each violation")
    _judge(task, new)
    _replace(target, old, new, loaded.file)
    known[target] = new
    return changes


def _read(path: str, file: str) -> bytes:
    try:
        return read_file(path)
    except ReadError as fault:
        raise Unfixed(f"{file} {fault.message}", fault.help) from None


def _judge(task: Task, new: bytes) -> None:
    """Refuse a new file with which the task would be refused."""
    workspace, loaded = task.project.workspace, task.project.loaded
    assert loaded is not None  # noqa: S101  write_fix has read it
    trial = Workspace(workspace.chosen_by, here=task.project.directory, name_of=workspace.name_of)
    project = trial.project_at(task.project.directory)
    project.loaded = load_text(new, path=loaded.path, file=loaded.file)
    again = project.task(task.name)
    try:
        if again is not None:
            again.request()
            return
        reasons = project.diagnostics
    except Refused as fault:
        reasons = fault.diagnostics
    first = f"{reasons[0].message}" if reasons else "the task is gone from it"
    raise Unfixed(f"{loaded.file} was not changed, since it would be refused: {first}")


def _replace(path: str, old: bytes, new: bytes, file: str) -> None:
    """Replace a file that still has its old bytes, in one step; mode and owner stay."""
    directory, name = os.path.split(path)
    beside = os.path.join(directory, f".{name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(beside, flags, 0o600)
    except OSError as error:
        raise Unfixed(f"{file} cannot be replaced: {_said(error)}") from None
    try:
        with os.fdopen(descriptor, "wb") as out:
            info = os.stat(path)
            with contextlib.suppress(PermissionError):  # a file of another user becomes this user's
                os.fchown(out.fileno(), info.st_uid, info.st_gid)
            os.fchmod(out.fileno(), stat.S_IMODE(info.st_mode))
            out.write(new)
            out.flush()
            os.fsync(out.fileno())
        if _read(path, file) != old:
            raise Unfixed(f"{file} was changed meanwhile", "run the task again")
        os.rename(beside, path)
    except OSError as error:
        raise Unfixed(f"{file} cannot be replaced: {_said(error)}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


def _said(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
