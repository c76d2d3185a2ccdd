"""EFFECT: the probes of a Mac: whether the programs a run needs can be used."""

from __future__ import annotations

import os
import platform
from typing import NamedTuple

from sandbox.contract.errors import SandboxError
from sandbox.machine.ask_facts import host_facts
from sandbox.macos import system_tools
from sandbox.scratch import task_tmpdir


class ProbedTool(NamedTuple):
    """The answer of one probe; `cause` and `fix` are empty where all is well."""

    name: str
    found: str
    cause: str = ""
    fix: str = ""


def found() -> tuple[ProbedTool, ...]:
    """The probes of everything a run needs, in the order it needs it."""
    system = system_tools.SYSTEM
    return (
        ProbedTool("macOS", platform.mac_ver()[0] or platform.system()),
        _program("sandbox-exec", system.sandbox_exec, "no task can be walled in without it"),
        _nested(system),
        _program("log", system.log, "a task's denials are not heard of without it, so none passes"),
        _temporary(),
    )


def _program(name: str, path: str, cause: str) -> ProbedTool:
    if os.access(path, os.X_OK):
        return ProbedTool(name, path)
    return ProbedTool(name, "absent", cause, f"restore {path}, which is a part of macOS")


def _nested(system: system_tools.SystemTools) -> ProbedTool:
    try:
        system_tools.check(system)
    except SandboxError as error:
        return ProbedTool("not sandboxed itself", "a second sandbox was refused", error.message, error.hint)
    return ProbedTool("not sandboxed itself", "a process can be walled in")


def _temporary() -> ProbedTool:
    root = host_facts().temp_root
    try:
        task_tmpdir.make(root).remove()
    except SandboxError as error:
        return ProbedTool("temporary", root, error.message, error.hint)
    return ProbedTool("temporary", root)
