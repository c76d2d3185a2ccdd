"""EFFECT: the choice of a run's observer: the one asked for, or the best this machine has turned out to have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.contract.errors import NotStarted, Unavailable
from sandbox.machine.required_programs import find_strace

if TYPE_CHECKING:
    from sandbox.machine.learned_kernel_limits import LearnedKernelLimits

OBSERVERS = ("auto", "mask", "notify", "strace", "none")


class FuseUnusable(NotStarted):
    """A refusal of the kernel to mount a FUSE file system, though `/dev/fuse` can be opened."""


class ListenerUnavailable(NotStarted):
    """A refusal of the kernel to give the filter a listener: one is above this process, or the kernel is too old."""


def chosen(observer: str, machine: LearnedKernelLimits) -> str:
    """The observer a run gets for the one that was asked for.

    Args:
        observer: one of `OBSERVERS`.
        machine: whether it gives a filter a listener.

    Raises:
        NotStarted: there is none of that name.
    """
    if observer not in OBSERVERS:
        raise NotStarted(f"there is no observer {observer!r}", hint=f"use one of {', '.join(OBSERVERS)}")
    if observer != "auto":
        return observer
    return "strace" if machine.unheard else "notify" if machine.unfused else "auto"


def strace(workspace: str, machine: LearnedKernelLimits) -> str:
    """The absolute path of strace.

    Args:
        workspace: canonical; nothing in it is taken.
        machine: for why there has to be one.

    Raises:
        Unavailable: there is none.
    """
    try:
        return find_strace(os.environ.get("PATH", ""), workspace)
    except Unavailable as error:
        if not machine.unheard:
            raise
        why = f"the kernel lets no run be observed through its filter ({machine.unheard}), and {error.message}"
        raise Unavailable(why, hint=error.hint) from error
