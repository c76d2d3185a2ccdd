"""The ports of a task's own servers that are open on the host's 127.0.0.1, from its `localBinding`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.contract.config import ResolvedSandboxConfig


def published_ports(config: ResolvedSandboxConfig) -> tuple[int, ...]:
    """The ports of the task's own servers that the host reaches; `localBinding = true` publishes none."""
    return tuple(dict.fromkeys(config.local_binding)) if isinstance(config.local_binding, tuple) else ()
