"""EFFECT: the joiner enters the namespaces, forks process 1 and ends; process 1 waits for a spec and mounts it."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import select
import socket
import traceback
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from sandbox.contract.errors import NotStarted
from sandbox.linux.inside import (
    accepted_streams,
    carry_out_mounts,
    enter_namespaces,
    landlock_rules,
    network_listeners,
    pid1,
    pty,
    resource_limits,
)
from sandbox.linux.kernel import kernel_calls, landlock
from sandbox.linux.warden import choose_task_filter, rehearsal
from sandbox.linux.warden_messages import Spec, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The most bytes of a word on the link to the warden.
WORD = 4096
#: The most descriptors that come with one word to the warden.
DESCRIPTORS = 8
# the spec and the three standard streams
_DESCRIPTORS = 4
_WITHOUT = "use the observer auto, which does without"


def main(link: socket.socket, *, proc: bool) -> NoReturn:
    """Enter namespaces, become process 1 and build what a spec asks for, or tell the warden why not.

    The first word on the link is the number of a process in the namespaces; the link closes where there is none. The
    second word is for process 1, and brings the spec and the standard streams; the link closes where no task comes.

    Args:
        link: a socket to the warden.
        proc: whether tasks get a `/proc` of their own.
    """
    try:
        resource_limits.be_killed_first()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        inside = _become_first(link, proc=proc)
        if _is_idle(link):
            decode(rehearsal.spec())
        carry_out_mounts.rehearse(idle=functools.partial(_is_idle, link))
        if _is_idle(link):
            landlock_rules.rehearse()
        word, fds, _, _ = socket.recv_fds(link, WORD, _DESCRIPTORS)
        if not word:
            os._exit(0)
        for fd in fds:
            os.set_inheritable(fd, False)
        spec = decode(_read_all(fds[0]))
        if isinstance(spec, Spec):
            _send_listeners(
                link,
                [*inside.listeners, *network_listeners.literal(spec.network), *network_listeners.reached(spec.network)],
            )
            _build(spec, link, inside, stdio=fds[1:], limits=limits)
    except carry_out_mounts.Vanished as error:
        _tell(link, b"vanished " + f"{error.filename}: {error.strerror}".encode("utf-8", "surrogateescape"))
    except _NoFuse as error:
        _tell(link, b"no-fuse " + str(error).encode())
    except NotStarted as error:
        _tell(link, b"failed " + f"{error.message}\0{error.hint}".encode("utf-8", "surrogateescape"))
    except BaseException as error:  # noqa: BLE001  the warden must hear of any error
        if os.environ.get("VXCONF_DEBUG"):
            traceback.print_exc()
        _tell(link, b"failed " + pid1.reason(error))
    os._exit(0)


class _NoFuse(Exception):
    """A `/dev/fuse` with which nothing can be mounted."""


def _is_idle(link: socket.socket) -> bool:
    return not select.select((link,), (), (), 0)[0]


class _Inside(NamedTuple):
    """Descriptors and findings that the joiner leaves to process 1.

    Attributes:
        inner: the user namespace that the command belongs in.
        device, mask: `/dev/fuse` and the detached mount over it, or the error by which there is none.
        listeners: the listeners that every task has.
        unmounted: the error by which the task has no `/proc` of its own, `None` where it has one.
        resolver: see `network_listeners.name_resolver`.
    """

    inner: int
    device: int | OSError
    mask: int | OSError
    listeners: list[socket.socket]
    unmounted: OSError | None
    resolver: dict[str, int]


def _become_first(link: socket.socket, *, proc: bool) -> _Inside:
    """Enter the namespaces and fork; returns in process 1 alone, and nowhere where there are no namespaces."""
    number = link.recv(WORD)
    if not number:
        os._exit(0)
    inner, device = enter_namespaces.enter(int(number), fuse=True)
    mask = device
    if isinstance(device, int):
        try:
            # not in process 1: FUSE numbers callers as the mounting process's pid namespace does (fs/fuse/inode.c)
            mask = carry_out_mounts.mask_mount(device)
        except OSError as error:
            mask = error
    waiting = network_listeners.usual()
    # every step that needs no task is taken before there is one, the fork included
    first = os.fork()
    if first:
        _send(link, b"first %d" % first, *network_listeners.asked())
        os._exit(0)
    unmounted: OSError | None = None
    try:
        if proc:
            pid1.mount_proc()
    except OSError as error:
        unmounted = error
    return _Inside(inner, device, mask, waiting, unmounted, network_listeners.name_resolver())


def _tell(link: socket.socket, word: bytes) -> None:
    with contextlib.suppress(OSError):  # the warden is gone, and this process with it in a moment
        link.send(word)


def _send(link: socket.socket, word: bytes, *fds: int) -> None:
    """Send one word to the warden, with descriptors."""
    socket.send_fds(link, [word], list(fds))


def _read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()


def _send_listeners(link: socket.socket, waiting: list[socket.socket]) -> None:
    """Send the warden the proxy's listeners, and keep none: the command's process is a fork of this one."""
    for start in range(0, len(waiting), DESCRIPTORS):
        _send(link, b"listeners", *(one.fileno() for one in waiting[start : start + DESCRIPTORS]))
    for one in waiting:
        one.close()


def _masked(spec: Spec, inside: _Inside) -> bool:
    """Whether the task gets the mask; where it does not, the mount is dropped.

    Raises:
        NotStarted: the observer `mask` is asked for, and there is none.
    """
    if spec.observer == "mask" and isinstance(inside.device, OSError):
        why = f"/dev/fuse cannot be opened: {inside.device.strerror or inside.device}"
        raise NotStarted(why, hint=_WITHOUT)
    if spec.observer == "mask" and isinstance(inside.mask, OSError):
        raise NotStarted(f"no mask can be mounted: {pid1.reason(inside.mask).decode()}", hint=_WITHOUT)
    masked = spec.observer in ("auto", "mask") and isinstance(inside.device, int)
    for fd in (inside.device, inside.mask):
        if isinstance(fd, int) and not masked:
            os.close(fd)
    return masked


def _kept_by_nobody(_tree: int) -> None:
    """Leave what covers show as it is, where no name comes or goes."""


def _hand_over(link: socket.socket, device: int, mask: int | OSError) -> int:
    """Have the warden answer for the mask; the mount's descriptor."""
    if isinstance(mask, OSError):
        raise _NoFuse(mask) from mask
    _send(link, b"mask %d %d" % (os.getuid(), os.getgid()), device)
    # the warden's must be the last descriptor: with another one open, requests of a dead warden's mask wait for ever
    os.close(device)
    return mask


