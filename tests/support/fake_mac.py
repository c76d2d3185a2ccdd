"""Stand-ins for `sandbox-exec` and `log`: what they do is written down from public descriptions, not from a Mac.

The stand-in for `sandbox-exec` enforces nothing. It keeps the profile it was given, runs the command, and puts what a
test recorded into what the stand-in for `log` prints, with the profile's own message as the kernel would.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.machine.ask_facts import HostFiles
from sandbox.macos.system_tools import SystemTools
from sandbox.request.build import build
from sandbox.request.request import WorkspaceFacts

if TYPE_CHECKING:
    from typing import Any

    from sandbox.contract.run_options import Signalled
    from sandbox.request.request import Request

_EXEC = """#!{python} -IS
import json, os, re, signal, sys
state = {state!r}
profile, command = sys.argv[2], sys.argv[3:]
assert sys.argv[1] == "-p", sys.argv
if os.path.exists(state + "/nested"):
    sys.exit(print("sandbox-exec: sandbox_apply: Operation not permitted", file=sys.stderr) or 71)
if os.path.exists(state + "/malformed") and "(deny default" in profile:
    sys.exit(print("sandbox-exec: data object length 84244 exceeds maximum (65535)", file=sys.stderr) or 65)
found = re.search(r'with message "([^"]*)"', profile)
if found and profile.startswith("(version 1)(allow default)"):
    events = ["Sandbox: cat(1) deny(1) file-read-data /private/etc/hosts"]
elif found:
    with open(state + "/profile", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(profile)
    with open(state + "/denials", encoding="utf-8") as file:
        events = json.load(file)
else:
    events = []
with open(state + "/log", "a", encoding="utf-8") as file:
    for event in events:
        record = {{"eventType": "logEvent", "processID": 0, "eventMessage": event + "\\n" + found[1]}}
        file.write(json.dumps(record) + "\\n")
if found and profile.startswith("(version 1)(allow default)"):
    sys.exit(1)
for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
    signal.signal(number, signal.SIG_DFL)
os.execv(command[0], command)
"""

_LOG = """#!{python} -IS
import os, sys, time
state = {state!r}
assert sys.argv[1:5] == ["stream", "--style", "ndjson", "--predicate"], sys.argv
tag = sys.argv[5].split('"')[-2]
parent = os.getppid()
print("Filtering the log data using " + repr(sys.argv[5]), flush=True)
if os.path.exists(state + "/silent"):
    sys.exit(0)
with open(state + "/log", encoding="utf-8") as file:
    while os.getppid() == parent:
        line = file.readline()
        if not line:
            time.sleep(0.01)
        elif tag in line:
            print(line, end="", flush=True)
"""


@dataclass(frozen=True)
class FakeMac:
    """A directory with both programs and what they share."""

    state: Path

    @classmethod
    def at(cls, state: Path) -> FakeMac:
        state.mkdir()
        for name, text in (("sandbox-exec", _EXEC), ("log-program", _LOG)):
            program = state / name
            program.write_text(text.format(python=sys.executable, state=str(state)), encoding="utf-8")
            program.chmod(0o755)
        (state / "log").touch()
        fake = cls(state)
        fake.denies()
        return fake

    def denies(self, *events: str) -> None:
        """What the kernel will say while the task runs."""
        (self.state / "denials").write_text(json.dumps(events), encoding="utf-8")

    def having(self, what: str) -> None:
        """Behave otherwise: `nested`, `malformed` or `silent`."""
        (self.state / what).touch()

    @property
    def profile(self) -> str:
        """The task's profile, as it was given."""
        return (self.state / "profile").read_text(encoding="utf-8", errors="surrogateescape")

    @property
    def tools(self) -> SystemTools:
        programs = {"sandbox_exec": str(self.state / "sandbox-exec"), "log": str(self.state / "log-program")}
        return SystemTools(**programs, true="/bin/true")


class Sessionless:
    """What a run needs of a session."""

    declared: tuple[ResolvedSandboxConfig, ...] = ()

    def __init__(self) -> None:
        self.entered: list[Signalled] = []

    def enter(self, run: Signalled) -> None:
        self.entered.append(run)

    def leave(self, run: Signalled) -> None:
        self.entered.remove(run)


def mac_request(project: Path, temp: Path, *, workspace: Path | None = None, **fields: Any) -> Request:
    """A request as a Mac would build it, over the files of this machine."""
    root = str(workspace or project)
    config = ResolvedSandboxConfig(platform="macos", workspace=root, project=str(project), **fields)
    facts = HostFacts(platform="macos", home=os.path.realpath(Path.home()), temp_root=str(temp))
    return build(config, WorkspaceFacts(root=root), files=HostFiles(), facts=facts)
