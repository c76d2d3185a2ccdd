"""The rules of a macOS profile about ports: the task's proxy, granted loopback ports, `localBinding`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.planning.macos.profile_rules import Rule, plain
from sandbox.planning.macos.service_rules import lookup_rule
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract.config import ResolvedSandboxConfig

CONFIGURATION = "com.apple.SystemConfiguration.configd"

_PROXY = Origin(reason="the task's own proxy, which has the network's lists")


def network_rules(config: ResolvedSandboxConfig, *, ports: tuple[int, ...], reached: tuple[int, ...]) -> Iterator[Rule]:
    """The rules of `network` and `localBinding`.

    Args:
        config: the grants.
        ports: on which the task's own proxy listens; none before it does.
        reached: the host's loopback ports that are granted.
    """
    if ports:
        # `localhost` is both 127.0.0.1 and ::1.
        yield _network("network-outbound", "remote", (f"localhost:{port}" for port in ports), _PROXY)
    listed = Origin(field="network")
    if reached:
        yield _network("network-outbound", "remote", (f"localhost:{port}" for port in reached), listed)
    if reached or config.network is not None:
        # curl, and programs built on it, ask for the proxy settings before they dial.
        yield lookup_rule((CONFIGURATION,), "network")
    if config.local_binding:
        # A server whose runtime opens both kinds of IP at once binds `::ffff:127.0.0.1`, which no filter names.
        binding = Origin(field="localBinding")
        yield _network("network-bind", "local", ("*:*",), binding)
        yield _network("network-inbound", "local", ("*:*",), binding)
        yield _network("network-outbound", "remote", ("localhost:*",), binding)


def _network(operation: str, end: str, addresses: Iterable[str], origin: Origin) -> Rule:
    filters = tuple(plain(end, "'ip", address) for address in addresses)
    return Rule(action="allow", operations=(operation,), filters=filters, origin=origin)
