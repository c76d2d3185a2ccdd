"""What a Mac is asked, answered by stand-ins."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from sandbox.base.host_facts import HostFacts
from sandbox.machine import ask_facts
from sandbox.macos import doctor_probes, system_tools
from sandbox.session import machine_verdict, session
from tests.support.fake_mac import FakeMac

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMac:
    """A machine whose facts say that it is a Mac."""
    fake = FakeMac.at(tmp_path / "mac")
    facts = HostFacts(platform="macos", home=str(tmp_path), temp_root=str(tmp_path / "temp"))
    monkeypatch.setattr(system_tools, "SYSTEM", fake.tools)
    for room in (ask_facts, machine_verdict, session, doctor_probes):
        monkeypatch.setattr(room, "host_facts", lambda: facts)
    return fake


def test_a_machine_that_can_says_so(mac: FakeMac) -> None:
    report = session.probe()
    assert (report.available, report.reason, report.observer) == (True, "", "log")
    assert all(probe.ok for probe in report.probes)
    assert {"sandbox-exec", "not sandboxed itself", "log", "temporary", "sandbox"} <= {p.name for p in report.probes}
    assert mac.profile


def test_a_process_in_a_sandbox_is_told_so_with_one_cause_and_one_fix(mac: FakeMac) -> None:
    mac.having("nested")
    report = session.probe()
    assert not report.available
    assert "in a sandbox already" in report.reason
    (failed,) = [probe for probe in report.probes if probe.name == "not sandboxed itself"]
    assert not failed.ok
    assert "outside the other sandbox" in failed.fix


def test_a_missing_program_is_named(mac: FakeMac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        system_tools, "SYSTEM", dataclasses.replace(mac.tools, sandbox_exec="/nonexistent/sandbox-exec")
    )
    report = session.probe()
    assert not report.available
    assert "/nonexistent/sandbox-exec is not there" in report.reason
