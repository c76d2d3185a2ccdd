"""The network part of an explanation: hosts, ports and sockets, and the answer for one host or socket; pure.

The answers come from the policy that a run gives to the task's proxy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.base import known_sockets, paths
from sandbox.base.host_patterns import PatternRefused, canonical_host, check_pattern, is_address
from sandbox.base.task_environment_variables import HTTP_PORT, SOCKS_PORT
from sandbox.proxy.policy import policy_from_config
from sandbox.proxy.policy.host_rules import USUAL_PORTS
from sandbox.proxy.policy.published_ports import published_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_patterns import Pattern
    from sandbox.contract.config import ResolvedSandboxConfig
    from vxconf.resolve.resolve_block import Resolution
    from vxconf.resolve.task_model import Entry

JSON = dict[str, Any]

#: The fields of a resolved config about the network.
FIELDS = frozenset({"network", "denyNetwork", "unixSockets", "localBinding"})

_DNS_PORT = 53
#: The most hosts that a note names; the others are counted.
_NAMED = 5


class NetworkAnswer(NamedTuple):
    """The answer whether a host or socket is reached.

    Attributes:
        allowed: whether it is reached.
        by: the entry that decides, or the reason as a clause.
        nearest: the entry that comes closest where it is not reached, or `None`.
    """

    allowed: bool
    by: Entry | str
    nearest: Entry | None = None


class ExplainedNetwork(NamedTuple):
    """The network part of a block, to be explained.

    Attributes:
        config: the config without the refused entries.
        resolution: the block resolved.
        listed: the hosts that the tasks of the workspace list; used for `network = true` alone.
    """

    config: ResolvedSandboxConfig
    resolution: Resolution
    listed: tuple[str, ...] = ()

    def patterns(self, field: str) -> Iterator[tuple[Pattern, tuple[Entry, ...]]]:
        """The host patterns of a list, each with the entries it comes from."""
        for text, entries in self.entries(field):
            try:
                yield check_pattern(text, allow=field == "network"), entries
            except PatternRefused:  # the block's refusals have it
                continue

    def entries(self, field: str) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        """The resolved texts of a list, each with the entries it comes from."""
        config = self.resolution.config
        listed = {"network": config.network, "denyNetwork": config.deny_network, "unixSockets": config.unix_sockets}
        values = listed[field]
        for index, text in enumerate(values if isinstance(values, tuple) else ()):
            yield text, self.resolution.origin(f"{field}[{index}]")


def operations(block: ExplainedNetwork, field: str, entry: Entry) -> Iterator[JSON]:
    """The operations of one entry, or of a field that is no list, on Linux."""
    if field == "localBinding":
        for port in published_ports(block.config):
            what = f"listen on the host's 127.0.0.1:{port}, and connect what comes there to the task's own port {port}"
            yield _operation("Publish", f"127.0.0.1:{port}", what)
    elif field == "unixSockets":
        if not entry.text:
            yield _operation("Socket", "*", "connect the task to any socket of the host's that this user may open")
        for path, entries in block.entries(field):
            if entry in entries:
                yield _operation("Socket", path, f"connect the task to the host's socket {path}, and to none beside it")
    else:
        for pattern, entries in block.patterns(field):
            if entry in entries:
                yield from _host(block, field, pattern)


def _host(block: ExplainedNetwork, field: str, pattern: Pattern) -> Iterator[JSON]:
    if field == "denyNetwork":
        yield _operation("Deny", str(pattern), f"refuse {pattern} before the allow list is looked at")
        return
    if _denied(block, pattern):
        return
    port = pattern.port
    if policy_from_config.is_loopback(pattern) and port in policy_from_config.host_ports(block.config):
        what = f"listen on port {port} of the task's own loopback, and connect what comes there to the host's {pattern}"
        yield _operation("Relay", str(pattern), what)
    elif not policy_from_config.is_loopback(pattern) or port not in published_ports(block.config):
        yield _operation("Allow", str(pattern), f"let {pattern} through the task's proxy")


def notes(block: ExplainedNetwork, field: str, entry: Entry) -> Iterator[str]:
    """The notes on one entry that are about Linux."""
    if field == "localBinding" and block.config.local_binding is True:
        yield "does nothing on Linux: a task always reaches its own servers; list the ports that the host is to reach"
    elif field == "localBinding":
        yield "listens before the command starts; the run is refused where another program holds the port"
    elif field == "unixSockets":
        for path, entries in block.entries(field):
            if entry in entries and (what := known_sockets.control(path)):
                yield f"behind it is {what}"
    elif field == "network" and not entry.text:
        yield _union(block)
    elif field == "network":
        # the first entry of each pattern, however the others spell it
        first = {pattern: entries[0] for pattern, entries in reversed(tuple(block.patterns(field)))}
        for pattern, entries in block.patterns(field):
            if entry in entries:
                yield from _host_notes(block, pattern, first=first[pattern] is entry)


def _union(block: ExplainedNetwork) -> str:
    union = policy_from_config.canonical(block.listed, allow=True)
    if not union:
        return "stands for the hosts that the tasks of one run list; no task of the workspace lists one"
    more = f" and {len(union) - _NAMED} more" if len(union) > _NAMED else ""
    named = ", ".join(union[:_NAMED]) + more
    return f"stands for the hosts that the tasks of one run list: alone none, in a run of the whole workspace {named}"


def _host_notes(block: ExplainedNetwork, pattern: Pattern, *, first: bool) -> Iterator[str]:
    if not first:
        yield "means the same as an entry before it"
        return
    denied = _denied(block, pattern)
    if denied:
        yield f"does nothing: deny.network {denied} refuses it first"
    elif policy_from_config.is_loopback(pattern):
        yield _loopback_note(block, pattern)
    else:
        if pattern.wildcard:
            yield f"strict subdomains alone, not {pattern.host} itself"
        if pattern.port is None:
            also = sorted({*USUAL_PORTS, *(p.port for p, _ in block.patterns("network") if p.port is not None)})
            ports = ", ".join(map(str, also))
            yield f"any TCP port; with the observer strace, {ports} alone for programs that know no proxy"


def _denied(block: ExplainedNetwork, pattern: Pattern) -> Pattern | None:
    """The pattern of the deny list that covers an allowed one, `None` when none does."""
    return next((deny for deny, _ in block.patterns("denyNetwork") if deny.covers(pattern)), None)


def _loopback_note(block: ExplainedNetwork, pattern: Pattern) -> str:
    if pattern.port is None:
        return "reached through a proxy alone, which most programs do not use for loopback: name the port"
    if pattern.port in published_ports(block.config):
        return f"the task's own port, since localBinding lists {pattern.port}: nothing of the host's is reached"
    return "the host's own server, dialled without a proxy"


def implied(block: ExplainedNetwork, temp: str) -> Iterator[tuple[str, str, str, list[JSON]]]:
    """The items that hold for the network of every task: value, reason, note, operations."""
    yield (
        f"127.0.0.1:{HTTP_PORT}, 127.0.0.1:{SOCKS_PORT}, 127.0.0.1:{_DNS_PORT}",
        "the task's own proxy: HTTP proxy, SOCKS proxy and name server; nothing else leads out",
        "HTTP_PROXY and the like name it; programs without a proxy reach it by the addresses that names have inside",
        [_operation("Listen", one.partition(" ")[0], f"listen on {one}") for one in listeners(block.config)],
    )
    yield (
        "this machine's own, link-local and metadata addresses",
        "refused behind any name, unless the address itself is listed",
        "",
        [],
    )
    own = policy_from_config.own_sockets(block.config, temp)
    yield ", ".join(own), "sockets that the task makes there need no grant", "", []
    if block.config.unix_sockets is not True:
        yield (
            "sockets of the host's anywhere else",
            "connecting is refused and reported (Docker, SSH agents, D-Bus, X11, …)",
            "",
            [],
        )


def listeners(config: ResolvedSandboxConfig) -> list[str]:
    """The lines on each listening port of a task: first those inside the sandbox, then those on the host."""
    inside = [
        f"127.0.0.1:{HTTP_PORT} inside: HTTP proxy",
        f"127.0.0.1:{SOCKS_PORT} inside: SOCKS proxy",
        f"127.0.0.1:{_DNS_PORT} inside: name server, UDP and TCP",
    ]
    inside += [f"port {port} of loopback inside: the host's own port" for port in policy_from_config.host_ports(config)]
    return inside + [f"127.0.0.1:{port} on the host: the task's own port" for port in published_ports(config)]


def host(block: ExplainedNetwork, target: str) -> NetworkAnswer:
    """The answer whether the task reaches a host.

    Args:
        block: the network part of the block.
        target: `host` or `host:port`; without a port the question is whether any port of it is reached.
    """
    name, port = _split(target)
    try:
        name = canonical_host(name)
    except PatternRefused as refused:
        return NetworkAnswer(allowed=False, by=f"no host is written like that: {refused.message}")
    mac = block.config.platform == "macos"
    if mac and name in policy_from_config.LOOPBACK and block.config.local_binding:
        return NetworkAnswer(allowed=True, by="localBinding opens every port of this machine on macOS")
    if name in policy_from_config.LOOPBACK and port is not None and port in published_ports(block.config):
        return NetworkAnswer(allowed=True, by=f"port {port} is the task's own, since localBinding lists it")
    return _of_lists(block, name, port)


def _of_lists(block: ExplainedNetwork, name: str, port: int | None) -> NetworkAnswer:
    """The answer that the lists give for a host, the deny list first."""
    nearest = _nearest(block, name)
    denies = [(pattern, entries[0]) for pattern, entries in block.patterns("denyNetwork")]
    denied = next((entry for pattern, entry in denies if pattern.matches(name, port)), None)
    if denied is not None:
        return NetworkAnswer(allowed=False, by=denied, nearest=nearest)
    for pattern, entries in block.patterns("network"):
        asked = pattern.port if port is None else port
        if pattern.matches(name, asked) and not any(deny.matches(name, asked) for deny, _ in denies):
            return NetworkAnswer(allowed=True, by=entries[0])
    # without a port, an entry that denies one port decides where an allowed host comes close
    if port is None and nearest is not None:
        denied = next((entry for pattern, entry in denies if pattern.matches(name, pattern.port)), None)
    return NetworkAnswer(allowed=False, by=denied or _not_listed(block, name, port), nearest=nearest)


def _not_listed(block: ExplainedNetwork, name: str, port: int | None) -> str:
    if block.config.network is True:
        others = policy_from_config.canonical(block.listed, allow=True)
        found = [p for p in (check_pattern(text, allow=True) for text in others) if p.matches(name, port or p.port)]
        listed = f"a task of the workspace lists {found[0]}" if found else "no task of the workspace lists it"
        return f"network = true stands for the hosts that the tasks of one run list, and this task lists none; {listed}"
    if name in policy_from_config.LOOPBACK:
        if block.config.platform == "macos":
            return "network has to list the port, or localBinding be set for the task's own servers"
        return "the task has a loopback of its own: network has to list the port of the host"
    return "it is on no list" if block.config.network else "the block lists no host"


def _nearest(block: ExplainedNetwork, name: str) -> Entry | None:
    """The entry whose host shares the most labels with the end of a name, at least a domain; `None` when none does."""
    best: tuple[int, Entry] | None = None
    for pattern, entries in block.patterns("network"):
        shared = _shared(pattern.host, name)
        if shared and (best is None or shared > best[0]):
            best = (shared, entries[0])
    return best[1] if best is not None else None


def _shared(one: str, other: str) -> int:
    if one == other or {one, other} <= set(policy_from_config.LOOPBACK):
        return len(other)
    if is_address(one) or is_address(other):
        return 0
    count = 0
    for left, right in zip(reversed(one.split(".")), reversed(other.split(".")), strict=False):
        if left != right:
            break
        count += 1
    return count if count > 1 else 0  # a top-level domain such as `.org` alone is no likeness


def _split(target: str) -> tuple[str, int | None]:
    name, colon, port = target.rpartition(":")
    has_port = colon and port.isdecimal() and (":" not in name or name.endswith("]"))
    return (name, int(port)) if has_port else (target, None)


def socket(block: ExplainedNetwork, real: str, *, temp: str) -> NetworkAnswer:
    """The answer whether the task may connect to a socket of the host.

    Args:
        block: the network part of the block.
        real: the canonical path of the socket.
        temp: the path that stands for the task's temporary directory.
    """
    for path, entries in block.entries("unixSockets"):
        if path == real:
            return NetworkAnswer(allowed=True, by=entries[0])
    if block.config.unix_sockets is True:
        return NetworkAnswer(allowed=True, by="allow.unixSockets = true opens every socket that this user may open")
    for place in policy_from_config.own_sockets(block.config, temp):
        if paths.at_or_under(real, place):
            return NetworkAnswer(allowed=True, by=f"the task itself makes the sockets in {place}")
    what = known_sockets.control(real)
    behind = f", and behind it is {what}" if what else ""
    near = [entries[0] for path, entries in block.entries("unixSockets") if paths.parent(path) == paths.parent(real)]
    return NetworkAnswer(
        allowed=False, by=f"no entry of unixSockets is that path{behind}", nearest=near[0] if near else None
    )


def _operation(op: str, path: str, describe: str) -> JSON:
    return {"op": op, "path": path, "describe": describe}
