"""EFFECT: the system's own programs that a run needs, and whether they can be used here."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from sandbox.contract.errors import Unavailable

_SECONDS = 20.0
NESTED_WORDS = "sandbox_apply"
_REASON_LIMIT = 200

# The profile allows everything, and still the kernel refuses it where one is in force already.
_NOTHING = "(version 1)(allow default)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemTools:
    """The absolute paths of programs; none is looked for on a PATH, which a task could have written to."""

    sandbox_exec: str = "/usr/bin/sandbox-exec"
    log: str = "/usr/bin/log"
    shell: str = "/bin/sh"
    true: str = "/usr/bin/true"
    cat: str = "/bin/cat"


#: The programs of every Mac.
SYSTEM = SystemTools()

_ANSWERS: dict[SystemTools, str] = {}


def check(tools: SystemTools) -> None:
    """See once whether a process can be put behind walls here.

    Raises:
        Unavailable: it cannot; names the cause.
    """
    if tools not in _ANSWERS:
        _ANSWERS[tools] = _tried(tools)
    if cause := _ANSWERS[tools]:
        raise Unavailable(cause, hint=remedy(cause))


def remedy(cause: str) -> str:
    """The cure for a cause."""
    if "nested" in cause:
        return "run it outside the other sandbox: macOS applies no second one"
    return "run it on a macOS whose /usr/bin/sandbox-exec works"


def _tried(tools: SystemTools) -> str:
    if not os.access(tools.sandbox_exec, os.X_OK):
        return f"{tools.sandbox_exec} is not there"
    try:
        done = subprocess.run(
            (tools.sandbox_exec, "-p", _NOTHING, tools.true),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{tools.sandbox_exec} did not run: {error}"
    said = done.stderr.decode("utf-8", "replace").strip()
    if NESTED_WORDS in said:
        return f"this process is in a sandbox already, and nested ones are refused: {said[:_REASON_LIMIT]}"
    if done.returncode != 0:
        return f"{tools.sandbox_exec} exited with {done.returncode}: {said[:_REASON_LIMIT] or 'it said nothing'}"
    return ""
