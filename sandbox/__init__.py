"""The engine: a frozen `ResolvedSandboxConfig` in, a verdict out. Importing it has no effects; names load on use."""

from __future__ import annotations

# so spelled, a start-up path does not load `typing`
TYPE_CHECKING = False
if TYPE_CHECKING:
    from sandbox.contract import Access, Fix, Hint, Ignore, Protections, ResolvedSandboxConfig, RunResult, Violation
    from sandbox.errors import NotStarted, Refusal, RequestRefused, SandboxError, Unavailable
    from sandbox.executor import SandboxExecutor, as_executor
    from sandbox.probing import HostReport, Probe, Prober
    from sandbox.remedies import fix
    from sandbox.request import Request
    from sandbox.serving import NotReady, Ready, Server
    from sandbox.session import RunOptions, Session, plan, probe
    from sandbox.wrapping import Wrapped

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
    "contract": ("Access", "Fix", "Hint", "Ignore", "Protections", "ResolvedSandboxConfig", "RunResult", "Violation"),
    "errors": ("NotStarted", "Refusal", "RequestRefused", "SandboxError", "Unavailable"),
    "executor": ("SandboxExecutor", "as_executor"),
    "probing": ("HostReport", "Probe", "Prober"),
    "remedies": ("fix",),
    "request": ("Request",),
    "serving": ("NotReady", "Ready", "Server"),
    "session": ("RunOptions", "Session", "plan", "probe"),
    "wrapping": ("Wrapped",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'sandbox' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  only when a name is asked for

    return getattr(import_module(f"sandbox.{_ROOM_OF[name]}"), name)
