"""What the probe says of a machine that lacks something, on machines that do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import HostReport, Session
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a machine lack things")
_PROBE = """
import dataclasses, json, sys
sys.path.insert(0, sys.argv[1])
import sandbox
report = sandbox.probe()
print(json.dumps(dataclasses.asdict(report)))
"""


def told(prepare: str = "", kinds: tuple[str, ...] = ("--mount",), **environment: str) -> dict[str, Any]:
    """The probe's report where a shell of root's has prepared the machine, in namespaces of its own."""
    inner = f'set -e; {prepare}\nexec {sys.executable} -c "$0" {REPOSITORY}'
    words = ["unshare", *kinds, "/bin/sh", "-c", inner] if prepare else ["/bin/sh", "-c", inner]
    done = subprocess.run([*words, _PROBE], capture_output=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr.decode()
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def probe(report: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(probe for probe in report["probes"] if probe["name"] == name)
    return found


def bwrap() -> str:
    found = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    assert found is not None
    return os.path.realpath(found)


@ROOT
def test_without_bubblewrap_it_says_how_to_get_it() -> None:
    report = told(f"mount --bind /dev/null {bwrap()}")
    assert report["available"] is False
    assert "bubblewrap (bwrap) is not installed" in report["reason"]
    assert "apt install bubblewrap" in probe(report, "bubblewrap")["fix"]
    assert probe(report, "sandbox")["fix"] == probe(report, "bubblewrap")["fix"]


@ROOT
def test_a_setuid_bubblewrap_is_named_with_its_remedy(tmp_path: Path) -> None:
    copy = tmp_path / "bwrap"
    shutil.copy(bwrap(), copy)
    copy.chmod(0o4755)
    found = probe(told(f"mount --bind {copy} {bwrap()}"), "bubblewrap")
    assert (found["ok"], found["fix"]) == (False, f"chmod u-s {bwrap()}")


@ROOT
def test_an_old_bubblewrap_is_named_with_its_version(tmp_path: Path) -> None:
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.6.1\n", encoding="utf-8")
    old.chmod(0o755)
    report = told(f"mount --bind {old} {bwrap()}")
    assert report["available"] is False
    found = probe(report, "bubblewrap")
    assert (found["ok"], found["fix"]) == (False, "install bubblewrap 0.8 or later")
    assert "0.6.1" in found["found"]


@ROOT
def test_a_masked_proc_is_named_with_its_remedy() -> None:
    report = told("mount -t tmpfs none /proc/irq")
    assert report["available"] is False
    found = probe(report, "/proc")
    assert "/proc/irq" in found["found"]
    assert "systempaths=unconfined" in found["fix"]
    assert probe(report, "sandbox")["fix"] == found["fix"]


def test_a_refusal_of_user_namespaces_names_the_setting() -> None:
    try:
        report = told("echo 0 >/proc/sys/user/max_user_namespaces", ("--user", "--map-root-user"))
    except AssertionError as error:
        pytest.skip(f"no user namespace to try it in: {error}")
    assert report["available"] is False
    found = probe(report, "user namespaces")
    assert (found["ok"], found["cause"]) == (False, "user.max_user_namespaces is 0")
    assert "sysctl user.max_user_namespaces" in probe(report, "sandbox")["fix"]


def test_a_temporary_directory_that_is_missing_is_named_with_the_way_out(tmp_path: Path) -> None:
    report = told(VX_TMPDIR=str(tmp_path / "gone" / "deep"))
    assert report["available"] is False
    found = probe(report, "temporary")
    assert str(tmp_path / "gone") in found["cause"]
    assert "VX_TMPDIR" in found["fix"]
    assert probe(report, "sandbox")["fix"] == found["fix"]


def test_a_temporary_directory_others_may_rename_in_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    found = probe(told(VX_TMPDIR=str(tmp_path / "open")), "temporary")
    assert "lets other users rename what is in it" in found["cause"]


def test_ten_threads_that_ask_at_once_get_one_verdict_a_mode() -> None:
    reports: list[HostReport] = []
    with Session() as session:
        threads = [threading.Thread(target=lambda: reports.append(session.probe())) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(reports) == 10
        assert len({id(report) for report in reports}) == 1
        weaker = session.probe(weaker=True)
        assert weaker is not reports[0]
        assert session.probe(weaker=True) is weaker
        session.reset()
        assert session.probe() is not reports[0]
