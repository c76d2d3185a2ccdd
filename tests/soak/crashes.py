"""A crash matrix: each party of a run is killed at random moments, and the next session finds nothing left.

    python tests/soak/crashes.py [--moments N] [--seed N] [--party NAME]...

Prints a line for each party; fails when anything is left or a killed run passed. Left is what is still there once the
next session has run a task: a process of whatever kind (orphans become this program's), a mount, a held port, a name
in a temporary or staging directory, a control group.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sandbox import ResolvedSandboxConfig, Session
from sandbox.linux.kernel import kernel_calls
from tests.soak.counting import descendants, look, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox import Request

Observer = Literal["auto", "strace"]
Party = Literal[
    "executor",
    "supervisor",
    "warden",
    "joiner",
    "bubblewrap",
    "process 1",
    "command",
    "proxy",
    "opener",
    "tracer",
    "anybody",
    "anybody, traced",
]
PARTIES: tuple[Party, ...] = get_args(Party)

_MARKER = "vxcrash=1"
_COMMANDS: dict[Observer, str] = {
    "auto": f"{_MARKER}; mkdir -p made; echo x > made/.t && mv made/.t made/x; cat lib/cart > out/x; sleep 0.2",
    "strace": f"{_MARKER}; cat lib/cart > out/x; sleep 0.2",
}
# many runs, so that spares come into it; what each said is judged by who reads it
_EXECUTOR = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.soak.crashes import execute
execute(*sys.argv[2:])
"""


def execute(root: str, observer: Observer, port: str) -> None:
    """Run one task after the other, each with a client at its port, and say how each ended."""
    with Session() as session:
        request = request_in(session, Path(root), observer, int(port))
        print("begun", flush=True)
        for _ in range(1000):
            clients: list[socket.socket] = []

            def call(_pid: int, clients: list[socket.socket] = clients) -> None:
                with contextlib.suppress(OSError):
                    clients.append(socket.create_connection(("127.0.0.1", int(port)), 30))

            result = session.run(request, command=_COMMANDS[observer], observer=observer, on_start=call)
            for client in clients:
                client.close()
            print(result.exit_code, result.trace, *result.refusals, flush=True)


def request_in(session: Session, root: Path, observer: Observer, port: int) -> Request:
    """A request for a project with a directory grant, a port and, where it can be served, a granted name."""
    project = root / "app"
    config = ResolvedSandboxConfig(
        platform="linux",
        workspace=str(root),
        project=str(project),
        allow_read=(f"{project}/lib/",),
        allow_write=(f"{project}/out/", *((f"{project}/made",) if observer == "auto" else ())),
        local_binding=(port,),
    )
    return session.request(config, workspace_root=str(root))


