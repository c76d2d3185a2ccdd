"""EFFECT: a session's fork server: single-threaded, small, started once; each task's warden is a fork of it.

It holds no state of a task. It ends when the executor's end of its socket closes, and every warden with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time

from sandbox.linux import kernel, warden
from sandbox.linux.messages import Failed, encode

# the control socket and the three standard streams
_DESCRIPTORS = 4
_END_SECONDS = 5.0


def main(descriptor: int) -> None:
    """Serve forks until the executor is gone.

    Args:
        descriptor: a seqpacket socket; each packet brings the control socket and the three standard streams.
    """
    requests = socket.socket(fileno=descriptor)
    requests.set_inheritable(False)
    # wardens are never waited for: what they have to say they say to the executor
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # a warden that is killed while bubblewrap starts leaves a child of that, which waits for its parent for ever
    kernel.become_subreaper()
    wardens: set[int] = set()
    requests.send(b"ready")
    warden.task_filter("writes")
    warden.task_filter("all")
    # what stands now is shared by every fork; collecting it would copy its pages
    gc.collect()
    gc.freeze()
    while True:
        data, fds, _, _ = socket.recv_fds(requests, 16, _DESCRIPTORS)
        for fd in fds:
            # recv_fds drops the flag that would do it; a child that keeps the control socket keeps the executor waiting
            os.set_inheritable(fd, False)
        if not data:
            _end_children()
            return
        wardens &= _children()
        _end(_children() - wardens)
        if len(fds) != _DESCRIPTORS:
            for fd in fds:
                os.close(fd)
            continue
        control = socket.socket(fileno=fds[0])
        try:
            pid = os.fork()
        except OSError as error:
            # an executor that is gone must not end the supervisor of the others
            with contextlib.suppress(OSError):
                control.sendall(encode(Failed(reason=f"no process can be started: {error.strerror}")))
            pid = -1
        if pid == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            warden.main(control, (fds[1], fds[2], fds[3]))
        wardens.add(pid)
        control.close()
        for fd in fds[1:]:
            os.close(fd)


def _children() -> set[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            return set(map(int, children.read().split()))
    except OSError:  # a kernel that does not list them
        return set()


def _end(children: set[int]) -> None:
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _end_children() -> None:
    """End every warden, and what becomes this process's own by that."""
    end = time.monotonic() + _END_SECONDS
    while (children := _children()) and time.monotonic() < end:
        _end(children)
        time.sleep(0.001)


if __name__ == "__main__":
    main(int(sys.argv[1]))
