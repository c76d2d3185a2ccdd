"""Prints what fifty tasks at once take against the same one at a time, and the memory of what runs them.

python tests/bench/together.py [--few] [tasks]
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox import ResolvedSandboxConfig, Session

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench.arguments import arguments
from tests.support.mixed import Mixed, mixed

#: Some of what a real task does, on top of what the mixed ones do: it computes.
_WORK = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; "


class Project:
    """A project, and one session that runs tasks in it."""

    def __init__(self, root: Path, session: Session) -> None:
        self._root, self._session = root, session
        self._app = root / "apps" / "shop"
        (self._app / "lib").mkdir(parents=True)
        for name in ("lib/cart.py", "lib/tax.py", "notes.md"):
            (self._app / name).write_text(f"{name}\n")
        for name in ("out", "hits"):
            (self._app / name).mkdir()

    def run(self, task: Mixed) -> tuple[object, ...]:
        """Its verdict."""
        config = ResolvedSandboxConfig(
            platform="linux",
            workspace=str(self._root),
            project=str(self._app),
            allow_read=tuple(f"{self._app}/{path}" for path in task.read),
            allow_write=tuple(f"{self._app}/{path}" for path in task.write),
        )
        request = self._session.request(config, workspace_root=str(self._root))
        result = self._session.run(request, command=task.command)
        return result.exit_code, result.trace, tuple(sorted({violation.line for violation in result.violations}))


def _seconds(tasks: list[Mixed], project: Project, at_once: int) -> tuple[float, list[tuple[object, ...]]]:
    began = time.perf_counter()
    if at_once == 1:
        verdicts = [project.run(task) for task in tasks]
    else:
        with ThreadPoolExecutor(at_once) as pool:
            verdicts = list(pool.map(project.run, tasks))
    return time.perf_counter() - began, verdicts


def _compare(what: str, tasks: list[Mixed], project: Project) -> None:
    project.run(tasks[0])
    alone, one_by_one = _seconds(tasks, project, 1)
    together, at_once = _seconds(tasks, project, len(tasks))
    differ = sum(1 for one, other in zip(one_by_one, at_once, strict=True) if one != other)
    print(
        f"{len(tasks)} {what}: {alone / together:.2f}x the throughput of one at a time "
        f"({alone * 1000:.0f} -> {together * 1000:.0f} ms, {os.cpu_count()} cores; budget at least 1.6); "
        f"{differ} verdicts differ",
        flush=True,
    )


def _pss(pid: int) -> float:
    """Its proportional share of memory, in MiB; nothing once it has ended."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", told, re.MULTILINE)
    return int(found.group(1)) / 1024 if found else 0.0


def _memory(project: Project, session: Session) -> None:
    """With one task running and observed, and a spare waiting."""
    for _ in range(2):
        project.run(Mixed("true"))
    running = threading.Thread(target=project.run, args=(Mixed("sleep 1.5"),))
    running.start()
    time.sleep(0.8)
    supervisor = session._supervisor
    if supervisor is not None:
        children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text("ascii").split()
        wardens = ", ".join(f"{_pss(int(pid)):.1f}" for pid in children)
        print(f"PSS: supervisor {_pss(supervisor.pid):.1f} MiB (budget 40), each warden {wardens} MiB (budget 8)")
    running.join()


def main(count: int, *, few: bool = False) -> None:
    """Measures and prints; asserts nothing."""
    base = Path(tempfile.mkdtemp(prefix="vxconf-together-")).resolve()
    try:
        with Session() as session:
            project = Project(base, session)
            tasks = mixed(count)
            _compare("mixed tasks", tasks, project)
            work = _WORK.replace("60000", "600") if few else _WORK
            working = [task._replace(command=work + task.command) for task in tasks]
            _compare("mixed tasks that compute as well", working, project)
            _compare("times `true`", [Mixed("true")] * count, project)
            _memory(project, session)
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    number, tiny = arguments(__doc__, "tasks", 50)
    main(2 if tiny else number, few=tiny)
