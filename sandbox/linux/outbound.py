"""EFFECT: which dials of a task to a host and a port, made past its front, are told, and with what reason."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from sandbox import domains
from sandbox.network.policy import NOT_ALLOWED
from sandbox.network.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.linux.observe import Recorder
    from sandbox.linux.sockaddr import Inet
    from sandbox.network.policy import Policy

OPERATION = "network-outbound"

#: How the task's own network answers what leads out of it.
_REFUSALS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.ECONNREFUSED}
)
_LISTENS = "0A"
#: As /proc/net/tcp and tcp6 print them: each 32-bit word of an address in the machine's own order.
_REACHED = frozenset(
    {"0" * 8, "0100007F", "0" * 32, "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
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
        address = socket.inet_ntop(socket.AF_INET if len(target.packed) == 4 else socket.AF_INET6, target.packed)  # noqa: PLR2004  IPv4
        name = self._names(address)
        if target.loopback and name == address:
            # a server of its own that is not up yet is asked for again and again; the host's is out of reach
            if code == errno.ECONNREFUSED and listens(target.port):
                reason = f'the host listens on this port, which allow.network = ["localhost:{target.port}"] would open'
                self._tell(thread, address, target.port, code, reason, refused=False)
            return
        reason = self._rules.refusal(domains.presented(name), target.port)
        if not reason:
            reason = "the front carries no direct dial to it: go through the proxy"
        elif reason == NOT_ALLOWED and name == address:
            reason = f"{NOT_ALLOWED}: a literal address"
        self._tell(thread, name, target.port, code, reason, refused=True)

    def _tell(self, thread: int, host: str, port: int, code: int, reason: str, *, refused: bool) -> None:
        asked = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        answer = errno.errorcode.get(code, "")
        self._recorder.dialled(thread, OPERATION, asked, errno=answer, reason=reason, refused=refused)


def listens(port: int) -> bool:
    """Whether a TCP server of the host's takes connections to a loopback port."""
    wanted = f"{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                next(file, "")
                for line in file:
                    fields = line.split(None, 4)
                    address, _, own = fields[1].partition(":")
                    if own == wanted and fields[3] == _LISTENS and address in _REACHED:
                        return True
        except OSError:  # no IPv6
            continue
    return False
