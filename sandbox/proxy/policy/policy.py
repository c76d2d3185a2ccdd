"""The policy of one task's proxy, as a value that is made from the config and carried to the warden. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Reasons for a refusal, as reports tell them; only the first is cured by an entry of `allow.network`.
NOT_ALLOWED = "not on the allow list"
DENIED = "on the deny list"
#: Why a greeting over TLS is refused; what is wrong with it follows. A host that is listed by its address is greeted in
#: any way.
UNTOLD = "the name in its greeting over TLS cannot be told"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamProxies:
    """The proxies that the host itself goes through; empty strings where there is none.

    Attributes:
        http: for plain HTTP, from the host's `HTTP_PROXY`; `https`: for tunnels, from its `HTTPS_PROXY`.
        except_for: the entries of the host's `NO_PROXY`.
    """

    http: str = ""
    https: str = ""
    except_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The network and the sockets of one task.

    Attributes:
        allow: host patterns in canonical form; for `network = true` those of all tasks of the run.
        deny: host patterns in canonical form, judged before `allow`.
        host_ports: the host's loopback TCP ports the task dials directly.
        published: TCP ports of the task's own servers that are open on the host's 127.0.0.1.
        unix_sockets: `True` (any path), or canonical paths of host sockets.
        own_sockets: where the task may make sockets: its temporary directory, and what it may write by literal path.
        private_sockets: those of them in which nobody else makes any.
        upstream: the host's own proxies.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    host_ports: tuple[int, ...] = ()
    published: tuple[int, ...] = ()
    unix_sockets: bool | tuple[str, ...] = ()
    own_sockets: tuple[str, ...] = ()
    private_sockets: tuple[str, ...] = ()
    upstream: UpstreamProxies = field(default_factory=UpstreamProxies)


class HostRefused(Exception):
    """A target that the task may not reach; `asked` is what is reported, `reason` says why."""

    def __init__(self, asked: str, reason: str) -> None:
        super().__init__(f"{asked}: {reason}")
        self.asked = asked
        self.reason = reason
