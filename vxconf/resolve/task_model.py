"""The model of a task file: every field present, frozen, and still as it is spelled; nothing is resolved.

Each entry keeps its path in the file, so that a later refusal of it has a place. Tasks are sorted by name: the order of
a file's keys is not part of its meaning.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Keys and indexes from the top of the file, such as `("tasks", "build", "exec", "sandbox", "allow", "read", 0)`.
FieldPath = tuple[str | int, ...]


class Entry(NamedTuple):
    """One string of a list, and its path in the file."""

    text: str
    path: FieldPath


Entries = tuple[Entry, ...]


class SandboxModel(NamedTuple):
    """An `exec.sandbox` block.

    Attributes:
        path: the path of the block in the file.
        network, unix_sockets: `None` when absent, `True`, or the entries.
        local_binding: `False`, `True`, or the TCP ports.
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
    """The readiness test of a server.

    Attributes:
        output: a regular expression that a line of the output matches, or `None`.
        port: the TCP port the server listens on, or `None`.
        timeout: the seconds to wait, or `None`.
    """

    output: str | None = None
    port: int | None = None
    timeout: float | None = None


class Exec(NamedTuple):
    """An `exec` table: the command of a task and how it is run.

    Attributes:
        command: the command line.
        define: environment variables and their values, sorted by name.
        pass_through: the names of the caller's variables that the command gets.
        timeout: the seconds the command may take, or `None`.
        persistent: the readiness test of a server; `None` for a command that ends by itself.
        sandbox: the sandbox block, or `None`.
    """

    command: str
    define: tuple[tuple[str, str], ...] = ()
    pass_through: tuple[str, ...] = ()
    timeout: float | None = None
    persistent: Persistent | None = None
    sandbox: SandboxModel | None = None


class Cache(NamedTuple):
    """A `cache` table: the inputs of a task's cache key, and the outputs that are kept; neither grants anything."""

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
