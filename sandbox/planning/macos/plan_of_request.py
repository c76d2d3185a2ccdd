"""The macOS plan of a request, with the rules that its network and its sockets need. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base.host_patterns import PatternRefused
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.planning.macos import macos_plan
from sandbox.proxy.policy.policy_from_config import host_ports, own_sockets

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files
    from sandbox.planning.macos.macos_path_reach import MacPlan
    from sandbox.request.request import Request


def plan(request: Request, files: Files, *, temp: str | None = None, ports: tuple[int, ...] = ()) -> MacPlan:
    """Lay down the rules of one attempt; nothing is created.

    Args:
        request: what may be reached.
        files: the host's file system, as it is now.
        temp: the task's own temporary directory, canonical.
        ports: on which the task's own proxy listens; none before it does.

    Raises:
        RequestRefused: with every reason found, in the order of the config.
    """
    config = request.config
    try:
        reached = host_ports(config)
    except PatternRefused as error:
        raise RequestRefused(
            (Refusal(error.message, field="network", code=refusal_codes.UNUSABLE, hint=error.hint),)
        ) from None
    sockets = own_sockets(config, temp or "")
    return macos_plan.plan(request, files, temp=temp, ports=ports, reached=reached, sockets=sockets)
