"""EFFECT: the verdict whether this machine can make sandboxes, by one sandboxed `true` through the real path."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.contract.errors import ASK, SandboxError
from sandbox.linux.run import doctor_probes
from sandbox.linux.run.doctor_probes import Probe
from sandbox.machine.ask_facts import host_facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import Observer, RunResult
    from sandbox.machine.learned_kernel_limits import LearnedKernelLimits

__all__ = ["HostReport", "Probe", "ask"]

_REASON_LIMIT = 500
#: The probes without which nothing runs, on the one system or the other; the first that fails is the cause.
_NEEDED = ("kernel", "bubblewrap", "/proc", "user namespaces", "sandbox-exec", "not sandboxed itself", "temporary")
_DEBUG = "set VXCONF_DEBUG=1 and run a task for the engine's own words"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """The verdict on a machine: what a run gets here.

    Attributes:
        available: whether a sandboxed `true` ran.
        reason: why it did not, empty when available.
        cause: the machine's fault, empty when available or when none was found.
        fix: the cure, empty when available.
        observer: the observer a run gets.
        weaker: whether `true` ran in the weaker sandbox of a task that accepts it, for want of a full one.
    """

    available: bool
    reason: str
    observer: Observer
    probes: tuple[Probe, ...]
    cause: str = ""
    fix: str = ""
    weaker: bool = False


def ask(trial: Callable[[], RunResult], machine: LearnedKernelLimits) -> HostReport:
    """Ask the machine; takes tens of milliseconds and leaves nothing behind.

    Args:
        trial: runs one sandboxed `true`, built as every run is.
        machine: the features that the trial's session found missing.
    """
    mac = host_facts().platform == "macos"
    if not mac and sys.platform != "linux":
        cause, fix = "sandboxes run on Linux and macOS only", "run it on one of them"
        failed = Probe(name="platform", ok=False, found=platform.system(), cause=cause, fix=fix)
        return HostReport(available=False, reason=cause, cause=cause, fix=fix, observer="none", probes=(failed,))
    found = _of_a_mac() if mac else doctor_probes.found()
    result, message, hint = _tried(trial)
    if machine.unfused:
        found = [doctor_probes.unfused(machine.unfused) if probe.name == "/dev/fuse" else probe for probe in found]
    if result is not None:
        return _available(result, found, machine)
    return _unavailable(found if mac else _explained(found, masked=bool(machine.masked)), message, hint)


def _available(result: RunResult, found: list[Probe], machine: LearnedKernelLimits) -> HostReport:
    said = f"a sandboxed true ran, observed by {result.observer}"
    if machine.unheard:
        said += f", for the kernel gives its filter no listener ({machine.unheard})"
    every = (*found, Probe(name="sandbox", ok=True, found=said))
    weaker = result.protections.processes == "weaker"
    return HostReport(available=True, reason="", observer=result.observer, probes=every, weaker=weaker)


def _unavailable(found: list[Probe], message: str, hint: str) -> HostReport:
    """The verdict on a machine where no sandboxed `true` ran: the first probe that failed is the cause."""
    causes = [probe for probe in found if not (probe.ok or probe.lesser) and probe.name in _NEEDED]
    cause = causes[0].cause if causes else ""
    # The reader has run the doctor already, whose advice is no run of the doctor.
    fix = causes[0].fix if causes else hint if hint not in {"", ASK} else _DEBUG
    message = message[:_REASON_LIMIT]
    reason = message if not cause or cause in message else f"{message}: {cause}"
    every = (*found, Probe(name="sandbox", ok=False, found="a sandboxed true did not run", cause=message, fix=fix))
    return HostReport(available=False, reason=reason, cause=cause, fix=fix, observer="none", probes=every)


def _of_a_mac() -> list[Probe]:
    from sandbox.macos.doctor_probes import found

    return [Probe(name=o.name, ok=not o.cause, found=o.found, cause=o.cause, fix=o.fix) for o in found()]


def _explained(found: list[Probe], *, masked: bool) -> list[Probe]:
    """The probes of a Linux machine, with those that are made only once nothing ran."""
    if masked:
        return [*found, doctor_probes.masked_proc()]
    kernel, bwrap = found[:2]
    if not ((kernel.ok or kernel.lesser) and bwrap.ok):
        return found
    return [doctor_probes.tried() if probe.name == "user namespaces" else probe for probe in found]


def _tried(trial: Callable[[], RunResult]) -> tuple[RunResult | None, str, str]:
    """The result of a trial that ran, or the reason and the cure where none did."""
    try:
        result = trial()
    except SandboxError as error:
        return None, error.message, error.hint
    except OSError as error:
        return None, f"no temporary directory: {error}", "set TMPDIR to a directory that can be written"
    if result.exit_code == 0 and result.started:
        return result, "", ""
    if not result.refusals:
        return None, f"a sandboxed true ended with {result.exit_code}", ""
    return None, "; ".join(one.message for one in result.refusals), result.refusals[0].hint
