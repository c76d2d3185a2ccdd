"""The rules of a macOS profile about unix sockets: the task's own, and those that `unixSockets` grants. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.planning.macos.profile_rules import Rule, plain
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.planning.macos.profile_rules import Plain


def unix_socket_rules(config: ResolvedSandboxConfig, mine: Iterable[str]) -> Iterator[Rule]:
    """The rules of `unixSockets`, after those for the places in which sockets are the task's own."""
    family = (plain("socket-domain", "'AF_UNIX"),)
    made = Origin(reason="sockets of the task's own making")
    yield Rule(action="allow", operations=("system-socket",), filters=family, origin=made)
    for path in mine:
        yield from _sockets(plain("subpath", path), made)
    if config.unix_sockets is True:
        yield from _sockets(plain("path-regex", "^/"), Origin(field="unixSockets"))
    else:
        for index, path in enumerate(config.unix_sockets or ()):
            yield from _sockets(plain("literal", path), Origin(field=f"unixSockets[{index}]"))


def _sockets(path: Plain, origin: Origin) -> Iterator[Rule]:
    for operation, end in (("network-bind", "local"), ("network-outbound", "remote")):
        where = (plain(end, plain("unix-socket", path)),)
        yield Rule(action="allow", operations=(operation,), filters=where, origin=origin)
