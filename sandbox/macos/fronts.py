"""The task's own front on macOS: where it would listen, and what is told of it. Pure.

The front itself waits with epoll and asks netlink for this machine's addresses, so it does not run on macOS yet. A task
that asks for hosts is therefore refused there, by name; one that asks for loopback ports alone needs no front, for its
profile opens them. No variable names a proxy then: nothing would listen there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.domains import check_pattern
from sandbox.environment import JAVA, JAVA_FLAGS, PROXIES
from sandbox.errors import Unavailable
from sandbox.network.policies import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sandbox.network.policy import Policy


@dataclass(frozen=True, slots=True)
class NoFront:
    """What a task has that reaches no host.

    Attributes:
        ports: on which its front listens: none.
    """

    ports: tuple[int, ...] = ()

    def told(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The task's variables, without those that name a front."""
        kept = {name: value for name, value in variables.items() if PROXIES.get(name) != value}
        java = kept.get(JAVA, "").removeprefix(JAVA_FLAGS).strip()
        kept.pop(JAVA, None)
        return kept | ({JAVA: java} if java else {})

    def report(self, _hear: Callable[[str, str], object]) -> None:
        """Nothing will be refused: nothing answers."""

    def settle(self) -> None:
        """Nothing is on its way."""


@contextlib.contextmanager
def opened(policy: Policy) -> Iterator[NoFront]:
    """The front of one task, closed at the end.

    Raises:
        Unavailable: it asks for hosts.
    """
    hosts = [entry for entry in policy.allow if not _is_direct(entry)]
    if hosts:
        raise Unavailable(
            f"network reaches {hosts[0]}, and a task's front does not run on macOS yet",
            hint="remove the host from the sandbox block, or run the task on Linux",
        )
    yield NoFront()


def _is_direct(entry: str) -> bool:
    pattern = check_pattern(entry, allow=True)
    return pattern.host in LOOPBACK and not pattern.wildcard and pattern.port is not None
