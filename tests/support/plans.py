"""Requests and plans over any `Files`, with the machine's facts made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.base import paths
from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.planning.linux_plan import plan
from sandbox.planning.operations import Make, Name, Names
from sandbox.request.build import build
from sandbox.request.request import WorkspaceFacts

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.planning.path_reach import Plan
    from sandbox.request.linked_packages import LinkedProjects
    from sandbox.request.request import Request

HOME = "/home/mel"
TEMP_ROOT = "/tmp/vx-1000"
FACTS = HostFacts(platform="linux", home=HOME, temp_root=TEMP_ROOT, protected=("/opt/tool/venv",))


def request(
    files: Files,
    *,
    workspace: str = "/ws",
    project: str = "/ws/apps/shop",
    read: tuple[str, ...] = (),
    write: tuple[str, ...] = (),
    fields: dict[str, Any] | None = None,
    facts: HostFacts = FACTS,
    projects: LinkedProjects | None = None,
    **given: Any,
) -> Request:
    config = ResolvedSandboxConfig(
        platform="linux", workspace=workspace, project=project, allow_read=read, allow_write=write, **(fields or {})
    )
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return build(config, WorkspaceFacts(root=workspace, **known), files=files, facts=facts, projects=projects)


def placed_in(plan: Plan, directory: str) -> tuple[str, ...]:
    """The sorted names a plan places in a directory: all there is in a cover or a way."""
    at = {one.path: one for one in plan.operations if not isinstance(one, (Make, Names))}
    placed = (path for path, one in at.items() if path != "/" and not isinstance(one, Name))
    return tuple(sorted(paths.name(path) for path in placed if paths.parent(path) == directory))


def planned(files: Files, *, temp: str | None = None, **given: Any) -> Plan:
    return plan(request(files, **given), files, temp=temp)
