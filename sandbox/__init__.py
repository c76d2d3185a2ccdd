"""The engine: a frozen `ResolvedSandboxConfig` in, a verdict out. Importing it has no effects; names load on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.contract.config import Ignore, ResolvedSandboxConfig
    from sandbox.contract.errors import NotStarted, Refusal, RequestRefused, SandboxError, Unavailable
    from sandbox.contract.results import Access, Fix, Hint, Protections, RunRefusal, RunResult, Violation
    from sandbox.judge.fix_from_result import fix
    from sandbox.request.request import Request
    from sandbox.session.futures_executor import SandboxExecutor, as_executor
    from sandbox.session.machine_verdict import HostReport, Probe
    from sandbox.session.probe_memory import Prober
    from sandbox.session.server import Server
    from sandbox.session.server_readiness import NotReady, Ready
    from sandbox.session.session import RunOptions, Session, plan, probe
    from sandbox.session.wrap import Wrapped

__all__ = [
    "Access",
    "Fix",
    "Hint",
    "HostReport",
    "Ignore",
    "NotReady",
    "NotStarted",
    "Probe",
    "Prober",
    "Protections",
    "Ready",
    "Refusal",
    "Request",
    "RequestRefused",
    "ResolvedSandboxConfig",
    "RunOptions",
    "RunRefusal",
    "RunResult",
    "SandboxError",
    "SandboxExecutor",
    "Server",
    "Session",
    "Unavailable",
    "Violation",
    "Wrapped",
    "as_executor",
    "fix",
    "plan",
    "probe",
]

_ROOMS = {
    "contract.config": ("Ignore", "ResolvedSandboxConfig"),
    "contract.errors": ("NotStarted", "Refusal", "RequestRefused", "SandboxError", "Unavailable"),
    "contract.results": ("Access", "Fix", "Hint", "Protections", "RunRefusal", "RunResult", "Violation"),
    "judge.fix_from_result": ("fix",),
    "request.request": ("Request",),
    "session.machine_verdict": ("HostReport", "Probe"),
    "session.futures_executor": ("SandboxExecutor", "as_executor"),
    "session.probe_memory": ("Prober",),
    "session.server": ("Server",),
    "session.server_readiness": ("NotReady", "Ready"),
    "session.session": ("RunOptions", "Session", "plan", "probe"),
    "session.wrap": ("Wrapped",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'sandbox' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"sandbox.{_ROOM_OF[name]}"), name)
