"""The README's sample run and library example, carried out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def _comparable(output: str) -> list[str]:
    # the copy's place and the time taken differ from run to run
    output = re.sub(r"/\S*?/sample(?=/|\b)", "/tmp/sample", output)
    return [
        re.sub(r"\b\d+(\.\d+)? ?(ms|s|MiB)\b", "N \\2", line.rstrip()) for line in output.splitlines() if line.strip()
    ]


@pytest.mark.slow
def test_the_sample_run_prints_what_the_readme_shows() -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "sample.py")],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    (shown,) = re.findall(r"^## The sample run\n.*?^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    # the README leaves out what it marks with an ellipsis
    printed = _comparable(done.stdout)
    for part in shown.split("…\n"):
        wanted = _comparable(part)
        starts = [at for at in range(len(printed)) if printed[at : at + len(wanted)] == wanted]
        assert starts, f"not in the output, or not in this order:\n{part}\n---\n{done.stdout}"
        printed = printed[starts[0] + len(wanted) :]


def test_the_library_example_works() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=REPOSITORY, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
