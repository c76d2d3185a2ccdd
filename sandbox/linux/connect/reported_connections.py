"""EFFECT: which direct connections of a task to a host and a port are reported, and with what reason."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from sandbox.base import host_patterns
from sandbox.linux.kernel import sockaddr
from sandbox.linux.proxy.proxy_handle import ONLY_TCP, OPERATION
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import NOT_ALLOWED

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.linux.connect.stand_in_ports import StandInPorts
    from sandbox.linux.kernel.sockaddr import Inet
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.proxy.policy.policy import Policy


#: Errors by which the task's own network answers a connection that leads out of it.
_REFUSALS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.ECONNREFUSED}
)


class ReportedConnections:
    """Judges a task's direct connections, and reports those that came to nothing.

    Args:
        proxy: the task's own proxy.
    """

    def __init__(self, policy: Policy, recorder: Recorder, proxy: StandInPorts) -> None:
        self._rules = HostRules(policy)
        self._recorder = recorder
        self._proxy = proxy

    def place(self, target: Inet) -> tuple[str, int] | None:
        """Where the proxy must listen for a connection: address and port; `None` where the proxy has nothing to do."""
        address, name = self._named(target)
        if (target.loopback and name == address) or self._rules.refusal(
            host_patterns.canonical_host(name), target.port
        ):
            return None
        return address, target.port

    def stands_in(self, target: Inet) -> bool:
        """Whether an address is the proxy's: the stand-in of a name, or an address that is itself listed."""
        address, name = self._named(target)
        return name != address or (
            not target.loopback and self._rules.lists(host_patterns.canonical_host(name), target.port)
        )

    def ended(self, thread: int, target: Inet, code: int, *, sends: bool, datagram: bool = False) -> None:
        """Report a connect or a send that got its answer, where it counts.

        Args:
            thread: the caller.
            target: the host and port it named.
            code: the errno it got, 0 for none.
            sends: whether something would have been sent; programs also connect a datagram socket only to learn which
                address this machine would use, and nothing leaves by that.
            datagram: whether the socket is no stream. A datagram to a listed host counts for nothing, and is told where
                the task fails: programs that try a quicker protocol first go on with TCP.
        """
        if not sends and not code and self.stands_in(target):
            _, name = self._named(target)
            self._proxy.datagram_connected(host_patterns.spelled(name, target.port))
        if code not in _REFUSALS or not sends:
            return
        address, name = self._named(target)
        if target.loopback and name == address:
            # a task asks for a server of its own that is not up yet again and again
            return
        reason = self._rules.refusal(host_patterns.canonical_host(name), target.port)
        if datagram:
            self._tell(thread, name, target.port, code, ONLY_TCP, refused=bool(reason))
            return
        if not reason:
            reason = "a direct connection to it is not carried: go through the proxy"
        elif reason == NOT_ALLOWED and name == address:
            reason = f"{NOT_ALLOWED}: a literal address"
        self._tell(thread, name, target.port, code, reason)

    def traced(self, access: Access) -> bool:
        """Report a connection that came to nothing, as a tracer tells it; false for one to a socket with a path."""
        host, _, port = access.asked.rpartition(":")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        try:
            target = sockaddr.inet(socket.inet_pton(family, host.strip("[]")), int(port))
        except (OSError, ValueError):
            return False
        code = getattr(errno, access.errno, 0)
        if code == errno.EINPROGRESS and self._refused(target):
            # the caller hears later that nobody answers there
            code = errno.ECONNREFUSED
        self.ended(access.pid, target, code, sends=True)
        return True

    def _refused(self, target: Inet) -> bool:
        _, name = self._named(target)
        return bool(self._rules.refusal(host_patterns.canonical_host(name), target.port))

    def _named(self, target: Inet) -> tuple[str, str]:
        address = socket.inet_ntop(socket.AF_INET if len(target.packed) == 4 else socket.AF_INET6, target.packed)  # noqa: PLR2004  IPv4
        return address, self._proxy.name(address)

    def _tell(self, thread: int, host: str, port: int, code: int, reason: str, *, refused: bool = True) -> None:
        # an attempt that counts and one that does not are never told as the same
        asked = host_patterns.spelled(host, port) + ("" if refused else "/udp")
        answer = errno.errorcode.get(code, "")
        self._recorder.connection(thread, OPERATION, asked, errno=answer, reason=reason, refused=refused)
