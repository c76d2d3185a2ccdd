"""What each observer costs: a task's own time as a ratio against the same task unobserved, taken in turns in one run.

python tests/bench/observers.py [rounds]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from sandbox import ResolvedSandboxConfig, Session
from sandbox.linux.numbers import ARCHITECTURES
from sandbox.linux.strace.parser import Parser

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.support.traces import PROJECT
from tests.unit.sandbox.linux.test_traces import CASES, Host

#: Run inside; prints the seconds of its own loop, without the start of its interpreter.
_PROGRAM = """
import os, sys, time
kind, base = sys.argv[1], sys.argv[2]
begin = time.perf_counter()
if kind == 'opens 2,000':
    for n in range(2000): os.close(os.open(f'lib/{n % 100}', os.O_RDONLY))
elif kind == 'stats 20,000':
    for n in range(20000): os.stat(f'lib/{n % 100}')
elif kind == 'creates 2,000':
    for n in range(2000): os.close(os.open(f'out/{base}{n}', os.O_WRONLY | os.O_CREAT, 0o666))
print(time.perf_counter() - begin)
"""
_KINDS = ("nothing", "opens 2,000", "stats 20,000", "creates 2,000")
_OBSERVERS = ("none", "mask", "notify", "strace")
_LINES = 200_000


def main(rounds: int = 3) -> None:
    """Measures every observer at each task, and the parser at recorded traces."""
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
            for turn in range(rounds):
                for kind in _KINDS:
                    for observer in _OBSERVERS:
                        command = f"/usr/bin/python3 -I -S lib/program.py '{kind}' {turn}-{observer}-"
                        begin = time.perf_counter()
                        result = session.run(request, command=command, observer=observer)
                        if result.exit_code or (result.observer, result.violations) != (observer, ()):
                            sys.exit(f"{kind} under {observer}: {result}")
                        if kind == "nothing":
                            whole.setdefault(observer, []).append(time.perf_counter() - begin)
                        inside.setdefault((kind, observer), []).append(float(result.stdout))
    finally:
        shutil.rmtree(base)
    for kind in _KINDS[1:]:
        alone = statistics.median(inside[kind, "none"])
        for observer in _OBSERVERS[1:]:
            taken = statistics.median(inside[kind, observer])
            print(
                f"{kind:14} {observer:7} {taken / alone:7.2f}x  ({taken * 1e3:8.1f} ms against {alone * 1e3:6.1f} ms)"
            )
    alone = statistics.median(whole["none"])
    for observer in _OBSERVERS[1:]:
        taken = statistics.median(whole[observer])
        print(_line("a whole run", observer, taken, alone))
    _parse()


def _line(what: str, observer: str, taken: float, alone: float) -> str:
    return f"{what:14} {observer:7} {taken / alone:7.2f}x  ({taken * 1e3:8.1f} ms against {alone * 1e3:6.1f} ms)"


def _parse() -> None:
    """Lines a second of processor time: other processes have no part in it."""
    for path in CASES:
        trace = path.read_bytes()
        count = trace.count(b"\n")
        times = -(-_LINES // 10 // count)
        parser = Parser(ARCHITECTURES["x86_64"], Host(), cwd=PROJECT, noted=True)
        begin = time.process_time()
        for _ in range(times):
            for start in range(0, len(trace), 1 << 16):
                parser.feed(trace[start : start + (1 << 16)])
        taken = time.process_time() - begin
        print(f"parsing {path.stem:10} {times * count / taken:12,.0f} lines/s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
