"""Every bench still runs to its end and prints each of its figures; what the figures are is nobody's business here."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.observers import NEEDS_MASK

# every bench takes seconds, and more of them where others share the processors
pytestmark = pytest.mark.timeout(600)

BENCHES = Path(__file__).resolve().parents[1] / "bench"
_RATIO = re.compile(r"^.+ [0-9.]+x  ?.*\(.+ ms.+\)", re.MULTILINE)
_SPEED = re.compile(r"^.+ [0-9,]+ (?:lines|connections)/s", re.MULTILINE)


def _printed(bench: str) -> str:
    # far from what it takes: a bench that hangs is what it guards against
    done = subprocess.run(
        (sys.executable, str(BENCHES / bench), "--few"),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_bench_is_run_here() -> None:
    programs = {path.name for path in BENCHES.glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    others = {"names.py", "together.py", "network.py", "observers.py", "proxy_loop.py", "libraries.py", "streams.py"}
    assert programs == {"run.py"} | others


@pytest.mark.slow
def test_the_ratios_are_all_printed_and_those_of_granted_names_with_them() -> None:
    printed = _printed("run.py")
    compiled = 0 if "tsc is not measured" in printed else 2
    # whoever adds one need not come here; none may be lost
    assert len(_RATIO.findall(printed)) >= 2 + 8 + compiled + 8, printed


def test_tasks_at_once_are_compared_and_memory_is_told() -> None:
    printed = _printed("together.py")
    assert len(re.findall(r"[0-9.]+x the throughput .* [0-9]+ verdicts differ", printed)) == 3, printed
    assert re.search(r"supervisor [0-9.]+ MiB", printed), printed


def test_relayed_streams_are_compared_with_plain_descriptors() -> None:
    assert len(_RATIO.findall(_printed("streams.py"))) == 5


def test_a_proxy_is_compared_with_a_direct_way() -> None:
    printed = _printed("network.py")
    ways = {"direct", "proxy"} | ({"socat"} if shutil.which("socat") else set())
    assert {line.split()[0] for line in _SPEED.findall(printed)} == ways, printed


def test_a_proxy_is_compared_with_plain_streams() -> None:
    printed = _printed("proxy_loop.py")
    assert {line.split()[0] for line in printed.splitlines()} - {"uvloop"} == {"proxy", "streams"}, printed
    assert printed.count("x)") == 4 * len(printed.splitlines()), printed


@pytest.mark.slow
def test_libraries_are_compared_with_what_stands_in_their_place() -> None:
    printed = _printed("libraries.py")
    # what every installation has, each beside something by hand
    assert {"typer", "jsonschema", "tomllib", "tomlkit", "h11", "OpenSSL", "pathlib", "concurrent.futures"} <= {
        found[1] for found in re.finditer(r"^    (\S[^,\n]*?)(?:,.*)? +-?[0-9.]+ [mu]s$", printed, re.MULTILINE)
    }, printed


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here")
@NEEDS_MASK
def test_each_observer_is_compared_with_none_and_each_trace_is_parsed() -> None:
    printed = _printed("observers.py")
    traces = len(list((BENCHES.parents[1] / "fixtures/traces").glob("*.strace")))
    assert len(_RATIO.findall(printed)) == 4 * 3, printed
    assert len(_SPEED.findall(printed)) == traces + 1, printed
