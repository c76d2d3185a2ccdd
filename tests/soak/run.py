"""A soak: thousands of runs of every kind in one executor, then what it still holds: `make soak`.

    python tests/soak/run.py [--runs N] [--at-once N] [--seed N]

Prints what there was of everything before and after, and every verdict that was not the one to expect. Fails when
there is one, or when anything but memory is more than it was; memory, when the interpreter holds more pieces of it
than what is kept for later explains.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sandbox import ResolvedSandboxConfig, Session
from sandbox.linux.run.run import LinuxRun
from tests.soak.counting import Held, look, memory, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox import Request, RunResult

Kind = Literal["pass", "fail", "violate", "name", "refuse", "cancel", "time out", "kill", "signal", "loud"]

_MARKER = "vxsoak=1"
# pieces of memory: what tables and pools grow by however long it takes, and one in so many runs
_KEPT, _RUNS_A_BLOCK = 500, 4
_WAITS = f"{_MARKER}; echo up; while :; do sleep 0.02; done"


@dataclass(frozen=True, slots=True)
class Case:
    """A command, how it is treated, and the verdict to expect.

    Attributes:
        command: with `NUMBER` for the run's own, as runs share their workspace.
        ends: a signal to send once it has said something; -1 to end it at any moment.
    """

    command: str
    expected: Callable[[RunResult], bool]
    timeout: float | None = 120
    ends: int = 0
    cwd: str | None = None


def _signalled(number: int) -> Callable[[RunResult], bool]:
    name = signal.Signals(number).name
    return lambda result: result.signal == name and result.exit_code == 128 + number and result.started


CASES: dict[Kind, Case] = {
    "pass": Case(
        f"{_MARKER}; cat lib/cart > out/NUMBER; rm out/NUMBER; exit 0",
        lambda r: (r.exit_code, r.trace, r.violations) == (0, "complete", ()),
    ),
    "fail": Case(f"{_MARKER}; exit 7", lambda r: (r.exit_code, r.violations) == (7, ())),
    "violate": Case(
        f"{_MARKER}; cat secret 2>&-; exit 0",
        lambda r: r.exit_code == 1 and [v.target for v in r.violations] == ["secret"],
    ),
    "name": Case(
        f"{_MARKER}; mkdir -p made; echo x > made/NUMBER.tmp && mv made/NUMBER.tmp made/NUMBER && rm made/NUMBER",
        lambda r: (r.exit_code, r.violations) == (0, ()),
    ),
    "refuse": Case("true", lambda r: (r.exit_code, r.started) == (125, False) and bool(r.refusals), cwd="/gone"),
    "cancel": Case(_WAITS, lambda r: r.signal == "SIGKILL" or (r.exit_code, r.started) == (125, False), ends=-1),
    "time out": Case(_WAITS, lambda r: r.timed_out and r.exit_code == 124, timeout=0.05),
    "kill": Case(_WAITS, _signalled(signal.SIGKILL), ends=signal.SIGKILL),
    "signal": Case(_WAITS, _signalled(signal.SIGTERM), ends=signal.SIGTERM),
    "loud": Case(
        f"{_MARKER}; head -c 200000 /dev/zero; (sleep 60 &) ; echo bye >&2",
        lambda r: (r.exit_code, len(r.stdout), r.stderr) == (0, 200_000, b"bye\n"),
    ),
}


def soak(place: Path, *, runs: int, at_once: int, seed: int) -> tuple[Held, Held, list[str]]:
    """Run it; what was held before and after, and what went wrong, a line each."""
    os.environ["VX_TMPDIR"] = str(place / "temp")
    root = _workspace(place)
    temporary = (place / "temp", root / ".vx")
    wrong: list[str] = []
    counted: collections.Counter[str] = collections.Counter()
    chance = random.Random(seed)  # noqa: S311  a choice that can be repeated
    kinds = [chance.choice(tuple(CASES)) for _ in range(runs)]
    began = time.monotonic()

    def one(session: Session, request: Request, number: int) -> None:
        kind = kinds[number]
        result = _carry_out(session, request, CASES[kind], CASES[kind].command.replace("NUMBER", str(number)))
        counted[kind] += 1
        if not CASES[kind].expected(result):
            wrong.append(f"run {number}, {kind}: {result}")
        if sum(counted.values()) % max(1, runs // 10) == 0:
            told = f"{sum(counted.values()):5} runs {time.monotonic() - began:5.0f} s {memory():8} KiB"
            print(told, file=sys.stderr, flush=True)

    def all_of(numbers: range) -> None:
        with Session() as session, ThreadPoolExecutor(at_once) as threads:
            request = _request(session, root)
            for future in [threads.submit(one, session, request, number) for number in numbers]:
                future.result()

    # what is loaded once and kept is no leak, and neither is room that so many at once once needed
    all_of(range(min(runs, 10 * at_once)))
    before = settled(root, temporary, _MARKER, look(root, temporary, _MARKER), seconds=0)
    all_of(range(runs))
    after = settled(root, temporary, _MARKER, before)
    print(f"{sum(counted.values())} runs, {at_once} at a time, {time.monotonic() - began:.0f} s: {dict(counted)}")
    return before, after, wrong


def _carry_out(session: Session, request: Request, case: Case, command: str) -> RunResult:
    if not case.ends:
        return session.run(request, command=command, timeout=case.timeout, cwd=case.cwd)
    up = threading.Event()
    run = LinuxRun(session, request, command, {"timeout": case.timeout, "on_stdout": lambda _: up.set()})
    if case.ends < 0:
        threading.Timer(0.02, run.stop).start()
        return run()

    def end() -> None:
        if up.wait(120):
            run.signal(case.ends)

    threading.Thread(target=end, daemon=True).start()
    return run()


def _workspace(place: Path) -> Path:
    root = (place / "ws").resolve()
    for name in ("app/lib/cart", "app/secret", "app/out/.keep"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n", encoding="utf-8")
    (place / "temp").mkdir()
    return root


def _request(session: Session, root: Path) -> Request:
    project = root / "app"
    config = ResolvedSandboxConfig(
        platform="linux",
        workspace=str(root),
        project=str(project),
        allow_read=(f"{project}/lib/",),
        allow_write=(f"{project}/out/", f"{project}/made"),
    )
    return session.request(config, workspace_root=str(root))


def main() -> int:
    """Soak, print, and fail when something is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    given = parser.parse_args()
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory(prefix="vxconf-soak-") as place:
        before, after, wrong = soak(Path(place), runs=given.runs, at_once=given.at_once, seed=given.seed)
    print(f"{'':14}{'before':>10}{'after':>10}")
    for name in Held.__slots__:
        print(f"{name:14}{getattr(before, name):>10}{getattr(after, name):>10}")
    for line in wrong:
        print(line)
    leaks = after.blocks - before.blocks > _KEPT + given.runs // _RUNS_A_BLOCK
    return 1 if wrong or leaks or after.more_than(before) else 0


if __name__ == "__main__":
    sys.exit(main())
