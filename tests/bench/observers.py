"""What each observer costs: a task's own time as a ratio against the same task unobserved, taken in turns in one run.

python tests/bench/observers.py [--few] [rounds]
"""

from __future__ import annotations

import math
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from sandbox import ResolvedSandboxConfig, Session
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
from sandbox.linux.strace.trace_parser import TraceParser

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench.arguments import arguments
from tests.support.traces import PROJECT
from tests.unit.sandbox.linux.strace.test_traces_golden import CASES, Host

#: Run inside; prints the seconds of its own loop, without the start of its interpreter.
_PROGRAM = """
import os, sys, time
kind, count, base = sys.argv[1], int(sys.argv[2]), sys.argv[3]
begin = time.perf_counter()
if kind == 'opens':
    for n in range(count): os.close(os.open(f'lib/{n % 100}', os.O_RDONLY))
elif kind == 'stats':
    for n in range(count): os.stat(f'lib/{n % 100}')
elif kind == 'creates':
    for n in range(count): os.close(os.open(f'out/{base}{n}', os.O_WRONLY | os.O_CREAT, 0o666))
print(time.perf_counter() - begin)
"""
_KINDS = {"nothing": 0, "opens": 2000, "stats": 20_000, "creates": 2000}
_OBSERVERS = ("none", "mask", "notify", "strace")
#: Read of each trace.
_LINES = 20_000


def main(rounds: int, *, few: bool = False) -> None:
    """Measures every observer at each task, and the parser at recorded traces."""
    share = 100 if few else 1
    base = Path(tempfile.mkdtemp()).resolve()
    project = base / "project"
    (project / "lib").mkdir(parents=True)
    (project / "out").mkdir()
    for number in range(100):
        (project / "lib" / str(number)).write_text("x")
    (project / "lib/program.py").write_text(_PROGRAM)
    config = ResolvedSandboxConfig(
        platform="linux",
        workspace=str(base),
        project=str(project),
        allow_read=(f"{project}/lib/",),
        allow_write=(f"{project}/out/",),
    )
    inside: dict[tuple[str, str], list[float]] = {}
    whole: dict[str, list[float]] = {}
    try:
        with Session() as session:
            request = session.request(config, workspace_root=str(base))
            session.run(request, command="true")
            for turn in range(rounds):
                for kind, count in _KINDS.items():
                    for observer in _OBSERVERS:
                        arguments = f"{kind} {count // share} {turn}-{observer}-"
                        command = f"/usr/bin/python3 -I -S lib/program.py {arguments}"
                        begin = time.perf_counter()
                        result = session.run(request, command=command, observer=observer)
                        if result.exit_code or (result.observer, result.violations) != (observer, ()):
                            sys.exit(f"{kind} under {observer}: {result}")
                        if kind == "nothing":
                            whole.setdefault(observer, []).append(time.perf_counter() - begin)
                        inside.setdefault((kind, observer), []).append(float(result.stdout))
    finally:
        shutil.rmtree(base)
    for kind, count in _KINDS.items():
        for observer in _OBSERVERS[1:]:
            if kind == "nothing":
                _show("a whole run", observer, whole[observer], whole["none"])
            else:
                _show(f"{kind} {count // share:,}", observer, inside[kind, observer], inside[kind, "none"])
    _parse(rounds, _LINES // share)


def _show(what: str, observer: str, observed: list[float], unobserved: list[float]) -> None:
    taken, alone = statistics.median(observed), statistics.median(unobserved)
    print(f"{what:14} {observer:7} {taken / alone:7.2f}x  ({taken * 1e3:8.1f} ms against {alone * 1e3:6.1f} ms)")


def _parse(rounds: int, lines: int) -> None:
    """Lines a second of processor time, the best of the rounds: other processes have no part in it."""
    traces = {path.stem: path.read_bytes() for path in CASES}
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, trace in traces.items():
            best[name] = min(best.get(name, math.inf), _parsing(trace, lines))
    for name, seconds in best.items():
        print(f"parsing {name:10} {1 / seconds:12,.0f} lines/s")
    # as many lines of each
    print(f"parsing {'all':10} {len(best) / sum(best.values()):12,.0f} lines/s  (budget at least 200,000)")


def _parsing(trace: bytes, lines: int) -> float:
    """Seconds a line of a trace that is read again and again until it has come to so many."""
    count = trace.count(b"\n")
    times = -(-lines // count)
    parser = TraceParser(ARCHITECTURES["x86_64"], Host(), cwd=PROJECT, noted=True)
    begin = time.process_time()
    for _ in range(times):
        for start in range(0, len(trace), 1 << 16):
            parser.feed(trace[start : start + (1 << 16)])
    return (time.process_time() - begin) / (times * count)


if __name__ == "__main__":
    count, tiny = arguments(__doc__, "rounds", 3)
    main(1 if tiny else count, few=tiny)
