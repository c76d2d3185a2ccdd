"""What the relay of a task's streams costs: megabytes through it against the same through a plain descriptor.

python tests/bench/streams.py [--few] [megabytes]
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox import Request, ResolvedSandboxConfig, Session

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench.arguments import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    Timed = Callable[[str, dict[str, Any]], None]

_ROUNDS = 5
_BUDGET = "at most 2x"


def main(megabytes: int, *, few: bool = False) -> None:
    """Measures each kind of descriptor at the command's output and at its input."""
    size = 65536 if few else megabytes << 20
    base = Path(tempfile.mkdtemp()).resolve()
    (base / "project").mkdir()
    (base / "file").write_bytes(bytes(size))
    config = ResolvedSandboxConfig(platform="linux", workspace=str(base), project=str(base / "project"))
    try:
        with Session() as session:
            request = session.request(config, workspace_root=str(base))
            for name, measure in (
                ("output to a file", _to_file),
                ("output to a pipe", _to_pipe),
                ("output to a socket", _to_socket),
                ("input from a file", _from_file),
                ("input from a pipe", _from_pipe),
            ):
                pairs = []
                for _ in range(1 if few else _ROUNDS):
                    # what a sandbox takes to start and to end is no part of a stream
                    rest = _seconds(lambda: _sandboxed(session, request)("true", {}))
                    plain = _seconds(partial(measure, _plain, base, size))
                    whole = _seconds(partial(measure, _sandboxed(session, request), base, size))
                    pairs.append((plain, max(whole - rest, 0.0)))
                own, relayed = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
                print(
                    f"{name:<40} {relayed / own:6.2f}x  ({own:.1f} -> {relayed:.1f} ms; budget {_BUDGET})", flush=True
                )
    finally:
        shutil.rmtree(base)


def _seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _plain(command: str, streams: dict[str, Any]) -> None:
    subprocess.run(("/bin/sh", "-c", command), check=True, **{"stdin": subprocess.DEVNULL, **streams})


def _sandboxed(session: Session, request: Request) -> Timed:
    def run(command: str, streams: dict[str, Any]) -> None:
        result = session.run(request, command=command, **streams)
        if result.exit_code:
            sys.exit(f"{command}: {result}")

    return run


def _to_file(run: Timed, base: Path, size: int) -> None:
    with open(base / "out", "wb") as out:
        run(f"head -c {size} /dev/zero", {"stdout": out.fileno()})


def _read_by(other: str, give: int, take: int) -> subprocess.Popen[bytes]:
    reader = subprocess.Popen(("/bin/sh", "-c", other), stdin=take, stdout=subprocess.DEVNULL, close_fds=True)
    os.close(take)
    os.set_inheritable(give, False)
    return reader


def _to_pipe(run: Timed, _base: Path, size: int) -> None:
    take, give = os.pipe()
    _written(run, give, take, size)


def _to_socket(run: Timed, _base: Path, size: int) -> None:
    ours, theirs = socket.socketpair()
    _written(run, ours.detach(), theirs.detach(), size)


def _written(run: Timed, give: int, take: int, size: int) -> None:
    reader = _read_by("cat", give, take)
    run(f"head -c {size} /dev/zero", {"stdout": give})
    os.close(give)
    reader.wait()


def _from_file(run: Timed, base: Path, _size: int) -> None:
    with open(base / "file", "rb") as file:
        run("cat | cat >/dev/null", {"stdin": file.fileno()})


def _from_pipe(run: Timed, base: Path, _size: int) -> None:
    take, give = os.pipe()
    with open(base / "file", "rb") as file:
        writer = subprocess.Popen(("cat",), stdin=file, stdout=give)
    os.close(give)
    run("cat >/dev/null", {"stdin": take})
    os.close(take)
    writer.wait()


if __name__ == "__main__":
    megabytes, few = arguments(__doc__, "megabytes", 512)
    main(megabytes, few=few)
