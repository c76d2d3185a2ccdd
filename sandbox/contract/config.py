"""The values that enter the engine: frozen, hashable and picklable, without effects.

A `ResolvedSandboxConfig` goes in. What comes out is in `sandbox.contract.results`. Paths are absolute and canonical. A
grant is a string in grant syntax: a directory ends in `/`, a pattern stays a pattern, and a metacharacter that is meant
literally is escaped with a backslash.
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
    """Denials to leave out of the report, by kind.

    Each entry is exact text or a glob. An ignored path does not become readable.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    system_info: tuple[str, ...] = ()
    network: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSandboxConfig:
    """The grants of one task, with every path absolute and canonical.

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
    """The most a plan lets a task do with one path."""

    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"
    NAME = "name"
