"""What one task's proxy lets through, as a value: made from the config, carried to the warden."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Why a host was refused, as reports tell it: an entry of `allow.network` cures the first alone.
NOT_ALLOWED = "not on the allow list"
DENIED = "on the deny list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Proxies the host itself goes through; empty strings where there is none.

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
        allow: host patterns in canonical form; `network = true` is the run's union here, already spelled out.
        deny: host patterns in canonical form, judged before `allow`.
        host_ports: the host's loopback TCP ports the task dials directly.
        published: TCP ports of the task's own servers, open on the host's 127.0.0.1.
        unix_sockets: `True` (any path), or canonical paths of host sockets.
        own_sockets: directories and files in which sockets are the task's own: its temporary directory, write grants.
        upstream: the host's own proxies.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    host_ports: tuple[int, ...] = ()
    published: tuple[int, ...] = ()
    unix_sockets: bool | tuple[str, ...] = ()
    own_sockets: tuple[str, ...] = ()
    upstream: Upstream = field(default_factory=Upstream)


class HostRefused(Exception):
    """The task may not reach it; `reason` says why, `asked` is what is reported."""

    def __init__(self, asked: str, reason: str) -> None:
        super().__init__(f"{asked}: {reason}")
        self.asked = asked
        self.reason = reason
