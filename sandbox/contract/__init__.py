"""The values that enter and leave the engine, importable from here; importing them has no effects.

The values of a run's result load when they are first asked for: a program that only resolves configs has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.config import VERSION, Ignore, Platform, Reach, ResolvedSandboxConfig
from sandbox.contract.intents import Intent

if TYPE_CHECKING:
    from sandbox.contract.results import (
        Access,
        DenialClass,
        Fix,
        FixInputs,
        FixPaths,
        Hint,
        Observer,
        Protections,
        RunRefusal,
        RunResult,
        Strength,
        Trace,
        Violation,
    )

__all__ = [
    "VERSION",
    "Access",
    "DenialClass",
    "Fix",
    "FixInputs",
    "FixPaths",
    "Hint",
    "Ignore",
    "Intent",
    "Observer",
    "Platform",
    "Protections",
    "Reach",
    "ResolvedSandboxConfig",
    "RunRefusal",
    "RunResult",
    "Strength",
    "Trace",
    "Violation",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'sandbox.contract' has no attribute {name!r}")
    from sandbox.contract import results

    return getattr(results, name)
