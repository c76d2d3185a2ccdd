"""EFFECT: the process that stays in a task's network to open sockets there for the proxy.

All its other namespaces are the host's, out of the task's sight. It ends with the proxy.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import re
import signal
import socket
from typing import NoReturn

from sandbox.linux.inside import network_listeners
from sandbox.linux.kernel import kernel_calls

#: The most places asked for in one word, so that their descriptors fit into one answer.
BATCH = 100
_WORD = 1 << 16
# counters of each protocol; `NoPorts` is the second number in the line of `Udp:` (/proc/net/snmp, proc(5))
_NOBODY = re.compile(r"^(?:Udp: \d+ |Udp6NoPorts\s+)(\d+)", re.MULTILINE)


def start(network: int, *others: socket.socket) -> socket.socket:
    """Fork the opener, and return the socket to ask it through.

    Args:
        network: a descriptor of the task's network namespace.
        others: sockets of the proxy's, which the opener closes.

    Raises:
        OSError: no process can be started.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            ours.close()
            for one in others:
                one.close()
            _serve(network, theirs)
        finally:
            os._exit(1)
    theirs.close()
    word = ours.recv(_WORD)
    if word != b"ready":
        raise OSError(f"the task's network cannot be entered: {word.decode(errors='replace') or 'it ended'}")
    return ours


def ask(opener: socket.socket, places: list[tuple[str, int]]) -> list[socket.socket]:
    """Listeners at those of some addresses and ports of the task's network that can be opened.

    Raises:
        OSError: the opener is gone.
    """
    found: list[socket.socket] = []
    for start_at in range(0, len(places), BATCH):
        opener.send(pickle.dumps(places[start_at : start_at + BATCH]))
        word, fds, _, _ = socket.recv_fds(opener, 16, BATCH)
        if not word:
            raise OSError("what opens listeners in the task's network ended")
        for fd in fds:
            os.set_inheritable(fd, False)
            found.append(socket.socket(fileno=fd))
    return found


def sock(opener: socket.socket, family: int) -> socket.socket:
    """A stream socket of the task's network that is connected to nothing yet.

    Raises:
        OSError: the opener is gone, or cannot make one.
    """
    opener.send(pickle.dumps(family))
    word, fds, _, _ = socket.recv_fds(opener, 16, 1)
    if not word or not fds:
        raise OSError("no socket can be made in the task's network")
    os.set_inheritable(fds[0], False)
    return socket.socket(fileno=fds[0])


def unreceived_datagrams(opener: socket.socket) -> int:
    """The number of datagrams in the task's network that no socket took.

    Raises:
        OSError: the opener is gone.
    """
    opener.send(pickle.dumps(None))
    return int(opener.recv(_WORD) or 0)


def _serve(network: int, link: socket.socket) -> NoReturn:
    try:
        owner = fcntl.ioctl(network, kernel_calls.NS_GET_USERNS)
        kernel_calls.setns(owner, "user")
        kernel_calls.setns(network, "net")
        os.close(owner)
        os.close(network)
        # the death signal is set last: a process that gains capabilities loses it (PR_SET_PDEATHSIG in prctl(2))
        kernel_calls.die_with_parent(signal.SIGKILL)
    except OSError as error:
        link.send(str(error).encode())
        os._exit(1)
    link.send(b"ready")
    while word := link.recv(_WORD):
        wanted: list[tuple[str, int]] | int | None = pickle.loads(word)  # noqa: S301  the proxy is of this program
        if wanted is None:
            link.send(b"%d" % _unreceived())
            continue
        opened = _sockets(wanted) if isinstance(wanted, int) else network_listeners.at(wanted)
        socket.send_fds(link, [b"opened"], [one.fileno() for one in opened])
        for one in opened:
            one.close()
    os._exit(0)


def _unreceived() -> int:
    found = 0
    for name in ("snmp", "snmp6"):
        # a machine without IPv6 has no second counter
        with contextlib.suppress(OSError), open(f"/proc/self/net/{name}", encoding="ascii") as file:
            found += sum(map(int, _NOBODY.findall(file.read())))
    return found


def _sockets(family: int) -> list[socket.socket]:
    try:
        return [socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)]
    except OSError:
        return []
