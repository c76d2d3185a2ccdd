"""`vxconf explain`: prints the operations of each grant of a task, or the answer for one path or host."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from sandbox.base import paths
from sandbox.machine.ask_facts import home_directory
from vxconf.cli.console import FOUND, OK, is_coloured, out
from vxconf.cli.find_task import find_task, task_diagnostics_text
from vxconf.diagnostics import render
from vxconf.explain import explain_grants, explain_network, explain_text, why
from vxconf.explain.explain_macos import explained, profile
from vxconf.workspace.check_files import listed_hosts

if TYPE_CHECKING:
    from sandbox.contract.config import Platform
    from vxconf.cli.arguments import Arguments
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.explain.explain_grants import Explained
    from vxconf.explain.explain_macos import ExplainedMac
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.workspace.project import Task

_HOST = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)+(?::\d+)?|localhost(?::\d+)?|\[[0-9a-fA-F:.]+\](?::\d+)?|[\w.-]+:\d+")


def main(arguments: Arguments) -> int:
    """Explains a task; the status is 1 when the task would be refused."""
    task = find_task(str(arguments["task"]))
    platform = str(arguments["platform"])
    refusals = _refusals(task, platform)
    what = _explained(task, platform)
    target = arguments["why"]
    if isinstance(target, str):
        data = _why(task, what, target)
        text = explain_text.answer(data)
    else:
        data = _whole(task, what, [render.diagnostic_as_dict(diagnostic) for diagnostic in refusals])
        if arguments["mechanism"]:
            data["mechanism"] = _mechanism(what)
        text = explain_text.explanation(
            data,
            reason=task.project.workspace.chosen_by.reason,
            hidden=task.has_mistakes,
            refusals=task_diagnostics_text(refusals, task, colour=is_coloured(sys.stdout)),
            platform=platform,
        )
    out(json.dumps(data, indent=2) + "\n" if arguments["format"] == "json" else text)
    return FOUND if refusals else OK


def _explained(task: Task, platform: str) -> Explained | None:
    """The block to explain; `None` for a task without a block, or with mistakes in it."""
    loaded, model = task.project.loaded, task.model
    if loaded is None or loaded.document is None or model is None or model.exec is None or model.exec.sandbox is None:
        return None
    # the answers for macOS alone come from what macOS is judged to get
    judged = task.judged("macos" if platform == "macos" else "linux")
    if judged is None:
        return None
    return explain_grants.Explained(
        block=model.exec.sandbox,
        judged=judged,
        document=loaded.document,
        files=task.project.workspace.files,
        linux=platform != "macos",
        mac=_mac(task, judged) if platform != "linux" else None,
        listed=(listed_hosts(task.project.workspace) or ()) if model.exec.sandbox.network is True else (),
    )


def _mac(task: Task, judged: JudgedBlock) -> ExplainedMac | None:
    mac = task.judged("macos")
    temp = paths.join(judged.where.facts.temp_root, "…")
    return explained(mac, temp) if mac is not None else None


def _refusals(task: Task, platform: str) -> tuple[Diagnostic, ...]:
    """The reasons to refuse the task on the platforms asked about, each once."""
    wanted: tuple[Platform, ...] = ("linux", "macos") if platform == "all" else (platform,)  # type: ignore[assignment]
    return tuple(dict.fromkeys(found for one in wanted for found in task.diagnostics(one)))


def _whole(task: Task, what: Explained | None, refusals: list[dict[str, Any]]) -> dict[str, Any]:
    root = task.project.workspace.chosen_by
    return {
        "task": task.id,
        "project": task.project.relative,
        "workspace": root.path,
        "workspaceRule": root.rule,
        "command": task.command,
        "sandboxed": task.sandboxed,
        "grants": explain_grants.grants(what) if what is not None else [],
        "implied": explain_grants.implied(what) if what is not None else [],
        "refusals": refusals,
    }


def _why(task: Task, what: Explained | None, target: str) -> dict[str, Any]:
    path, is_host = _meant(task, target)
    answer: dict[str, Any] = {"target": target}
    if is_host:
        answer["network"] = _why_host(task, what, target)
    if path is not None:
        answer |= {"path": os.path.realpath(path), **_why_path(task, what, path)}
    return answer


def _why_host(task: Task, what: Explained | None, target: str) -> dict[str, Any]:
    if what is not None:
        return why.of_host(what, target)
    return why.refused("the task is refused") if task.sandboxed else why.unsandboxed()


def _why_path(task: Task, what: Explained | None, path: str) -> dict[str, Any]:
    if what is None:
        nothing = why.refused("the task is refused") if task.sandboxed else why.unsandboxed()
        return {"read": nothing, "write": dict(nothing)}
    return why.of_path(what, path)


def _meant(task: Task, target: str) -> tuple[str | None, bool]:
    """The absolute path a target means, `None` for a host alone; and whether the target may be a host.

    A relative path starts from the project, or else from the working directory. A target such as `a.b` that does not
    exist may be a path or a host.
    """
    if target == "~" or target.startswith("~/"):
        return os.path.normpath(home_directory() + target[1:]), False
    if target.startswith("/"):
        return target.rstrip("/") or "/", False
    for base in (task.project.directory, os.getcwd()):
        if os.path.lexists(os.path.join(base, target)):
            return os.path.join(base, target).rstrip("/"), False
    path = os.path.join(task.project.directory, target).rstrip("/")
    if "/" in target or not _HOST.fullmatch(target):
        return path, False
    return (None if ":" in target or target.startswith("*.") else path), True


def _mechanism(what: Explained | None) -> dict[str, Any]:
    linux: dict[str, list[str]] = {"operations": [], "argv": [], "filter": [], "listeners": []}
    if what is not None and what.linux and what.judged.plan is not None:
        from sandbox.session.explain_mechanism import argv, filter_lines

        linux = {"operations": list(what.judged.plan.describe()), "argv": argv(), "filter": filter_lines()}
        linux["listeners"] = explain_network.listeners(what.network.config)
    return {"linux": linux, "macos": {"profile": _profile(what)}}


def _profile(what: Explained | None) -> str:
    if what is None or what.mac is None:
        return ""
    return profile(what.mac)