def matrix(place: Path, parties: tuple[Party, ...] = PARTIES, *, moments: int, seed: int) -> list[str]:
    """Kill each party so many times; what was wrong, a line each."""
    os.environ["VX_TMPDIR"] = str(place / "temp")
    # whoever is left by a dead parent is found below this process
    kernel_calls.become_subreaper()
    root = (place / "ws").resolve()
    for name in ("app/lib/cart", "app/out/.keep"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n", encoding="utf-8")
    (place / "temp").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    for each in _COMMANDS:
        _whole_run(root, each, port)
    temporary = (place / "temp", root / ".vx")
    before = look(root, temporary, _MARKER)
    chance = random.Random(seed)  # noqa: S311  a choice that can be repeated
    wrong: list[str] = []
    for party in parties:
        observer: Observer = "strace" if party in ("tracer", "anybody, traced") else "auto"
        known = len(wrong)
        hit = 0
        for moment in range(moments):
            said = _one(root, party, observer, port, delay=chance.random() * 0.6, pick=chance.random())
            hit += said is not None
            found = [*(said or ()), *_whole_run(root, observer, port)]
            after = settled(root, temporary, _MARKER, before, reap=True)
            if left := after.more_than(before):
                names = [str(p) for where in temporary for p in where.rglob("*")]
                found.append(f"left over, as (before, after): {left} {names} {_lines_of(descendants(os.getpid()))}")
            files = sorted(str(p.relative_to(root)) for p in (root / "app").rglob("*") if p.is_file())
            allowed = {"lib/cart", "out/.keep", "out/x", "made/x", "made/.t"}
            found += [f"{name} is nobody's" for name in files if name[4:] not in allowed]
            if not _is_free(port):
                found.append("the port is held")
            wrong += [f"{party}, moment {moment}: {line}" for line in found]
        print(f"{party:16} killed {hit:2} of {moments} times, {len(wrong) - known} findings", flush=True)
        for line in wrong[known:]:
            print(f"    {line}", flush=True)
    return wrong


def _one(root: Path, party: Party, observer: Observer, port: int, *, delay: float, pick: float) -> list[str] | None:
    """Kill the party once; what was wrong, `None` when it was not there at that moment."""
    repository = str(Path(__file__).resolve().parents[2])
    executor = subprocess.Popen(
        (sys.executable, "-c", _EXECUTOR, repository, str(root), observer, str(port)),
        stdout=subprocess.PIPE,
        cwd=repository,
        text=True,
    )
    assert executor.stdout is not None
    try:
        assert executor.stdout.readline() == "begun\n"
        time.sleep(delay)
        end = time.monotonic() + 10
        victim = None
        while victim is None and time.monotonic() < end:
            victim = _find(party, executor.pid, pick)
            time.sleep(0.001)
        if victim is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(victim, signal.SIGKILL)
        os.close(victim)
        # a killed part costs its own run and no other
        lines = [] if party == "executor" else _lines(executor, 3)
    finally:
        executor.kill()
        executor.communicate()
    passed_partly = [line for line in lines if line.startswith("0 ") and not line.startswith("0 complete")]
    failed = [line for line in lines if not line.startswith("0 complete")]
    if passed_partly or len(failed) > 2 or (len(lines) < 3 and party != "executor"):
        return [f"the runs after it said {lines}"]
    return []


def _lines(executor: subprocess.Popen[str], count: int) -> list[str]:
    assert executor.stdout is not None
    lines: list[str] = []
    end = time.monotonic() + 60
    while len(lines) < count and time.monotonic() < end:
        if select.select([executor.stdout], [], [], 0.5)[0]:
            line = executor.stdout.readline()
            if not line:
                break
            lines.append(line)
    return lines


def _find(party: Party, executor: int, pick: float) -> int | None:
    """A process of the party, as a descriptor."""
    found = [executor] if party == "executor" else [pid for pid in descendants(executor) if _is(pid, party, executor)]
    if not found:
        return None
    pid = found[int(pick * len(found))]
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


@dataclass(frozen=True, slots=True)
class _Process:
    """A process of a run.

    Attributes:
        depth: its distance from the executor; the supervisor's is 1.
        number: its own in the sandbox, 0 outside.
        forked: whether it still is the program its parent is.
    """

    name: str
    depth: int
    number: int
    forked: bool
    proxy: bool


_KNOWN: dict[Party, Callable[[_Process], bool]] = {
    "supervisor": lambda p: p.depth == 1,
    "warden": lambda p: p.depth == 2 and not p.number,
    "joiner": lambda p: p.depth == 3 and not p.number and p.forked,
    "bubblewrap": lambda p: p.name == "bwrap",
    "process 1": lambda p: p.number == 1,
    "command": lambda p: p.number > 1,
    "proxy": lambda p: p.proxy and not p.forked,
    "opener": lambda p: p.proxy and p.forked,
    "tracer": lambda p: p.name == "strace",
    "anybody": lambda _: True,
    "anybody, traced": lambda _: True,
}


def _is(pid: int, party: Party, executor: int) -> bool:
    try:
        status = _status(pid)
        above = [int(status["PPid"])]
        while above[-1] not in (0, executor):
            above.append(int(_status(above[-1])["PPid"]))
        line = _line(pid)
        numbers = status["NSpid"].split()
        found = _Process(
            name=status["Name"],
            depth=len(above),
            number=int(numbers[-1]) if len(numbers) > 1 else 0,
            forked=line == _line(above[0]),
            proxy=b"sandbox.linux.proxy.proxy_process" in line,
        )
    except (OSError, KeyError):
        return False
    return _KNOWN[party](found)


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _lines_of(pids: list[int]) -> list[str]:
    """What to tell of processes that are left."""
    told = []
    for pid in pids:
        with contextlib.suppress(OSError, KeyError):
            status = _status(pid)
            told.append(f"{pid} {status['Name']} {status['State']} below {status['PPid']}: {_line(pid)!r}"[:300])
    return told


def _is_free(port: int) -> bool:
    """Whether nobody listens there."""
    with contextlib.suppress(OSError), socket.socket() as one:
        # connections that linger are no listener
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        return True
    return False


def _whole_run(root: Path, observer: Observer, port: int) -> list[str]:
    """The next session: it takes back what the dead one could not, and its own task runs as ever."""
    command = "cat lib/cart > out/x" + ("; mkdir -p made; echo > made/x" if observer == "auto" else "")
    with Session() as session:
        request = request_in(session, root, observer, port)
        result = session.run(request, command=command, observer=observer)
    if (result.exit_code, result.trace, result.violations) == (0, "complete", ()):
        return []
    return [f"the next session said {result}"]


def main() -> int:
    """Kill, print, and fail when something is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("--party", choices=PARTIES, action="append")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vxconf-crashes-") as place:
        parties = tuple(given.party or PARTIES)
        wrong = matrix(Path(place), parties, moments=given.moments, seed=given.seed)
    print("nothing was left" if not wrong else f"{len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
