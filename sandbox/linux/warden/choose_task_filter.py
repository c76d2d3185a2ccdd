"""EFFECT: the choice of a task's seccomp filter: calls that are refused, calls that stop for the warden, sockets."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from sandbox.linux.kernel import seccomp_filter
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

if TYPE_CHECKING:
    from sandbox.linux.warden_messages import Spec


def notified(spec: Spec, *, masked: bool) -> seccomp_filter.Notify:
    """Which calls of a task stop for the warden; where a mask answers for every look, only those that write."""
    if spec.observer in ("none", "strace"):
        return "none"
    return "writes" if masked else "all"


def task_filter(spec: Spec, notify: seccomp_filter.Notify) -> bytes:
    """The filter of a task, whose calls of one kind stop for the warden."""
    # nobody makes connections for such a task, so it may make them itself where every socket is granted
    free = notify == "none" and spec.network.unix_sockets is True
    return assembled(notify, free=True) if free else assembled(notify)


@functools.cache
def assembled(notify: seccomp_filter.Notify, *, free: bool = False) -> bytes:
    """One of the filters there are on this machine; the supervisor assembles them before it forks.

    Args:
        notify: which calls stop for the warden.
        free: whether the task may connect to any socket while nobody makes connections for it.
    """
    sockets: seccomp_filter.UnixSockets = "mediated" if notify != "none" else "free" if free else "refused"
    return seccomp_filter.program(ARCHITECTURES[os.uname().machine], notify=notify, unix_sockets=sockets)