def _build(
    spec: Spec,
    link: socket.socket,
    inside: _Inside,
    *,
    stdio: Sequence[int],
    limits: tuple[int, int],
) -> NoReturn:
    inner, device, mask, _, unmounted, resolver = inside
    masked = _masked(spec, inside)
    notify = choose_task_filter.notified(spec, masked=masked)
    if spec.granted and (notify == "none" or not spec.staging):
        raise NotStarted("write grants of names need an observer that answers calls, and a staging area")

    # the warden is asked before anything is mounted, so that it answers in time
    shown = _hand_over(link, device, mask) if masked and isinstance(device, int) else None
    stops = b""
    if spec.observer == "strace":
        from sandbox.linux.strace import strace_process

        stops = strace_process.traced()
    # this copy is made while `/proc` can still be written to
    proc = kernel_calls.clone_tree(kernel_calls.AT_FDCWD, "/proc") if spec.nested else None
    if shown is not None:
        carry_out_mounts.carry_out(spec.operations, lambda: shown)
    else:
        carry_out_mounts.carry_out(
            spec.operations,
            lambda: carry_out_mounts.plain_cover(spec.operations),
            sealed=functools.partial(_send, link, b"names") if spec.granted else _kept_by_nobody,
        )
    rules = landlock_rules.prepare(
        landlock.version(),
        spec.operations,
        masked=shown is not None,
        answered=notify != "none",
    )
    network_listeners.resolve(resolver)
    stdio = accepted_streams.accepted(stdio) if spec.screen is None else pty.make(spec.screen, stdio[0])
    program = choose_task_filter.task_filter(spec, notify)
    for number, fd in enumerate([os.dup(fd) for fd in stdio]):
        os.dup2(fd, number)
    pid1.run(
        spec,
        inner,
        program,
        link,
        listener=notify != "none",
        limits=limits,
        masked=masked,
        rules=rules,
        stops=stops,
        unmounted=unmounted,
        proc=proc,
    )
