"""EFFECT: the servers of one task while it runs: the request loop, the proxy, the tracer, and their recorder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.contract.config import Reach
from sandbox.linux.caller.links_as_caller import TaskTree
from sandbox.linux.kernel.descriptor_poll import DescriptorPoll
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
from sandbox.linux.observe.recorder import Recorder
from sandbox.linux.proxy.proxy_handle import ProxyHandle
from sandbox.linux.warden.request_loop import RequestLoop
from sandbox.planning.operations import Empty
from sandbox.planning.path_reach import Plan

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from sandbox.contract.results import Access
    from sandbox.linux.kernel.wake import Wake
    from sandbox.linux.strace.strace_process import Tracer
    from sandbox.linux.warden_messages import Spec

# strace writes line by line: what it writes within this time is read at once
_REST_SECONDS = 0.002


class TaskServices:
    """The servers outside of a sandbox for the task inside.

    Args:
        inside: a process in the task's namespaces, as the host numbers it.
        wake: ends the poll from another thread.
        published: listeners of the host's that lead to the task's own servers.

    Attributes:
        poll: the descriptors the warden waits for.
        recorder: what the task did, as far as it was seen.
        proxy: the warden's side of the task's proxy.
        requests: answers the mask's requests and the filter's notifications.
    """

    def __init__(
        self,
        spec: Spec,
        inside: int,
        wake: Wake,
        *,
        published: Iterable[socket.socket],
    ) -> None:
        self._spec = spec
        self._inside = inside
        self._tracer: Tracer | None = None
        self.poll = DescriptorPoll()
        self.recorder = Recorder(
            ARCHITECTURES[os.uname().machine],
            served=spec.granted.served,
            executed=spec.executed,
            tree=TaskTree(_shown(spec)),
        )
        self.proxy = ProxyHandle(
            spec.network, inside, self.recorder, watch=self.poll.watch, unwatch=self.poll.unwatch, wake=wake.ring
        )
        self.proxy.take([listener.detach() for listener in published])
        self.requests = RequestLoop(
            spec.operations if spec.observer not in ("none", "strace") else (),
            spec.boundary,
            self.recorder,
            granted=spec.granted,
            staging=spec.staging,
            executed=spec.executed,
            wake=wake.ring,
            network=spec.network,
            proxy=self.proxy,
        )

    def wait(self, seconds: float | None) -> bool:
        """Serve what comes within some seconds, `None` for as long as it takes; false where nothing did."""
        served = self.poll.wait(seconds)
        self.proxy.ask()
        return served

    def serve(self, descriptor: int, lost: Callable[[int], None]) -> None:
        """Answer what a task asks through the mask's or the listener's descriptor; `lost` hears that it was closed."""

        def ready(event: int) -> None:
            if not self.requests.serve(descriptor, event):
                self.poll.unwatch(descriptor)
                lost(descriptor)

        self.poll.watch(descriptor, ready)

    def new_accesses(self) -> tuple[Access, ...]:
        """The accesses recorded since the last call."""
        return self.recorder.drain()

    def missed(self, why: str) -> None:
        """Say why not all was seen; the first reason counts."""
        self.recorder.missed(why)

    def prepare_trace(self) -> None:
        """Make the tracer of a task that strace observes, while its namespaces can still be opened."""
        from sandbox.linux.connect.reported_connections import ReportedConnections
        from sandbox.linux.strace.strace_process import Tracer

        spec = self._spec
        outbound = ReportedConnections(spec.network, self.recorder, self.proxy)
        emptied = tuple(one.path for one in spec.operations if isinstance(one, Empty))
        self._tracer = Tracer(spec.tracer, self._inside, self.recorder, outbound, spec.executed, emptied=emptied)

    def trace(self, command: int, lost: Callable[[str], None]) -> None:
        """Have strace follow the command, if it is to: `lost` hears why it ended before the command did.

        Raises:
            OSError: strace could not be attached; nothing of the command ran.
        """
        tracer = self._tracer
        if tracer is None:
            return
        trace = tracer.attach(command, self._spec.cwd)

        def ready(_: int) -> None:
            if tracer.serve():
                self.poll.rest(trace, _REST_SECONDS)
            else:
                self.poll.unwatch(trace)
                if not tracer.ended:
                    lost(tracer.lost)

        self.poll.watch(trace, ready)

    def close(self) -> tuple[str, ...]:
        """Answer what is left once everything inside is gone; what the task left beside granted names, by path."""
        self.proxy.settle()
        if self._tracer is not None:
            self._tracer.close()
        return self.requests.close()


def _shown(spec: Spec) -> Callable[[str], bool]:
    """Whether the task sees what the host has at a path, by the plan it runs in."""
    plans: list[Plan] = []

    def shown(path: str) -> bool:
        if not plans:  # most tasks ask of no link behind a mask
            plans.append(Plan(operations=spec.operations, workspace="", project=""))
        return plans[0].reach(path) is not Reach.HIDDEN

    return shown
