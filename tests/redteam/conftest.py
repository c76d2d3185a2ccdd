"""A workspace whose task is hostile: it runs a program of `inside/`, which tells as JSON how far it came."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import ResolvedSandboxConfig, Session
from tests.conftest import REPOSITORY, Tree, make_tree
from tests.support.observers import OBSERVERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox import Request, RunResult

INSIDE = Path(__file__).with_name("inside")
PYTHON = f"{sys._base_executable} -I -S"  # type: ignore[attr-defined]

#: `lib` may be read and `out` written; the rest is hidden.
TREE: Tree = {
    ".git/HEAD": "ref: refs/heads/main\n",
    "base.toml": "the base\n",
    "apps/shop/lib/cart.py": "cart\n",
    "apps/shop/lib/deep/tax.py": "tax\n",
    "apps/shop/out/old": "old\n",
    "apps/shop/secret.txt": "the secret\n",
    "apps/shop/conf/real.json": "the conf\n",
}


@dataclass
class Box:
    """One hostile task's place."""

    session: Session
    root: Path
    project: Path
    home: Path
    observer: str = "auto"
    read: tuple[str, ...] = ("lib/",)
    write: tuple[str, ...] = ("out/",)
    local_binding: tuple[int, ...] = ()
    sockets: tuple[str, ...] = ()

    def request(self) -> Request:
        config = ResolvedSandboxConfig(
            platform="linux",
            workspace=str(self.root),
            project=str(self.project),
            allow_read=tuple(f"{self.project}/{grant}" for grant in self.read),
            allow_write=tuple(f"{self.project}/{grant}" for grant in self.write),
            local_binding=self.local_binding or False,
            unix_sockets=self.sockets,
        )
        return self.session.request(config, workspace_root=str(self.root))

    def run(self, command: str, **options: Any) -> RunResult:
        return self.session.run(
            self.request(), command=command, **{"observer": self.observer, "timeout": 60, **options}
        )

    def program(self, name: str, *arguments: object) -> str:
        """The command that runs a program of `inside/`."""
        shutil.copy(INSIDE / f"{name}.py", self.project / "lib")
        return " ".join([PYTHON, f"lib/{name}.py", str(REPOSITORY), *map(str, arguments)])

    def attack(self, name: str, *arguments: object, **options: Any) -> tuple[dict[str, Any], RunResult]:
        """What a program of `inside/` told, and the result."""
        result = self.run(self.program(name, *arguments), **options)
        assert result.stdout, shown(result)
        told: dict[str, Any] = json.loads(result.stdout)
        return told, result


def shown(result: RunResult) -> str:
    """A result for an assertion's message."""
    return (
        f"exit {result.exit_code} ({result.command_exit_code}), {result.trace} {result.trace_reason} "
        f"{result.refusals} {[v.line for v in result.violations]}\n{result.stdout[-2000:].decode(errors='replace')}\n"
        f"{result.stderr[-2000:].decode(errors='replace')}"
    )


def violated(result: RunResult, below: Path) -> set[tuple[str, str]]:
    """Kind and path of each violation, relative to a directory."""
    return {(v.kind, os.path.relpath(v.path, below)) for v in result.violations}


@pytest.fixture(scope="session")
def shared_session() -> Iterator[Session]:
    """One for all tests that do not end it."""
    with Session() as session:
        yield session


@pytest.fixture
def base(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of everything of one test."""
    assert home.is_dir()
    monkeypatch.setenv("VX_TMPDIR", str(tmp_path.resolve()))
    return tmp_path.resolve()


@pytest.fixture
def box(shared_session: Session, base: Path) -> Box:
    """Under the observer this machine has."""
    root = make_tree(base / "ws", TREE)
    return Box(shared_session, root, root / "apps/shop", base / "home")


@pytest.fixture(params=OBSERVERS)
def each_box(box: Box, request: pytest.FixtureRequest) -> Box:
    """Under each observer."""
    box.observer = str(request.param)
    return box


def processes(marks: Iterable[str]) -> list[str]:
    """Command lines of this machine's processes that hold one of the marks."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if any(mark in line for mark in marks):
                found.append(f"{entry.name} {line}")
    return found
