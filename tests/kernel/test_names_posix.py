"""Calls on a granted name come to what they come to in a directory that is bound: one table, run in both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import dns
import h11
import pytest

from sandbox import Session
from tests.conftest import REPOSITORY
from tests.support.named import NamedWorkspace
from tests.support.observers import ANSWERING_LONG, NEEDS_MASK

_SUPPORT = REPOSITORY / "tests" / "support"
_CALLS = _SUPPORT / "posix_calls.py"
_PYTHON = "/usr/bin/python3"
_COMMAND = f"mkdir dist && {_PYTHON} {{calls}} plain && {_PYTHON} {{calls}} dist"


def compared(output: str) -> dict[str, object]:
    bound, named = map(json.loads, output.splitlines())
    assert {name: bound[name] for name in bound if bound[name] != named[name]} == {
        name: named[name] for name in bound if bound[name] != named[name]
    }
    assert "Error: " not in output, output
    assert len(bound) > 25
    return dict(named)


@pytest.mark.slow
@pytest.mark.parametrize("observer", ANSWERING_LONG)
def test_every_call_has_the_outcome_it_has_in_a_bound_directory(tmp_path: Path, observer: str) -> None:
    tmp_path.chmod(0o755)
    calls = shutil.copy(_CALLS, tmp_path / "calls.py")
    with Session() as session:
        outcome = NamedWorkspace(str(tmp_path), session, observer=observer).run(_COMMAND.format(calls=calls))
    assert (outcome.status, outcome.err, outcome.incomplete, outcome.leftovers) == (0, "", "", ())
    compared(outcome.out)


@pytest.mark.slow
@NEEDS_MASK
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; this user is ordinary already")
def test_every_call_has_the_same_outcome_as_an_ordinary_user() -> None:
    base = Path("/tmp") / f"vx-names-{os.getpid()}"
    base.mkdir(0o755)
    try:
        # a copy: the repository may lie where nobody else can read
        shutil.copytree(REPOSITORY / "sandbox", base / "code" / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("named.py", "posix_calls.py"):
            shutil.copy(_SUPPORT / name, base / "code" / name)
        for library in (dns, h11):
            assert library.__file__ is not None
            shutil.copytree(Path(library.__file__).parent, base / "code" / library.__name__)
        work = base / "work"
        work.mkdir()
        os.chown(work, 12345, 12345)
        subprocess.run(("chmod", "-R", "go+rX", base / "code"), check=True)
        done = subprocess.run(
            (
                *(REPOSITORY / "scripts" / "with-own-fuse", "666"),
                *("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"),
                *(_PYTHON, "-B", "-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); import named; named.main()"),
                *(base / "code", work, _COMMAND.format(calls=base / "code" / "posix_calls.py")),
            ),
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        compared(done.stdout)
    finally:
        shutil.rmtree(base)
