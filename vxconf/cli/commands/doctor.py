"""`vxconf doctor`: prints which sandbox this machine can build, and advice about the rest."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import sandbox
from vxconf.cli.console import FOUND, OK, out
from vxconf.diagnostics.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox import HostReport
    from vxconf.cli.arguments import Arguments


_KEYS = ("name", "ok", "found", "cause", "fix")


def main(arguments: Arguments) -> int:
    """Probes the machine and prints the result; the status is 1 when no sandbox can run here."""
    with sandbox.Session() as session:
        report = session.probe()
        if not report.available and any(probe.name == "/proc" for probe in report.probes):
            report = _with_weaker(report, session.probe(weaker=True))
    if arguments["format"] == "json":
        data = {
            "available": report.available,
            "reason": report.reason,
            "observer": report.observer,
            "probes": [{key: getattr(probe, key) for key in _KEYS} for probe in report.probes],
        }
        out(json.dumps(data, indent=2) + "\n")
    else:
        out("".join(f"{printable(line)}\n" for line in _lines(report)))
    return OK if report.available else FOUND


def _with_weaker(report: HostReport, weaker: HostReport) -> HostReport:
    """The report with one more probe: whether tasks that accept a weaker sandbox can run."""
    found = f"a sandboxed true ran with it, observed by {weaker.observer}" if weaker.available else "of no help"
    probe = sandbox.Probe(
        name="weakerWhenNested", ok=weaker.available, found=found, cause=weaker.reason, fix=weaker.fix
    )
    return dataclasses.replace(report, probes=(*report.probes, probe))


def _lines(report: HostReport) -> Iterator[str]:
    if report.available:
        yield f"sandboxes run here, watched by: {report.observer}"
    else:
        yield f"no sandbox runs here: {report.reason}"
    width = max((len(probe.name) for probe in report.probes), default=0)
    for probe in report.probes:
        yield f"  {'ok  ' if probe.ok else 'FAIL'}  {probe.name:<{width}}  {probe.found}"
        if not probe.ok:
            yield f"        cause  {probe.cause}"
            yield f"        fix    {probe.fix}"
