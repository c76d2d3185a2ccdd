"""A crash matrix: each party of a run is killed at random moments, and the next session finds nothing left.

    python tests/soak/crashes.py [--moments N] [--seed N]

Prints a line for each party; fails when anything is left or a killed run passed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sandbox import ResolvedSandboxConfig, Session
from tests.soak.counting import descendants, look, settled

if TYPE_CHECKING:
    from sandbox import Request

Party = Literal["executor", "supervisor", "warden", "joiner", "bubblewrap", "process 1", "command", "anybody"]
PARTIES: tuple[Party, ...] = (
    "executor",
    "supervisor",
    "warden",
    "joiner",
    "bubblewrap",
    "process 1",
    "command",
    "anybody",
)

_MARKER = "vxcrash=1"
# a second run so that spares come into it; what it says is judged by who reads it
_EXECUTOR = f"""
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.soak.crashes import request_in
from sandbox import Session
root = Path(sys.argv[2])
with Session() as session:
    print("begun", flush=True)
    for number in range(1000):
        command = "{_MARKER}; mkdir -p made; echo x > made/.t && mv made/.t made/x; cat lib/cart > out/x; sleep 0.2"
        result = session.run(request_in(session, root), command=command)
        print(result.exit_code, result.trace, *result.refusals, flush=True)
"""


def request_in(session: Session, root: Path) -> Request:
    """A request for a project with a directory grant and a granted name."""
    project = root / "app"
    config = ResolvedSandboxConfig(
        platform="linux",
        workspace=str(root),
        project=str(project),
        allow_read=(f"{project}/lib/",),
        allow_write=(f"{project}/out/", f"{project}/made"),
    )
    return session.request(config, workspace_root=str(root))


def matrix(place: Path, parties: tuple[Party, ...] = PARTIES, *, moments: int, seed: int) -> list[str]:
    """Kill each party so many times; what was wrong, a line each."""
    os.environ["VX_TMPDIR"] = str(place / "temp")
    root = (place / "ws").resolve()
    for name in ("app/lib/cart", "app/out/.keep"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n", encoding="utf-8")
    (place / "temp").mkdir()
    _whole_run(root)
    temporary = (place / "temp", root / ".vx")
    before = look(root, temporary, _MARKER)
    chance = random.Random(seed)  # noqa: S311  a choice that can be repeated
    wrong: list[str] = []
    for party in parties:
        known = len(wrong)
        hit = 0
        for moment in range(moments):
            said = _one(root, party, delay=chance.random() * 0.6, pick=chance.random())
            hit += said is not None
            wrong += [f"{party}, moment {moment}: {line}" for line in said or ()]
            _whole_run(root)
            after = settled(root, temporary, _MARKER, before)
            if left := after.more_than(before):
                names = [str(p) for where in temporary for p in where.rglob("*")]
                wrong.append(f"{party}, moment {moment}: left over, as (before, after): {left} {names}")
            files = sorted(str(p.relative_to(root)) for p in (root / "app").rglob("*") if p.is_file())
            allowed = {"lib/cart", "out/.keep", "out/x", "made/x", "made/.t"}
            wrong += [f"{party}, moment {moment}: {name} is nobody's" for name in files if name[4:] not in allowed]
        print(f"{party:12} killed {hit} of {moments} times", *wrong[known:], sep="\n  ", flush=True)
    return wrong


def _one(root: Path, party: Party, *, delay: float, pick: float) -> list[str] | None:
    """Kill the party once; what was wrong, `None` when it was not there at that moment."""
    repository = str(Path(__file__).resolve().parents[2])
    executor = subprocess.Popen(
        (sys.executable, "-c", _EXECUTOR, repository, str(root)), stdout=subprocess.PIPE, cwd=repository, text=True
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


def _is(pid: int, party: Party, executor: int) -> bool:
    try:
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
            if ":\t" in line
        )
        parent = int(status["PPid"])
        grandparent = _parent(parent)
    except (OSError, KeyError):
        return False
    inside = status["NSpid"].split()
    name = status["Name"]
    match party:
        case "supervisor":
            return parent == executor
        case "warden":
            return grandparent == executor and len(inside) == 1
        case "joiner":
            return _parent(grandparent) == executor and len(inside) == 1 and name != "bwrap"
        case "bubblewrap":
            return name == "bwrap"
        case "process 1":
            return len(inside) > 1 and inside[-1] == "1"
        case "command":
            return len(inside) > 1 and inside[-1] != "1"
        case _:
            return True


def _parent(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("PPid:"):
            return int(line.split()[1])
    return 0


def _whole_run(root: Path) -> None:
    """The next session: it takes back what the dead one could not."""
    with Session() as session:
        result = session.run(request_in(session, root), command="cat lib/cart > out/x; mkdir -p made; echo > made/x")
    assert (result.exit_code, result.violations) == (0, ()), result


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
