"""What granted names cost: each line a ratio of the mask against the plain file system, taken in turns in one run.

python tests/bench/names.py [--few] [files]
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from sandbox import Session

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench.arguments import arguments
from tests.support.named import NamedWorkspace

_ROUNDS = 5
_BULK = 1 << 30

#: Run inside, below `dist` and below the bound `plain`: seconds of each step.
_PROGRAM = """
import json, os, shutil, subprocess, sys, time
base, count, bulk = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(base)
data, told = b'x' * 4096, {}
def step(name, work):
    begin = time.perf_counter()
    for n in range(count): work(n)
    told[name] = (time.perf_counter() - begin) / count
def create(n):
    with open(f'{base}/{n}', 'wb', buffering=0) as f: f.write(data)
def read(n):
    with open(f'{base}/{n}', 'rb', buffering=0) as f: f.read(8192)
def replace(n):
    with open(f'{base}/.new', 'wb', buffering=0) as f: f.write(data)
    os.rename(f'{base}/.new', f'{base}/{n}')
step('create and write 4 KB', create)
step('read 4 KB', read)
step('stat', lambda n: os.stat(f'{base}/{n}'))
step('write 4 KB and rename', replace)
step('unlink', lambda n: os.unlink(f'{base}/{n}'))
if bulk:
    with open(f'{base}/big', 'wb', buffering=0) as f:
        block = b'b' * (1 << 20)
        os.sync()
        begin = time.perf_counter()
        for _ in range(bulk >> 20): f.write(block)
        told[f'write {bulk >> 20:,} MiB'] = time.perf_counter() - begin
    for name, command in (('cp', ['cp']), ('dd', None)):
        os.sync()
        begin = time.perf_counter()
        if command: subprocess.run([*command, f'{base}/big', f'{base}/copy'], check=True)
        else: subprocess.run(['dd', f'if={base}/big', f'of={base}/copy', 'bs=1M', 'status=none'], check=True)
        told[f'copy {bulk >> 20:,} MiB ({name})'] = time.perf_counter() - begin
        os.unlink(f'{base}/copy')
print(json.dumps(told))
shutil.rmtree(base)
"""


def main(count: int = 500, *, few: bool = False) -> None:
    """Measures each step and prints one line for it."""
    rounds, bulk = (1, 1 << 20) if few else (_ROUNDS, _BULK)
    base = tempfile.mkdtemp()
    times: dict[str, dict[str, list[float]]] = {"dist": {}, "plain": {}}
    try:
        with Session() as session:
            workspace = NamedWorkspace(base, session, pattern=False)
            workspace.put("lib/program.py", _PROGRAM)
            for turn in range(rounds):
                # the large copy is taken in the last turn alone: it leaves the disk busy
                size = bulk if turn == rounds - 1 else 0
                for where in ("plain", "dist"):
                    command = f"mkdir -p dist; /usr/bin/python3 lib/program.py {where}/t{turn} {count} {size}"
                    outcome = workspace.run(command)
                    for step, seconds in json.loads(outcome.out).items():
                        times[where].setdefault(step, []).append(seconds)
    finally:
        shutil.rmtree(base)
    for step, plain in times["plain"].items():
        served, bound = statistics.median(times["dist"][step]), statistics.median(plain)
        print(f"{step:24} {served / bound:6.2f}x  ({served * 1e3:9.3f} ms against {bound * 1e3:9.3f} ms)")


if __name__ == "__main__":
    number, tiny = arguments(__doc__, "files", 500)
    main(5 if tiny else number, few=tiny)
