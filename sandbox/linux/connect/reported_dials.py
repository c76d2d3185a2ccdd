"""EFFECT: which dials of a task to a host and a port, made past its proxy, are told, and with what reason."""

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


#: How the task's own network answers what leads out of it.
_REFUSALS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.ECONNREFUSED}
)


class ReportedDials:
    """Tells the recorder.

    Args:
        proxy: the task's own.
    """

    def __init__(self, policy: Policy, recorder: Recorder, proxy: StandInPorts) -> None:
        self._rules = HostRules(policy)
        self._recorder = recorder
        self._proxy = proxy

    def place(self, target: Inet) -> tuple[str, int] | None:
        """The address and port at which the proxy has to listen for a dial; `None` where that is not its to do."""
        address, name = self._named(target)
        if (target.loopback and name == address) or self._rules.refusal(host_patterns.presented(name), target.port):
            return None
        return address, target.port

    def stands_in(self, target: Inet) -> bool:
        """Whether an address is the proxy's: a name's stand-in, or one that is itself listed."""
        address, name = self._named(target)
        return name != address or (
            not target.loopback and self._rules.lists(host_patterns.presented(name), target.port)
        )

    def ended(self, thread: int, target: Inet, code: int, *, sends: bool, datagram: bool = False) -> None:
        """A dial got its answer.

        Args:
            thread: who made it.
            target: where to.
            code: the errno, 0 for none.
            sends: whether something would have been sent; a datagram socket is connected only to learn which address
                this machine would use, and nothing leaves by that.
            datagram: whether it was no stream; to what a list names it is told a failed task, and else counts nothing:
                programs that try a quicker protocol first go on with TCP.
        """
        if not sends and not code and self.stands_in(target):
            _, name = self._named(target)
            self._proxy.lettered(host_patterns.spelled(name, target.port))
        if code not in _REFUSALS or not sends:
            return
        address, name = self._named(target)
        if target.loopback and name == address:
            # a server of its own that is not up yet is asked for again and again
            return
        reason = self._rules.refusal(host_patterns.presented(name), target.port)
        if datagram:
            self._tell(thread, name, target.port, code, ONLY_TCP, refused=bool(reason))
            return
        if not reason:
            reason = "a direct connection to it is not carried: go through the proxy"
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
        return bool(self._rules.refusal(host_patterns.presented(name), target.port))

    def _named(self, target: Inet) -> tuple[str, str]:
        address = socket.inet_ntop(socket.AF_INET if len(target.packed) == 4 else socket.AF_INET6, target.packed)  # noqa: PLR2004  IPv4
        return address, self._proxy.name(address)

    def _tell(self, thread: int, host: str, port: int, code: int, reason: str, *, refused: bool = True) -> None:
        # what counts and what does not are never told as the same
        asked = host_patterns.spelled(host, port) + ("" if refused else "/udp")
        answer = errno.errorcode.get(code, "")
        self._recorder.dialled(thread, OPERATION, asked, errno=answer, reason=reason, refused=refused)
