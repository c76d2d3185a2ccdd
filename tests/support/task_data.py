"""A task file's data made from its model: the inverse of filling in defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vxconf.resolve.task_model import Entries, Exec, FileModel, SandboxModel, TaskModel


def as_data(model: FileModel) -> dict[str, Any]:
    """A model in the file's own form; filling in its defaults gives the model back."""
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
