"""EFFECT: the judgement of an address that a caller wrote, and the address the kernel gets in its place."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sandbox.linux.connect import sockets_of_task, unix_socket_path
from sandbox.linux.connect.connect_call import namespace
from sandbox.linux.kernel import sockaddr
from sandbox.linux.proxy.proxy_handle import OPERATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.linux.caller.caller_memory import Caller
    from sandbox.linux.observe.recorder import Recorder
    from sandbox.proxy.policy.policy import Policy

#: Families whose addresses name a host and a port.
HOSTS = (sockaddr.AF_INET, sockaddr.AF_INET6)


class AllowedTargets:
    """Judges the addresses of one task.

    Args:
        first_datagrams: called before the task may be handed an AF_UNIX datagram socket by a server it reaches.

    Attributes:
        sockets: the task's own sockets.
    """

    def __init__(self, policy: Policy, recorder: Recorder, first_datagrams: Callable[[], object]) -> None:
        self._policy = policy
        self._recorder = recorder
        self.sockets = sockets_of_task.SocketsOfTask(None)
        self._first_datagrams = first_datagrams
        with socket.socket(socket.AF_UNIX) as here:
            self._host = namespace(here)

    @contextmanager
    def of(
        self, caller: Caller, sock: socket.socket, raw: bytes, call: str
    ) -> Iterator[tuple[bytes, sockaddr.Inet | None]]:
        """The address to give the kernel in place of the caller's, and the host that it means, if it means one.

        Args:
            caller: the thread that made the call.
            sock: its socket.
            raw: the address it wrote.
            call: the call's name.

        Raises:
            OSError: the caller gets this error instead.
        """
        try:
            address = sockaddr.parse(raw)
        except sockaddr.MalformedAddress as error:
            raise OSError(errno.EINVAL, str(error)) from error
        foreign = self._host is not None and namespace(sock) == self._host
        if sock.family == sockaddr.AF_UNIX:
            if isinstance(address, sockaddr.Path):
                with self._place(caller, address.path, call, foreign=foreign) as place:
                    yield sockaddr.unix(place.name), None
                return
            known = isinstance(address, (sockaddr.Abstract, sockaddr.Unspecified))
        elif sock.family in HOSTS:
            known = isinstance(address, (sockaddr.Inet, sockaddr.Unspecified))
        else:
            # a caller without privilege may send to the kernel alone over netlink (netlink(7))
            known = isinstance(address, sockaddr.Netlink) and not (address.port or address.groups)
        if not known:
            raise _error(errno.EINVAL)
        if foreign:
            what = "a socket of the host's that was handed to the task"
            self._recorder.connection(caller.thread, OPERATION, "the host's network", errno="EPERM", reason=what)
            raise _error(errno.EPERM)
        yield raw, address if isinstance(address, sockaddr.Inet) else None

    @contextmanager
    def _place(self, caller: Caller, path: bytes, call: str, *, foreign: bool) -> Iterator[unix_socket_path.SocketPath]:
        asked = os.fsdecode(path)
        try:
            place = unix_socket_path.reach(caller.thread, path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EACCES):
                self._missing(caller, asked, call, errno.errorcode[error.errno])
            raise
        try:
            if not place.socket:
                raise _error(errno.ECONNREFUSED)
            if foreign or not self._own(place):
                if foreign or not self._listed(place.path):
                    reason = self.sockets.doubt if self._may_write(place) else ""
                    self._recorder.connection(caller.thread, call, asked, path=place.path, errno="EPERM", reason=reason)
                    raise _error(errno.EPERM)
                # a server may hand over a datagram socket
                self._first_datagrams()
            yield place
        finally:
            os.close(place.descriptor)

    def _own(self, place: unix_socket_path.SocketPath) -> bool:
        """Whether the task made a socket; what cannot be told is no.

        Raises:
            OSError: nobody's socket is there, in a place where the task might have made it.
        """
        if unix_socket_path.own(place.path, self._policy.private_sockets) or self.sockets.made(place):
            return True
        if not self._may_write(place):
            return False
        if not sockets_of_task.is_bound(place):
            raise _error(errno.ECONNREFUSED)
        # a socket gets its file a moment before the kernel tells of it (net/unix/af_unix.c, unix_bind_bsd)
        return self.sockets.made(place)

    def _may_write(self, place: unix_socket_path.SocketPath) -> bool:
        return unix_socket_path.own(place.path, self._policy.own_sockets)

    def _listed(self, path: str) -> bool:
        listed = self._policy.unix_sockets
        return listed is True or (listed is not False and path in listed)

    def _missing(self, caller: Caller, asked: str, call: str, code: str) -> None:
        """Record an attempt at a socket that is hidden from the task, where the host has one at that path."""
        path = unix_socket_path.on_host(caller.thread, asked)
        if unix_socket_path.is_socket(path):
            self._recorder.connection(caller.thread, call, asked, path=path, errno=code)


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))
