"""The network grants of a config: why a host, a port or a socket in it cannot be granted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base.host_patterns import PatternRefused, check_pattern
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.request.grant_refusals import unusable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.config import ResolvedSandboxConfig

_LAST_PORT = 65535


def judge(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    """Every reason why the network, the ports or the sockets of a config cannot be granted, in its order."""
    if config.network is not None and config.network is not True:
        yield from _patterns("network", "allow", config.network)
    yield from _patterns("denyNetwork", "deny", config.deny_network)
    if isinstance(config.unix_sockets, tuple):
        yield from _sockets(config.unix_sockets)
    if isinstance(config.local_binding, tuple):
        yield from _ports(config.local_binding)


def _patterns(field: str, side: str, entries: tuple[str, ...]) -> Iterator[Refusal]:
    for index, entry in enumerate(entries):
        try:
            check_pattern(entry, allow=side == "allow")
        except PatternRefused as refused:
            yield Refusal(
                f'{side}.network "{entry}" is not a host pattern',
                field=f"{field}[{index}]",
                code=refusal_codes.HOST_PATTERN,
                hint=refused.hint or refused.message,
            )


def _sockets(granted: tuple[str, ...]) -> Iterator[Refusal]:
    for index, path in enumerate(granted):
        refusal = unusable(path, f"unixSockets[{index}]")
        if refusal is not None:
            yield refusal


def _ports(ports: tuple[int, ...]) -> Iterator[Refusal]:
    for port in ports:
        if not 1 <= port <= _LAST_PORT:
            yield Refusal(
                f"allow.localBinding {port} is not a port",
                field="localBinding",
                code=refusal_codes.OUT_OF_RANGE,
                hint=f"a port is a number from 1 to {_LAST_PORT}",
            )
