"""What a task file says, with every field present: frozen, still symbolic, nothing resolved.

Each entry keeps its path in the file, so that whatever becomes of it later can be told at its place.
Tasks are sorted by name: the order of a file's keys is not part of its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

#: Keys and indexes from the top of the file, such as `("tasks", "build", "exec", "sandbox", "allow", "read", 0)`.
FieldPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One string of a list, and where it stands."""

    text: str
    path: FieldPath


Entries = tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxModel:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistent:
    """How to tell that a server is up.

    Attributes:
        output: a regular expression its output matches, or `None`.
        port: a TCP port it listens on, or `None`.
        timeout: seconds to wait, or `None`.
    """

    output: str | None = None
    port: int | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exec:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """What a task's cache key is made of and what it keeps; nothing here grants anything."""

    input_files: tuple[str, ...] = ()
    input_workspace_files: tuple[str, ...] = ()
    input_tasks: tuple[str, ...] = ()
    input_env: tuple[str, ...] = ()
    input_runtime: tuple[str, ...] = ()
    output_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskModel:
    """One task; `exec` is `None` for a group."""

    name: str
    path: FieldPath
    depends_on: tuple[str, ...] = ()
    exec: Exec | None = None
    cache: Cache | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileModel:
    """One task file."""

    name: str | None = None
    tasks: tuple[TaskModel, ...] = ()


def as_data(model: FileModel) -> dict[str, Any]:
    """A model in the file's own form; normalizing it gives the model back."""
    data: dict[str, Any] = {"tasks": {task.name: _task(task) for task in model.tasks}}
    if model.name is not None:
        data["name"] = model.name
    return data


def _task(task: TaskModel) -> dict[str, Any]:
    data: dict[str, Any] = {"dependsOn": list(task.depends_on)}
    if task.exec is not None:
        data["exec"] = _exec(task.exec)
    if task.cache is not None:
        cache = task.cache
        data["cache"] = {
            "inputs": {
                "files": list(cache.input_files),
                "workspaceFiles": list(cache.input_workspace_files),
                "tasks": list(cache.input_tasks),
                "env": list(cache.input_env),
                "runtime": list(cache.input_runtime),
            },
            "outputs": {"files": list(cache.output_files)},
        }
    return data


def _exec(run: Exec) -> dict[str, Any]:
    data: dict[str, Any] = {
        "command": run.command,
        "env": {"define": dict(run.define), "passThrough": list(run.pass_through)},
    }
    if run.timeout is not None:
        data["timeout"] = run.timeout
    if run.persistent is not None:
        wait = run.persistent
        ready = {k: v for k, v in (("output", wait.output), ("port", wait.port)) if v is not None}
        data["persistent"] = {"readyWhen": ready} | ({} if wait.timeout is None else {"timeout": wait.timeout})
    if run.sandbox is not None:
        data["sandbox"] = _sandbox(run.sandbox)
    return data


def _sandbox(block: SandboxModel) -> dict[str, Any]:
    def texts(entries: Entries) -> list[str]:
        return [entry.text for entry in entries]

    allow: dict[str, Any] = {
        "read": texts(block.read),
        "write": texts(block.write),
        "systemInfo": texts(block.system_info),
        "machLookup": texts(block.mach_lookup),
        "pty": block.pty,
        "gitConfig": block.git_config,
        "localBinding": list(block.local_binding) if isinstance(block.local_binding, tuple) else block.local_binding,
    }
    for key, value in (("network", block.network), ("unixSockets", block.unix_sockets)):
        if value is not None:
            allow[key] = True if value is True else texts(value)
    return {
        "allow": allow,
        "deny": {"network": texts(block.deny_network)},
        "ignore": {
            "read": texts(block.ignore_read),
            "write": texts(block.ignore_write),
            "systemInfo": texts(block.ignore_system_info),
            "network": texts(block.ignore_network),
        },
        "weakerWhenNested": block.weaker_when_nested,
        "weakerNetworkIsolation": block.weaker_network_isolation,
        "hermetic": block.hermetic,
    }
