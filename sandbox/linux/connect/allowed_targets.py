"""EFFECT: what a task may be connected to by an address it wrote, as it is handed to the kernel in its place."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sandbox.linux.connect import unix_socket_path
from sandbox.linux.connect.connect_call import namespace
from sandbox.linux.kernel import sockaddr
from sandbox.linux.proxy.proxy_handle import OPERATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.linux.caller.caller_memory import Caller
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.proxy.policy.policy import Policy

#: The families whose addresses name a host and a port.
HOSTS = (sockaddr.AF_INET, sockaddr.AF_INET6)


class AllowedTargets:
    """Judges the addresses of one task.

    Args:
        first_datagrams: called before the task may get an AF_UNIX datagram socket from somebody.
    """

    def __init__(self, policy: Policy, recorder: Recorder, first_datagrams: Callable[[], object]) -> None:
        self._policy = policy
        self._recorder = recorder
        self._first_datagrams = first_datagrams
        with socket.socket(socket.AF_UNIX) as here:
            self._host = namespace(here)

    @contextmanager
    def of(
        self, who: Caller, sock: socket.socket, raw: bytes, call: str
    ) -> Iterator[tuple[bytes, sockaddr.Inet | None]]:
        """What to hand to the kernel in place of the caller's address, and the host it means.

        Raises:
            OSError: what the caller is answered instead.
        """
        try:
            address = sockaddr.parse(raw)
        except sockaddr.MalformedAddress as error:
            raise OSError(errno.EINVAL, str(error)) from error
        foreign = self._host is not None and namespace(sock) == self._host
        if sock.family == sockaddr.AF_UNIX:
            if isinstance(address, sockaddr.Path):
                with self._place(who, address.path, call, foreign=foreign) as place:
                    yield sockaddr.unix(place.name), None
                return
            known = isinstance(address, (sockaddr.Abstract, sockaddr.Unspecified))
        elif sock.family in HOSTS:
            known = isinstance(address, (sockaddr.Inet, sockaddr.Unspecified))
        else:
            # a caller without privilege may turn a netlink socket to the kernel alone
            known = isinstance(address, sockaddr.Netlink) and not (address.port or address.groups)
        if not known:
            raise _error(errno.EINVAL)
        if foreign:
            what = "a socket of the host's that was handed to the task"
            self._recorder.dialled(who.thread, OPERATION, "the host's network", errno="EPERM", reason=what)
            raise _error(errno.EPERM)
        yield raw, address if isinstance(address, sockaddr.Inet) else None

    @contextmanager
    def _place(self, who: Caller, path: bytes, call: str, *, foreign: bool) -> Iterator[unix_socket_path.SocketPath]:
        asked = os.fsdecode(path)
        try:
            place = unix_socket_path.reach(who.thread, path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EACCES):
                self._missing(who, asked, call, errno.errorcode[error.errno])
            raise
        try:
            if not place.socket:
                raise _error(errno.ECONNREFUSED)
            listed = self._policy.unix_sockets
            if foreign or not unix_socket_path.own(place.path, self._policy.own_sockets):
                if foreign or not (listed is True or (listed and place.path in listed)):
                    self._recorder.dialled(who.thread, call, asked, path=place.path, errno="EPERM")
                    raise _error(errno.EPERM)
                # whatever the server hands over may be a datagram socket
                self._first_datagrams()
            yield place
        finally:
            os.close(place.descriptor)

    def _missing(self, who: Caller, asked: str, call: str, code: str) -> None:
        """It is hidden from the task: what was reached for is what the host has there."""
        path = unix_socket_path.on_host(who.thread, asked)
        if unix_socket_path.is_socket(path):
            self._recorder.dialled(who.thread, call, asked, path=path, errno=code)


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))
