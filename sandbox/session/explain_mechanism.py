"""The mechanism below every plan on Linux: bubblewrap's command line and the filter's rules."""

from __future__ import annotations

import errno
import os

from sandbox.contract.errors import Unavailable
from sandbox.linux.inside.bubblewrap_namespaces import bwrap_argv
from sandbox.linux.kernel import seccomp_filter
from sandbox.linux.warden_messages import Base
from sandbox.machine.required_programs import find_bwrap


def argv() -> list[str]:
    """The command line of bubblewrap, the same for every task."""
    try:
        program = find_bwrap(os.environ.get("PATH", ""), "")
    except Unavailable:  # the line is worth showing without the program
        program = "bwrap"
    return list(bwrap_argv(Base(program)))


def filter_lines() -> list[str]:
    """The filter's rule for each call it knows, one a line, sorted."""
    lines = {name: f"refuse {name} with {errno.errorcode[code]}" for name, code in seccomp_filter.REFUSED.items()}
    judged = seccomp_filter.conditions("mediated")
    lines |= {name: f"decide {name} by its arguments" for name in judged}
    lines |= {
        name: f"show {name} to the observer, then let it go on"
        for name in seccomp_filter.notified("writes")
        if name not in lines
    }
    lines |= {name: f"have the warden make {name} for the task" for name in seccomp_filter.mediated()}
    return [lines[name] for name in sorted(lines)]
