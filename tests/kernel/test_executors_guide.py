"""The blocks of the guide for executors, run in order as one program."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import REPOSITORY, Tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GUIDE = (REPOSITORY / "docs" / "executors.md").read_text(encoding="utf-8")
_TREE: Tree = {
    "app/vx.toml": '[tasks.build]\nexec.command = "cat src/text"\nexec.sandbox.allow.read = ["src/"]\n',
    "app/src/text": "built\n",
    "app/secret": "s\n",
}


def test_every_block_of_the_guide_does_what_it_says(workspace_factory: Callable[[Tree], Path]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        cwd=workspace_factory(_TREE),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
