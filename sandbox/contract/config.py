"""The values that cross the engine's border: frozen, hashable, picklable; nothing with effects.

`ResolvedSandboxConfig` goes in; `RunResult` and what it is made of come out, from `sandbox.contract.results`, and
load when they are asked for. Paths are absolute and canonical. A grant is a string in grant syntax: a directory
ends in `/`, a pattern stays a pattern, and a metacharacter that is meant literally is escaped with a backslash.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

#: The version of the JSON form of every value in this file.
VERSION = 1

Platform = Literal["linux", "macos"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """Denials to leave out of the report, by kind: exact text or globs; nothing becomes readable."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    system_info: tuple[str, ...] = ()
    network: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSandboxConfig:
    """What one task may touch, with every path absolute and canonical.

    Attributes:
        network: `None` (nothing), `True` (the union of the run's lists) or host patterns.
        unix_sockets: `None`, `True` or canonical socket paths.
        local_binding: `False`, `True` or TCP ports, 1-65535.
    """

    platform: Platform
    workspace: str
    project: str
    version: int = VERSION
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    network: Literal[True] | tuple[str, ...] | None = None
    deny_network: tuple[str, ...] = ()
    system_info: tuple[str, ...] = ()
    unix_sockets: Literal[True] | tuple[str, ...] | None = None
    local_binding: bool | tuple[int, ...] = False
    mach_lookup: tuple[str, ...] = ()
    pty: bool = False
    git_config: bool = False
    weaker_when_nested: bool = False
    weaker_network_isolation: bool = False
    hermetic: bool = False
    ignore: Ignore = field(default_factory=Ignore)


class Reach(Enum):
    """What a plan lets a task do with one path."""

    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"
    NAME = "name"
