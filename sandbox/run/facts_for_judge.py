"""EFFECT: the boundary an attempt is judged against and the facts once it failed, as this machine has them."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.remedies import never_granted
from sandbox.machine.ask_facts import HostFiles, Snapshot
from sandbox.machine.listening_ports import listens

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.planning.macos.macos_path_reach import MacPlan
    from sandbox.planning.path_reach import Plan
    from sandbox.request.request import Request

_SHARED = ("/tmp", "/var/tmp")  # noqa: S108  names of directories, in which nothing is made here
#: The most bytes at the end of the output that notes are made of.
_TAIL = 128 << 10


def boundary(
    request: Request, planned: Plan | MacPlan, *, temp: str, observer: str, mask: Callable[[str], str]
) -> Boundary:
    """The boundary of an attempt.

    Args:
        request: the attempt.
        planned: its plan.
        temp: the task's own temporary directory.
        observer: the observer of the run.
        mask: hides secrets in text that people see.
    """
    files = HostFiles()
    return dataclasses.replace(
        Boundary.of_request(request, planned, lambda path: files.kind(path) is Kind.DIRECTORY),
        temp=temp,
        executed=planned.executed.protects,
        policy=planned.executed.policy,
        shared=tuple(dict.fromkeys((*_SHARED, paths.parent(request.facts.temp_root)))),
        tree=lambda path: never_granted.below(path, Snapshot()),
        names=lambda path: tuple(files.entries(path)),
        # An observer tells a granted name from its hidden neighbours; without one none can be granted.
        served=observer != "none",
        ports=_ports(request.config),
        canonical=lambda path: paths.canonical(path, files),
        mask=mask,
    )


def aftermath(
    cwd: str, tail: bytes, *, processes: Callable[[], int] = lambda: 0, starved: Callable[[], int] = lambda: 0
) -> Aftermath:
    """The facts of a command that failed.

    Args:
        cwd: the directory it began in.
        tail: the end of its output.
        processes: how many it could have at once, 0 for no limit of its own.
        starved: how many the kernel has ended since it began, for want of memory.
    """
    files = HostFiles()
    return Aftermath(
        cwd=os.path.realpath(cwd),
        printed=tail[-_TAIL:].decode("utf-8", "surrogateescape"),
        exists=lambda path: files.kind(path) is not None,
        listens=listens,
        processes=processes,
        starved=starved,
    )


def _ports(config: ResolvedSandboxConfig) -> frozenset[int]:
    """The loopback ports a task reaches or offers already."""
    named = config.network if isinstance(config.network, tuple) else ()
    reached = [entry.rpartition(":")[2] for entry in named if entry.startswith("localhost:")]
    offered = config.local_binding if isinstance(config.local_binding, tuple) else ()
    return frozenset((*(int(port) for port in reached if port.isdecimal()), *offered))
