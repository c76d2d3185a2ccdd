"""The intents of calls: what a call is for, whatever its name."""

from __future__ import annotations

from enum import Enum


class Intent(Enum):
    """The intent of a call, whatever its name."""

    OPEN = "open"  # open for reading, of a file or a directory
    EXEC = "exec"
    PROBE = "probe"  # stat, access, readlink, chdir: asks whether it is there
    WRITE = "write"  # open an existing file for writing, truncate
    CREATE = "create"  # open with O_CREAT, mknod, symlink
    MKDIR = "mkdir"
    REMOVE = "remove"  # unlink, rmdir
    RENAME = "rename"  # either side of a rename
    LINK = "link"  # either side of a hard link
    TIMES = "times"
    ATTRIBUTES = "attributes"  # chmod, chown, setxattr
    CONNECT = "connect"


#: The intents that change something.
WRITE_INTENTS = frozenset(
    {
        Intent.WRITE,
        Intent.CREATE,
        Intent.MKDIR,
        Intent.REMOVE,
        Intent.RENAME,
        Intent.LINK,
        Intent.TIMES,
        Intent.ATTRIBUTES,
    }
)
