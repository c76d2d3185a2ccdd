"""EFFECT: the process in which a task's proxy runs.

The proxy is a program of its own, started when a connection first waits at a listener. Bulk transfer must not keep the
warden from calls that wait for it, and a task that never connects pays for no process.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import resource
import signal
import socket
import traceback
from typing import TYPE_CHECKING

from sandbox.linux.inside import port_opener
from sandbox.linux.kernel import kernel_calls
from sandbox.linux.proxy.proxy_handle import BATCH, HOLE, LINK, SETTLE, SETTLED, WORD
from sandbox.proxy.io.idle_loop import IdleLoop
from sandbox.proxy.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.policy.policy import Policy

# objects made and not freed after which cycles among them are looked for (gc.set_threshold)
_GARBAGE = 7000


def main() -> None:
    """Serve one task's proxy until the warden is gone, or has taken the last report."""
    link = socket.socket(fileno=LINK)
    link.set_inheritable(False)
    kernel_calls.die_with_parent(signal.SIGKILL)
    policy, network, listeners = _given(link)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asked = port_opener.start(network, link, *listeners)
    os.close(network)
    kernel_calls.give_up_privileges()
    loop = IdleLoop()

    def tell(asked: str, reason: str) -> None:
        link.send(json.dumps(("refused", asked, reason)).encode() if reason else HOLE)

    def name(host: str, addresses: tuple[str, ...]) -> None:
        link.send(json.dumps(("name", host, *addresses)).encode())

    def failed(error: Exception) -> None:
        if os.environ.get("VXCONF_DEBUG"):
            traceback.print_exception(error)
        link.send(json.dumps(("failed", f"{type(error).__name__}: {error}"[: WORD // 8])).encode())

    proxy = Proxy(
        loop,
        policy,
        listen=lambda places: port_opener.ask(asked, places),
        report=tell,
        failed=failed,
        named=name,
        inside=lambda family: port_opener.sock(asked, family),
    )
    proxy.take(listeners)
    # objects made so far stay for good, and a connection leaves few cycles
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    loop.set_exception_handler(lambda _, context: failed(context.get("exception") or RuntimeError(context["message"])))
    loop.add_reader(link.fileno(), lambda: _hear(loop, link, proxy, failed))
    loop.run_forever()
    settled = proxy.settle()
    with contextlib.suppress(OSError):
        if port_opener.unreceived_datagrams(asked):
            link.send(json.dumps(("datagrams", "")).encode())
    for listener in listeners:  # no published port stays open past the run
        listener.close()
    if settled:
        link.send(SETTLED)
    os._exit(0)


def _given(link: socket.socket) -> tuple[Policy, int, list[socket.socket]]:
    """The policy, the task's network, and the listeners; their number comes first."""
    word, fds, _, _ = socket.recv_fds(link, 16, 2)
    if len(fds) != 2:  # noqa: PLR2004  the policy and the network
        os._exit(1)
    with open(fds[0], "rb") as file:
        policy: Policy = pickle.load(file)  # noqa: S301  the warden is of this program
    listeners: list[int] = []
    while len(listeners) < int(word):
        more, passed, _, _ = socket.recv_fds(link, 16, BATCH)
        if not more:
            os._exit(1)
        listeners += passed
    for fd in (fds[1], *listeners):
        os.set_inheritable(fd, False)
    return policy, fds[1], [socket.socket(fileno=fd) for fd in listeners]


def _hear(loop: IdleLoop, link: socket.socket, proxy: Proxy, failed: Callable[[Exception], None]) -> None:
    """Listen where the warden wants it, until it says that the task has ended."""
    while True:
        try:
            word = link.recv(WORD, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if not word:
            os._exit(0)
        if word == SETTLE:
            loop.remove_reader(link.fileno())
            loop.stop()
            return
        address, port = json.loads(word)
        listens = ""
        try:
            listens = "yes" if proxy.listen_at(address, port) else ""
        except OSError as error:
            failed(error)
        link.send(json.dumps(("listening", address, str(port), listens)).encode())
