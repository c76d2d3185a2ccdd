"""What every test shares: which machine it needs, a home of its own, workspaces made from a mapping."""

from __future__ import annotations

import functools
import os
import pty
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

import sandbox
from sandbox.terminal.terminal_modes import resize
from tests.support import own_machine, own_signals, shares
from tests.support.talks import Talk

REPOSITORY = Path(__file__).resolve().parent.parent
WORKSPACES = REPOSITORY / "fixtures" / "workspaces"

# no deadline: two cores shared by many workers say nothing about one example; no database: a failing
# example worth keeping belongs into a test
# the same examples for the same code: a change is judged by what it does, and new worlds are what `make search` finds
hypothesis.settings.register_profile(
    "repository", deadline=None, database=None, print_blob=True, max_examples=50, derandomize=True
)
hypothesis.settings.register_profile("search", hypothesis.settings.get_profile("repository"), derandomize=False)
hypothesis.settings.load_profile("repository")


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link in the mapping a workspace is made from."""

    target: str


#: Relative path -> text, bytes, a `Link`, or `None` for a directory.
Tree = Mapping[str, "str | bytes | Link | None"]


_MACHINE = pytest.StashKey[dict[str, str]]()
_SOURCES = pytest.StashKey[frozenset[str]]()


def pytest_configure(config: pytest.Config) -> None:
    own_signals.hand_on_none_ignored()
    # the workers are started by the process that asks here, and share its mounts
    if hasattr(config, "workerinput"):
        return
    own_machine.keep_mounts_apart()
    config.stash[_MACHINE] = own_machine.state()
    # `make test` asks for it; an editor saving beside a running test would be blamed too, hence not by default
    if os.environ.get("SOURCE_TREE_MUST_STAY_CLEAN") == "1":
        config.stash[_SOURCES] = _names()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _left(session.config):
        # no test to try once more
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in _left(config):
        terminalreporter.write_line(f"FAILED: the tests {line}", red=True)


def _left(config: pytest.Config) -> list[str]:
    machine, sources = config.stash.get(_MACHINE, None), config.stash.get(_SOURCES, None)
    changed = [f"changed the machine: {line}" for line in (own_machine.changed(machine) if machine else ())]
    return changed + [f"left {name}" for name in (sorted(_names() - sources) if sources is not None else ())]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share",
        choices=shares.SHARES,
        default=shares.ALL,
        help="run the share of one user alone; see tests/support/shares.py",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = REPOSITORY / "tests"
    for item in items:
        if item.path.is_relative_to(tests) and item.path.relative_to(tests).as_posix() in shares.ONE_USER:
            item.add_marker(pytest.mark.one_user)
        if item.path.is_relative_to(REPOSITORY / "tests" / "kernel") or item.path.is_relative_to(
            REPOSITORY / "tests" / "redteam"
        ):
            item.add_marker(pytest.mark.kernel)
        elif item.path.is_relative_to(REPOSITORY / "tests" / "property"):
            # each takes a moment, and all of them together a minute
            item.add_marker(pytest.mark.slow)
    share = config.getoption("--share")
    left = [item for item in items if not shares.takes(share, item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if shares.takes(share, item)]
    # pytest-randomly has shuffled them: a worker's group, or a long test, that came last would be waited for by all
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("xdist_group") is not None:
        return 0
    return 1 if item.get_closest_marker("slow") is not None else 2


@functools.cache
def why_no_sandbox() -> str:
    """Why this machine cannot build a sandbox, empty when it can; asked once for each process."""
    report = sandbox.probe()
    return "" if report.available else report.reason or "the probe gave no reason"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # a hook and not a fixture: it has to come before session fixtures that install things
    if item.get_closest_marker("kernel") is not None and sys.platform != "linux":
        pytest.skip("it is about what a Linux kernel does")
    if item.get_closest_marker("mac") is not None and sys.platform != "darwin":
        pytest.skip("it needs a Mac, and has never run on one")
    if (item.get_closest_marker("kernel") or item.get_closest_marker("mac")) and (reason := why_no_sandbox()):
        if os.environ.get("SANDBOX_MUST_WORK") == "1":
            pytest.fail(f"SANDBOX_MUST_WORK=1, and no sandbox can be built here: {reason}", pytrace=False)
        pytest.skip(f"no sandbox can be built here: {reason}")


def make_tree(root: Path, tree: Tree) -> Path:
    """Writes `tree` below `root`, parents included, and returns `root`."""
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, Link):
            path.symlink_to(content.target)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
    return root


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and nothing in the environment that leads to the real one."""
    path = (tmp_path / "home").resolve()
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    for name in [n for n in os.environ if n.startswith("XDG_")]:
        monkeypatch.delenv(name)
    return path


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Somebody for a command to talk with."""
    made = Talk()
    yield made
    made.close()


@pytest.fixture
def screen() -> Iterator[tuple[int, int]]:
    """A terminal of the caller's: the far end, and the terminal itself."""
    far, near = pty.openpty()
    resize(near, 33, 101)
    yield far, near
    for fd in (far, near):
        os.close(fd)


@pytest.fixture
def workspace_factory(tmp_path: Path, home: Path) -> Callable[[Tree], Path]:
    """A function from a mapping to the canonical root of a new workspace, marked as one."""
    assert home.is_dir()
    made = 0

    def make(tree: Tree) -> Path:
        nonlocal made
        made += 1
        root = (tmp_path / f"workspace{made}").resolve()
        return make_tree(root, {".vx/workspace.toml": "", **tree})

    return make


def copy_workspace(name: str, target: Path) -> Path:
    """A copy of a workspace of `fixtures/workspaces` that a test may write in; its canonical root."""
    shutil.copytree(WORKSPACES / name, target, symlinks=True)
    return target.resolve()


def _names() -> frozenset[str]:
    # what running Python leaves behind is not a test's doing
    ours = (
        "__pycache__",
        ".git",
        ".hypothesis",
        ".venv",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".import_linter_cache",
    )
    found: set[str] = set()
    for directory, directories, files in os.walk(REPOSITORY):
        directories[:] = [d for d in directories if d not in ours]
        found.update(os.path.join(directory, name) for name in (*directories, *files))
    return frozenset(found)
