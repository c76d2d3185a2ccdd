"""Laws of the fix, in real sandboxes: with it the attempt passes, and without any one of its entries it does not."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox import Ignore, ResolvedSandboxConfig, RunResult, Session
from sandbox.contract.results import Fix
from tests.conftest import make_tree
from tests.support.grants import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.kernel

FILES = ("a/one", "a/two", "b/deep/x", "b/y", "c[1]/z*", "top", "!odd")
DIRECTORIES = ("a", "b", "b/deep", "c[1]")
MISSING = ("a/new", "b/deep/new", "fresh", "fresh/in", "~new", "b/new.9f3a21.tmp")

_TRY = {
    "read": "open(p).close()",
    "list": "os.listdir(p)",
    "stat": "os.stat(p)",
    "append": "open(p, 'a').close()",
    "create": "os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_WRONLY))",
    "mkdir": "os.mkdir(p)",
    "remove": "os.unlink(p)",
    "chmod": "os.chmod(p, 0o700)",
    "utime": "os.utime(p)",
    "symlink": "os.symlink('/usr/bin/env', p)",
    "rename": "os.rename(p, q)",
    "link": "os.link(p, q)",
}
_PROGRAM = """
import json, os, sys
does = json.loads(sys.argv[2])
for what, p, q in json.loads(sys.argv[1]):
    try:
        exec(does[what])
    except OSError:
        pass
"""


def _one(kinds: tuple[str, ...], names: tuple[str, ...]) -> st.SearchStrategy[tuple[str, str, str]]:
    return st.tuples(st.sampled_from(kinds), st.sampled_from(names), st.sampled_from(MISSING))


STEPS = st.lists(
    st.one_of(
        _one(("read", "stat", "append", "remove", "chmod", "utime", "rename", "link"), FILES),
        _one(("list", "stat", "mkdir"), DIRECTORIES),
        _one(("read", "stat", "create", "append", "mkdir", "symlink"), MISSING),
    ),
    min_size=1,
    max_size=5,
    # what one step takes away another would only meet once the first is granted
    unique_by=lambda step: step[1],
)
GRANTS = st.lists(st.sampled_from(("a/", "a/one", "b/deep/", "top")), max_size=2, unique=True)


@dataclasses.dataclass(frozen=True)
class World:
    """A place to run the same attempt in again and again, each time over the same files."""

    session: Session
    base: Path

    def attempt(self, steps: list[tuple[str, str, str]], read: list[str], fix: Fix) -> RunResult:
        root = self.base / "ws"
        shutil.rmtree(root, ignore_errors=True)
        make_tree(root, {".git/HEAD": "ref\n", **{f"p/{name}": "text\n" for name in FILES}})
        places = {"project": str(root / "p"), "home": str(self.base / "home")}
        reads, links = resolved((*read, *fix.allow.read), **places)
        writes, more = resolved(fix.allow.write, **places)
        ignores = Ignore(read=fix.ignore.read, write=fix.ignore.write)
        config = ResolvedSandboxConfig(
            platform="linux",
            workspace=str(root),
            project=str(root / "p"),
            allow_read=reads,
            allow_write=writes,
            ignore=ignores,
        )
        python = os.path.realpath(sys.executable)
        return self.session.run(
            self.session.request(config, workspace_root=str(root), links=(*links, *more)),
            command=shlex.join((python, "-I", "-S", "-c", _PROGRAM, json.dumps(steps), json.dumps(_TRY))),
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    base = tmp_path_factory.mktemp("fix").resolve()
    with pytest.MonkeyPatch.context() as patch, Session() as session:
        for name in ("home", "temp"):
            (base / name).mkdir()
        patch.setenv("HOME", str(base / "home"))
        patch.setenv("VX_TMPDIR", str(base / "temp"))
        yield World(session, base)


def _without_each(fix: Fix) -> Iterator[tuple[str, Fix]]:
    for section in ("allow", "ignore"):
        lists: Any = getattr(fix, section)
        for key in ("read", "write"):
            for entry in getattr(lists, key):
                rest = tuple(one for one in getattr(lists, key) if one != entry)
                yield entry, dataclasses.replace(fix, **{section: dataclasses.replace(lists, **{key: rest})})


def _told(result: RunResult) -> str:
    return f"{result.exit_code} {result.refusals} {[v.line for v in result.violations]} {result.stderr!r}"


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, read=GRANTS)
# what is not there in a directory that is read is looked for again once a name in it is granted
@example(steps=[("append", "b/deep/x", "fresh"), ("read", "b/deep/new", "fresh")], read=["b/deep/"])
@example(steps=[("append", "a/two", "fresh"), ("read", "a/new", "fresh")], read=["a/"])
@example(steps=[("rename", "a/one", "a/new"), ("read", "b/new.9f3a21.tmp", "fresh")], read=["a/", "b/deep/"])
def test_a_fix_lets_the_attempt_pass_and_no_entry_of_it_can_be_left_out(
    world: World, steps: list[tuple[str, str, str]], read: list[str]
) -> None:
    first = world.attempt(steps, read, Fix())
    assert first.command_exit_code == 0, _told(first)
    fix = first.fix
    assert (fix is None) is (first.violations == ()), _told(first)
    if fix is None:
        return
    again = world.attempt(steps, read, fix)
    assert again.exit_code == 0, f"{fix}\n{_told(first)}\n{_told(again)}"
    for entry, less in _without_each(fix):
        result = world.attempt(steps, read, less)
        assert result.exit_code == 1, f"{entry} of {fix} is not needed\n{_told(first)}"
