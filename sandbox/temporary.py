"""EFFECT: a temporary directory of its own for every task, and its removal.

The directory above them is this user's own real directory, mode 0700, in a parent nobody else may rewrite: a shared
`/tmp` lets another user plant the name first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile

from sandbox.errors import NotStarted


def make(root: str) -> str:
    """A new empty directory below `root`, mode 0700; makes `root` too.

    Raises:
        NotStarted: `root` is not ours alone, or nothing can be made there.
    """
    parent = os.path.dirname(root)
    hint = "set VX_TMPDIR to a directory of your own that nobody else may write"
    try:
        above = os.stat(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(root, 0o700)
        own = os.lstat(root)
    except OSError as error:
        raise NotStarted(f"the temporary directory {root} cannot be made: {error.strerror}", hint=hint) from error
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid():
        raise NotStarted(f"{root} is not a directory of this user", hint=f"remove it, or {hint}")
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        raise NotStarted(f"{parent} lets other users rename what is in it", hint=hint)
    if above.st_uid not in (0, os.getuid()):
        raise NotStarted(f"{parent} belongs to another user", hint=hint)
    try:
        if own.st_mode & 0o077:
            os.chmod(root, 0o700)
        return tempfile.mkdtemp(prefix="task-", dir=root)
    except OSError as error:
        raise NotStarted(f"no temporary directory can be made in {root}: {error.strerror}", hint=hint) from error


def remove(path: str) -> None:
    """Remove a task's directory with all it holds, a directory the task locked included."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError:
        os.chmod(path, 0o700)
        for base, directories, _ in os.walk(path):
            for name in directories:
                if not os.path.islink(os.path.join(base, name)):
                    os.chmod(os.path.join(base, name), 0o700)
        shutil.rmtree(path, ignore_errors=True)
