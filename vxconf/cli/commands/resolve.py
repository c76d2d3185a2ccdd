"""`vxconf resolve`: prints a task's frozen config as canonical JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

from sandbox.wire.config_json import to_json
from vxconf.cli.console import FOUND, OK, is_coloured, out, raw
from vxconf.cli.find_task import find_task, task_diagnostics_text
from vxconf.workspace.project import Refused

if TYPE_CHECKING:
    from sandbox.contract.config import Platform
    from vxconf.cli.arguments import Arguments


def main(arguments: Arguments) -> int:
    """Resolves a task and prints the config; the status is 1 when the task is refused."""
    task = find_task(str(arguments["task"]))
    try:
        config = task.resolve(cast("Platform | None", arguments["platform"]))
    except Refused as fault:
        raw(task_diagnostics_text(fault.diagnostics, task, colour=is_coloured(sys.stderr)))
        return FOUND
    out(to_json(config) + "\n")
    return OK
