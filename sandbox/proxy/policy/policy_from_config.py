"""The policy of a task's proxy, from what the task's config grants. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.base import globs, host_patterns, paths
from sandbox.base.host_patterns import check_pattern
from sandbox.contract.errors import NotStarted
from sandbox.proxy.policy.policy import Policy, UpstreamProxies
from sandbox.proxy.policy.published_ports import published_ports

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandbox.base.host_patterns import Pattern
    from sandbox.contract.config import ResolvedSandboxConfig

#: The hosts whose ports a task dials directly, without its proxy.
LOOPBACK = host_patterns.LOOPBACK

_PROXY = re.compile(r"(?:http://)?(?:[^/@\s]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/@:\s\[\]]+)(?::[0-9]+)?/*\Z")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def policy(
    config: ResolvedSandboxConfig,
    *,
    temp: str,
    declared: Iterable[ResolvedSandboxConfig] = (),
    host: Mapping[str, str] | None = None,
) -> Policy:
    """The network and the sockets of one task.

    Args:
        config: the task's grants.
        temp: the task's temporary directory, empty while it has none.
        declared: the configs of the run's tasks, whose lists `network = true` reaches.
        host: this process's environment, which names the host's own proxies.

    Raises:
        PatternRefused: an entry is no host pattern.
        NotStarted: the host goes through a proxy of a kind other than HTTP.
    """
    allow = union(declared) if config.network is True else canonical(config.network or (), allow=True)
    return Policy(
        allow=allow,
        deny=canonical(config.deny_network, allow=False),
        host_ports=host_ports(config),
        published=published_ports(config),
        unix_sockets=config.unix_sockets or (),
        own_sockets=own_sockets(config, temp),
        private_sockets=_private_sockets(config, temp),
        # a task that reaches nothing needs no proxy of the host's, of whatever kind
        upstream=upstream(host or {}) if allow else UpstreamProxies(),
    )


def canonical(entries: Iterable[str], *, allow: bool) -> tuple[str, ...]:
    """Host patterns in the one form in which they are compared, each once.

    Raises:
        PatternRefused: an entry is no host pattern.
    """
    return tuple(dict.fromkeys(str(check_pattern(entry, allow=allow)) for entry in entries))


def union(configs: Iterable[ResolvedSandboxConfig]) -> tuple[str, ...]:
    """The host patterns that the tasks of a run list, each once; `network = true` reaches them.

    Raises:
        PatternRefused: an entry is no host pattern.
    """
    lists = (config.network for config in configs)
    return canonical(
        (entry for listed in lists if listed is not None and listed is not True for entry in listed), allow=True
    )


def host_ports(config: ResolvedSandboxConfig) -> tuple[int, ...]:
    """The host's loopback ports that a task dials directly: those it lists, without its own and those it denies."""
    if config.network is None or config.network is True:
        return ()
    listed = dict.fromkeys(
        pattern.port
        for pattern in (check_pattern(entry, allow=True) for entry in config.network)
        if is_loopback(pattern) and pattern.port is not None
    )
    denied = [check_pattern(entry, allow=False) for entry in config.deny_network]
    own = published_ports(config)
    return tuple(
        port
        for port in listed
        if port is not None and port not in own and not any(d.matches(h, port) for d in denied for h in LOOPBACK)
    )


def is_loopback(pattern: Pattern) -> bool:
    """Whether a pattern names this machine itself."""
    return pattern.is_loopback


def _private_sockets(config: ResolvedSandboxConfig, temp: str) -> tuple[str, ...]:
    """The task's temporary directory, unless a write grant holds it: a socket may then be moved into it."""
    others = own_sockets(config, "")
    return (temp,) if temp and not any(paths.at_or_under(temp, place) for place in others) else ()


def own_sockets(config: ResolvedSandboxConfig, temp: str) -> tuple[str, ...]:
    """The places in which a task may make sockets: its temporary directory, and what it may write by literal path.

    A pattern is left out: its directory may hold sockets of the host's beside what the task made.
    """
    granted = (globs.unescape(g).rstrip("/") for g in config.allow_write if not globs.has_wildcard(g))
    return tuple(path for path in dict.fromkeys((temp, *granted)) if path)


def upstream(host: Mapping[str, str]) -> UpstreamProxies:
    """The proxies that the host itself goes through.

    The lowercase variable wins, an empty one means no proxy, and `ALL_PROXY` stands in for one that is not set. In a
    CGI program, which has `REQUEST_METHOD`, `HTTP_PROXY` is a client's header and does not count (CVE-2016-5385).

    Raises:
        NotStarted: a proxy is of another kind than HTTP.
    """
    except_for = tuple(entry for entry in re.split(r"[,\s]+", _either(host, "no_proxy") or "") if entry)
    if "*" in except_for:
        return UpstreamProxies()
    plain = host.get("http_proxy") if "REQUEST_METHOD" in host else _either(host, "http_proxy")
    tunnels = _either(host, "https_proxy")
    rest = _either(host, "all_proxy") or ""
    found = UpstreamProxies(
        http=_spoken("http_proxy", rest if plain is None else plain),
        https=_spoken("https_proxy", rest if tunnels is None else tunnels),
        except_for=except_for,
    )
    return found if found.http or found.https else UpstreamProxies()


def _either(host: Mapping[str, str], name: str) -> str | None:
    lower = host.get(name)
    return host.get(name.upper()) if lower is None else lower


def _spoken(name: str, value: str) -> str:
    """A proxy as an `http://` URL; a refusal names the variable, never its value, which may hold a password."""
    if not value or _PROXY.match(value):
        return value if not value or "://" in value else f"http://{value}"
    scheme = _SCHEME.match(value)
    what = f"a {scheme[1].lower()} proxy" if scheme and scheme[1].lower() != "http" else "no proxy's address"
    raise NotStarted(
        f"the host's {name} names {what}, and a task's proxy goes through HTTP proxies alone",
        hint=f'set {name} to an address like "http://proxy.example:3128", or no_proxy to "*"',
    )
