"""Laws: what is found in a file does not depend on how many processes look, nor on the files looked at before it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import REPOSITORY


@settings(max_examples=8)
@given(seed=st.integers(0, 1 << 32), projects=st.integers(2, 25))
def test_files_checked_together_are_judged_as_each_is_alone(seed: int, projects: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        home = os.path.join(os.path.realpath(scratch), "home")
        os.makedirs(os.path.join(home, ".ssh"))
        root = os.path.join(os.path.realpath(scratch), "w")
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.many_checks", root, str(seed), str(projects)],
            env={**os.environ, "HOME": home, "PYTHONPATH": str(REPOSITORY)},
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )
    *differences, last = done.stdout.splitlines() or [""]
    assert (done.stderr, differences) == ("", [])
    assert last.split()[1:3] == ["found", "in"]
