"""EFFECT: which dials of a task to a host and a port, made past its front, are told, and with what reason."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from sandbox import domains
from sandbox.linux import sockaddr
from sandbox.network.policy import NOT_ALLOWED
from sandbox.network.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract import Access
    from sandbox.linux.observe import Recorder
    from sandbox.linux.sockaddr import Inet
    from sandbox.network.policy import Policy

OPERATION = "network-outbound"

#: How the task's own network answers what leads out of it.
_REFUSALS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.ECONNREFUSED}
)


class Outbound:
    """Tells the recorder.

    Args:
        names: the name a stand-in address is for, or the address.
    """

    def __init__(self, policy: Policy, recorder: Recorder, names: Callable[[str], str]) -> None:
        self._rules = Rules(policy)
        self._recorder = recorder
        self._names = names

    def ended(self, thread: int, target: Inet, code: int, *, sends: bool) -> None:
        """A dial got its answer.

        Args:
            thread: who made it.
            target: where to.
            code: the errno, 0 for none.
            sends: whether something would have been sent; a datagram socket is connected only to learn which address
                this machine would use, and nothing leaves by that.
        """
        if code not in _REFUSALS or not sends:
            return
        address, name = self._named(target)
        if target.loopback and name == address:
            # a server of its own that is not up yet is asked for again and again
            return
        reason = self._rules.refusal(domains.presented(name), target.port)
        if not reason:
            reason = "the front carries no direct dial to it: go through the proxy"
        elif reason == NOT_ALLOWED and name == address:
            reason = f"{NOT_ALLOWED}: a literal address"
        self._tell(thread, name, target.port, code, reason)

    def traced(self, access: Access) -> bool:
        """Take a connection that came to nothing, as a tracer tells it; false for one to a socket with a path."""
        host, _, port = access.asked.rpartition(":")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        try:
            target = sockaddr.inet(socket.inet_pton(family, host.strip("[]")), int(port))
        except (OSError, ValueError):
            return False
        code = getattr(errno, access.errno, 0)
        if code == errno.EINPROGRESS and self._refused(target):
            # nobody answers there, which its caller hears later
            code = errno.ECONNREFUSED
        self.ended(access.pid, target, code, sends=True)
        return True

    def _refused(self, target: Inet) -> bool:
        _, name = self._named(target)
        return bool(self._rules.refusal(domains.presented(name), target.port))

    def _named(self, target: Inet) -> tuple[str, str]:
        address = socket.inet_ntop(socket.AF_INET if len(target.packed) == 4 else socket.AF_INET6, target.packed)  # noqa: PLR2004  IPv4
        return address, self._names(address)

    def _tell(self, thread: int, host: str, port: int, code: int, reason: str) -> None:
        asked = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        answer = errno.errorcode.get(code, "")
        self._recorder.dialled(thread, OPERATION, asked, errno=answer, reason=reason)
