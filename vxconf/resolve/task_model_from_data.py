"""The model of a task file from its valid data: defaults are filled in, and each entry gets its path in the file.

Nothing is resolved. The data has passed the schema, so no type is checked again. Of a task with mistakes it is the
well-formed part, in which `None` stands for an entry at fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from vxconf.resolve.task_model import Cache, Entry, Exec, FileModel, Persistent, SandboxModel, TaskModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vxconf.resolve.task_model import Entries, FieldPath

_Data = dict[str, Any]


def fill_defaults(data: Mapping[str, Any]) -> FileModel:
    """The model of one valid task file.

    Args:
        data: the file's data as parsed.
    """
    tasks: _Data = data.get("tasks", {})
    return FileModel(
        name=data.get("name"),
        tasks=tuple(_task(name, tasks[name], ("tasks", name)) for name in sorted(tasks)),
    )


def _task(name: str, data: _Data, path: FieldPath) -> TaskModel:
    run = data.get("exec")
    cache = data.get("cache")
    return TaskModel(
        name=name,
        path=path,
        depends_on=tuple(data.get("dependsOn", ())),
        exec=None if run is None else _exec(run, (*path, "exec")),
        cache=None if cache is None else _cache(cache),
    )


def _exec(data: _Data, path: FieldPath) -> Exec:
    env: _Data = data.get("env", {})
    wait: _Data | None = data.get("persistent")
    block = data.get("sandbox")
    return Exec(
        command=data["command"],
        define=tuple(sorted(env.get("define", {}).items())),
        pass_through=tuple(env.get("passThrough", ())),
        timeout=data.get("timeout"),
        persistent=None if wait is None else _persistent(wait),
        sandbox=None if block is None else _sandbox(block, (*path, "sandbox")),
    )


def _persistent(data: _Data) -> Persistent:
    ready: _Data = data.get("readyWhen", {})
    return Persistent(output=ready.get("output"), port=ready.get("port"), timeout=data.get("timeout"))


def _cache(data: _Data) -> Cache:
    inputs: _Data = data.get("inputs", {})
    outputs: _Data = data.get("outputs", {})
    return Cache(
        input_files=tuple(inputs.get("files", ())),
        input_workspace_files=tuple(inputs.get("workspaceFiles", ())),
        input_tasks=tuple(inputs.get("tasks", ())),
        input_env=tuple(inputs.get("env", ())),
        input_runtime=tuple(inputs.get("runtime", ())),
        output_files=tuple(outputs.get("files", ())),
    )


def _sandbox(data: _Data, path: FieldPath) -> SandboxModel:
    allow: _Data = data.get("allow", {})
    deny: _Data = data.get("deny", {})
    ignore: _Data = data.get("ignore", {})
    binding = allow.get("localBinding", False)
    return SandboxModel(
        path=path,
        read=_entries(allow, "read", (*path, "allow")),
        write=_entries(allow, "write", (*path, "allow")),
        network=_all_or_entries(allow, "network", (*path, "allow")),
        deny_network=_entries(deny, "network", (*path, "deny")),
        system_info=_entries(allow, "systemInfo", (*path, "allow")),
        unix_sockets=_all_or_entries(allow, "unixSockets", (*path, "allow")),
        local_binding=binding if isinstance(binding, bool) else tuple(binding),
        mach_lookup=_entries(allow, "machLookup", (*path, "allow")),
        pty=allow.get("pty", False),
        git_config=allow.get("gitConfig", False),
        weaker_when_nested=data.get("weakerWhenNested", False),
        weaker_network_isolation=data.get("weakerNetworkIsolation", False),
        hermetic=data.get("hermetic", False),
        ignore_read=_entries(ignore, "read", (*path, "ignore")),
        ignore_write=_entries(ignore, "write", (*path, "ignore")),
        ignore_system_info=_entries(ignore, "systemInfo", (*path, "ignore")),
        ignore_network=_entries(ignore, "network", (*path, "ignore")),
    )


def _entries(data: _Data, key: str, path: FieldPath) -> Entries:
    given = data.get(key)
    if not given:
        return ()
    return tuple(Entry(text, (*path, key, index)) for index, text in enumerate(given) if text is not None)


def _all_or_entries(data: _Data, key: str, path: FieldPath) -> Literal[True] | Entries | None:
    if key not in data:
        return None
    return True if data[key] is True else _entries(data, key, path)
