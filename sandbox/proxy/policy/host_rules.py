"""The judgement of a host and a port by a task's two lists; no name is resolved here. Pure."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from sandbox.base import host_patterns
from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED

if TYPE_CHECKING:
    from sandbox.proxy.policy.policy import Policy

#: Ports at which programs without proxy support reach an allowed name, beside the ports that the lists name.
USUAL_PORTS = (22, 80, 443)

#: The most answers kept of each question: a task dials few hosts, and many times.
REMEMBERED = 1024


class _List:
    """Host patterns, indexed by the host they name."""

    def __init__(self, entries: tuple[str, ...], *, allow: bool) -> None:
        self.patterns = tuple(host_patterns.check_pattern(entry, allow=allow) for entry in entries)
        self._by_host: dict[str, list[host_patterns.Pattern]] = {}
        self.holds = functools.lru_cache(REMEMBERED)(self._holds)
        for pattern in self.patterns:
            # presented hosts come in this form, in which an IPv4 address inside an IPv6 one is itself
            host = host_patterns.canonical_host(pattern.host) if pattern.host else ""
            self._by_host.setdefault(host, []).append(host_patterns.Pattern(host, pattern.wildcard, pattern.port))

    def about(self, host: str) -> list[host_patterns.Pattern]:
        """The patterns that match a host at some port."""
        found = [pattern for pattern in self._by_host.get(host, ()) if not pattern.wildcard]
        found += self._by_host.get("", ())
        if not host_patterns.is_address(host):
            rest = host
            while "." in rest:
                rest = rest.partition(".")[2]
                found += (pattern for pattern in self._by_host.get(rest, ()) if pattern.wildcard)
        return found

    def _holds(self, host: str, port: int) -> bool:
        return any(pattern.port in {None, port} for pattern in self.about(host))


class HostRules:
    """The two lists of one task; every host is in the form of `host_patterns.canonical_host`."""

    def __init__(self, policy: Policy) -> None:
        self._allow = _List(policy.allow, allow=True)
        self._deny = _List(policy.deny, allow=False)
        named = {pattern.port for pattern in self._allow.patterns if pattern.port is not None}
        self._ports = tuple(sorted(named.union(USUAL_PORTS)))

    def refusal(self, host: str, port: int) -> str:
        """The reason why a target is refused, empty where it is allowed."""
        if self._deny.holds(host, port):
            return DENIED
        return "" if self._allow.holds(host, port) else NOT_ALLOWED

    def denies(self, address: str, port: int) -> bool:
        """Whether the deny list names an address that a name resolved to."""
        return self._deny.holds(address, port)

    def lookup_refusal(self, host: str) -> str:
        """The reason why a name has no address at all, empty where it is reached at some port."""
        if any(pattern.port is None for pattern in self._deny.about(host)):
            return DENIED
        return "" if self._allow.about(host) else NOT_ALLOWED

    def lists(self, address: str, port: int) -> bool:
        """Whether the allow list names an address itself, not a name of it."""
        return self._allow.holds(address, port)

    def ports(self, host: str) -> tuple[int, ...]:
        """The ports to listen at for a host, in order; at a refused one the proxy reports the host by its name."""
        own = {pattern.port for pattern in self._allow.about(host) if pattern.port is not None}
        return tuple(sorted(own.union(self._ports)))

    def addresses(self) -> tuple[str, ...]:
        """The addresses on the allow list, except those of the loopback."""
        hosts = (pattern.host for pattern in self._allow.patterns if not pattern.wildcard)
        listed = dict.fromkeys(host_patterns.canonical_host(host) for host in hosts if host_patterns.is_address(host))
        return tuple(host for host in listed if host != "::1" and not host.startswith("127."))
