"""What a task file says, with every field present: frozen, still symbolic, nothing resolved.

Each entry keeps its path in the file, so that whatever becomes of it later can be told at its place.
Tasks are sorted by name: the order of a file's keys is not part of its meaning.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Keys and indexes from the top of the file, such as `("tasks", "build", "exec", "sandbox", "allow", "read", 0)`.
FieldPath = tuple[str | int, ...]


class Entry(NamedTuple):
    """One string of a list, and where it stands."""

    text: str
    path: FieldPath


Entries = tuple[Entry, ...]


class SandboxModel(NamedTuple):
    """An `exec.sandbox` block.

    Attributes:
        path: the block itself.
        network, unix_sockets: `None` when absent, `True`, or the list.
        local_binding: `False`, `True`, or ports.
    """

    path: FieldPath
    read: Entries = ()
    write: Entries = ()
    network: Literal[True] | Entries | None = None
    deny_network: Entries = ()
    system_info: Entries = ()
    unix_sockets: Literal[True] | Entries | None = None
    local_binding: bool | tuple[int, ...] = False
    mach_lookup: Entries = ()
    pty: bool = False
    git_config: bool = False
    weaker_when_nested: bool = False
    weaker_network_isolation: bool = False
    hermetic: bool = False
    ignore_read: Entries = ()
    ignore_write: Entries = ()
    ignore_system_info: Entries = ()
    ignore_network: Entries = ()


class Persistent(NamedTuple):
    """How to tell that a server is up.

    Attributes:
        output: a regular expression its output matches, or `None`.
        port: a TCP port it listens on, or `None`.
        timeout: seconds to wait, or `None`.
    """

    output: str | None = None
    port: int | None = None
    timeout: float | None = None


class Exec(NamedTuple):
    """What a task runs.

    Attributes:
        define: environment variables and their values, sorted by name.
        pass_through: names of the caller's variables the command gets.
        timeout: seconds, or `None`.
    """

    command: str
    define: tuple[tuple[str, str], ...] = ()
    pass_through: tuple[str, ...] = ()
    timeout: float | None = None
    persistent: Persistent | None = None
    sandbox: SandboxModel | None = None


class Cache(NamedTuple):
    """What a task's cache key is made of and what it keeps; nothing here grants anything."""

    input_files: tuple[str, ...] = ()
    input_workspace_files: tuple[str, ...] = ()
    input_tasks: tuple[str, ...] = ()
    input_env: tuple[str, ...] = ()
    input_runtime: tuple[str, ...] = ()
    output_files: tuple[str, ...] = ()


class TaskModel(NamedTuple):
    """One task; `exec` is `None` for a group."""

    name: str
    path: FieldPath
    depends_on: tuple[str, ...] = ()
    exec: Exec | None = None
    cache: Cache | None = None


class FileModel(NamedTuple):
    """One task file."""

    name: str | None = None
    tasks: tuple[TaskModel, ...] = ()
