"""A workspace with a project, and one session to run commands in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import ResolvedSandboxConfig, Session
from tests.conftest import Link, Tree, make_tree
from tests.support import installed
from tests.support.grants import resolved
from tests.support.hosts import Told, run_knowing
from tests.support.observers import OBSERVERS
from tests.support.sites import Site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sandbox import Request, RunResult
    from tests.support.sites import Knowing

__all__ = ["Link", "Workspace"]

#: Two projects side by side, a repository and a cache; tests work in `apps/shop`.
SHOP: Tree = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".vx/cache/entry": "kept\n",
    "base.toml": "base\n",
    "root-note.txt": "a note\n",
    "apps/shop/lib/cart.py": "cart\n",
    "apps/shop/lib/tax.py": "tax\n",
    "apps/shop/notes.md": "notes\n",
    "apps/shop/conf/real.json": "{}\n",
    "libs/money/src/coin.py": "coin\n",
    "libs/dates/day.py": "day\n",
}

#: A project that is the workspace root, with another nested in it.
ROOT: Tree = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".vx/cache/entry": "kept\n",
    ".vx/other": "other\n",
    "src/y": "y\n",
    "sub/kit/x": "x\n",
    "sub/plain": "plain\n",
}


@dataclass
class Workspace:
    """A workspace on disk; grants are spelled as a file would, relative to the project."""

    session: Session
    base: Path
    root: Path
    project: Path
    home: Path
    observer: str = "auto"
    fields: dict[str, Any] = field(default_factory=dict)
    nested: tuple[str, ...] = ()
    cache: str | None = None

    def request(self, read: Iterable[str] = (), write: Iterable[str] = (), **fields: Any) -> Request:
        places = {"project": str(self.project), "home": str(self.home)}
        reads, links = resolved(read, **places)
        writes, more = resolved(write, **places)
        config = ResolvedSandboxConfig(
            platform="linux",
            workspace=str(self.root),
            project=str(self.project),
            allow_read=reads,
            allow_write=writes,
            **fields,
        )
        return self.session.request(
            config,
            workspace_root=str(self.root),
            nested=self.nested,
            links=(*links, *more),
            cache_dir=self.cache,
        )

    def run(self, command: str, read: Iterable[str] = (), write: Iterable[str] = (), **options: Any) -> RunResult:
        """Runs it; fields of the config come in `fields`."""
        fields = options.pop("fields", {})
        return self.session.run(
            self.request(read, write, **fields), command=command, **{"observer": self.observer, **options}
        )

    def passes(self, command: str, read: Iterable[str] = (), write: Iterable[str] = (), **options: Any) -> str:
        """What a run printed that passed, seen to the end, with nothing to report."""
        result = self.run(command, read, write, **options)
        assert (result.exit_code, result.violations, result.refusals) == (0, (), ()), shown(result)
        assert (result.trace, result.hints, result.fix) == ("complete", (), None), shown(result)
        return result.stdout.decode()

    def text(self, relative: str) -> str:
        return (self.project / relative).read_text(encoding="utf-8")


def shown(result: RunResult) -> str:
    """A result for an assertion's message."""
    lines = [v.line for v in result.violations] + [h.line for h in result.hints]
    return (
        f"exit {result.exit_code} ({result.command_exit_code}), {result.trace} {result.trace_reason} "
        f"{result.refusals} {lines}\n{result.stdout.decode(errors='replace')}\n{result.stderr.decode(errors='replace')}"
    )


def violated(result: RunResult, below: Path) -> list[tuple[str, str]]:
    """Kind and path of each violation, relative to a directory."""
    return [(v.kind, os.path.relpath(v.path, below)) for v in result.violations]


@pytest.fixture(scope="session")
def shared_session() -> Iterator[Session]:
    """One for all tests that do not end it."""
    with Session() as session:
        yield session


@pytest.fixture(scope="session")
def npm_installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TypeScript workspace as `npm ci` makes it; never written to again."""
    return installed.npm_ci(tmp_path_factory.mktemp("npm")).root


@pytest.fixture(scope="session")
def npm_built(npm_installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy after `libs/money#build` and what that depends on, in their sandboxes."""
    workspace = installed.linked_copy(npm_installed, tmp_path_factory.mktemp("built"))
    workspace.passes("libs/money#codegen")
    workspace.passes("libs/money#build")
    return workspace.root


@pytest.fixture(params=OBSERVERS)
def observer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def places(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of everything of one test; its `temp` holds the tasks' own directories."""
    assert home.is_dir()
    base = tmp_path.resolve()
    (base / "temp").mkdir()
    monkeypatch.setenv("VX_TMPDIR", str(base / "temp"))
    return base


def _workspace(session: Session, base: Path, tree: Tree, project: str, observer: str) -> Workspace:
    root = make_tree(base / "ws", tree)
    return Workspace(session, base, root, root / project, base / "home", observer)


@pytest.fixture
def shop(shared_session: Session, places: Path, observer: str) -> Workspace:
    """`SHOP` under each observer."""
    return _workspace(shared_session, places, SHOP, "apps/shop", observer)


@pytest.fixture
def quick_shop(shared_session: Session, places: Path) -> Workspace:
    """`SHOP` under the observer this machine has: for what no observer has a part in."""
    return _workspace(shared_session, places, SHOP, "apps/shop", "auto")


@pytest.fixture
def mono(shared_session: Session, places: Path, observer: str) -> Workspace:
    """`ROOT` under each observer."""
    made = _workspace(shared_session, places, ROOT, "", observer)
    made.nested = (str(made.root / "sub" / "kit"),)
    return made


@pytest.fixture
def quick_mono(shared_session: Session, places: Path) -> Workspace:
    """`ROOT` under the observer this machine has."""
    made = _workspace(shared_session, places, ROOT, "", "auto")
    made.nested = (str(made.root / "sub" / "kit"),)
    return made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A page of files over HTTP."""
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "page").write_text("a page\n")
    served = Site(directory)
    yield served
    served.close()


@pytest.fixture
def knowing(tmp_path: Path, home: Path) -> Knowing:
    """Runs a command where `web.test` is reached at the given ports; it and other names are known to the machine."""
    assert home.is_dir()
    hosts = {"web.test": "127.0.0.1", "other.test": "127.0.0.1"}

    def run(command: str, *ports: int, allow: tuple[str, ...] | None = None, **more: Any) -> Told:
        listed = tuple(f"web.test:{port}" for port in ports) if allow is None else allow
        # the address too, as it is this machine's own
        literal = tuple(f"127.0.0.1:{port}" for port in ports)
        if listed:
            more["network"] = (*listed, *literal)
        return run_knowing(hosts, command, tmp_path, **more)

    return run
