"""Notes on ports of loopback that refused the task, and on which the host listens. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry

if TYPE_CHECKING:
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.failure_facts import Aftermath

_REFUSED = re.compile(
    r"ECONNREFUSED|ERR_CONNECTION_REFUSED|connection refused|could(?:n.t| not) connect|failed to connect", re.IGNORECASE
)
_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|\[?::1\]?)(?:[^\n]{0,24}?\bport |:)(\d{1,5})\b", re.IGNORECASE)


def unreachable(boundary: Boundary, after: Aftermath) -> list[Hint]:
    """Notes on ports of loopback that refused the task, and on which the host listens."""
    ports: dict[int, None] = {}
    for line in after.last_lines:
        if _REFUSED.search(line):
            ports.update((int(found[1]), None) for found in _PORT.finditer(line))
    wanted = [port for port in ports if port not in boundary.ports and 0 < port < 1 << 16 and after.listens(port)]
    return [
        Hint(
            line=f"the host listens on port {port}, and the task has a loopback of its own:"
            f' allow.network = ["localhost:{port}"] lets it reach the host\'s',
            class_="grant",
        )
        for port in wanted[: path_as_entry.NAMED]
    ]
