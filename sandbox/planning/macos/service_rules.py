"""The rules of `systemInfo`, `machLookup` and `weakerNetworkIsolation`: system facts and services. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.planning.macos.profile_rules import Rule, each, plain
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.config import ResolvedSandboxConfig

_NAME = re.compile(r"[A-Za-z0-9._-]+")

TRUST = "com.apple.trustd.agent"


def service_rules(config: ResolvedSandboxConfig) -> Iterator[Rule]:
    """The rules of the fields that name system facts and services."""
    for index, name in enumerate(config.system_info):
        origin = Origin(field=f"systemInfo[{index}]")
        yield Rule(action="allow", operations=("system-info",), filters=(plain("info-type", name),), origin=origin)
        yield Rule(action="allow", operations=("sysctl-read",), filters=(plain("sysctl-name", name),), origin=origin)
    for index, name in enumerate(config.mach_lookup):
        yield lookup_rule((name,), f"machLookup[{index}]")
    if config.weaker_network_isolation:
        yield lookup_rule((TRUST,), "weakerNetworkIsolation")


def lookup_rule(names: tuple[str, ...], field: str) -> Rule:
    """The rule that lets services be looked up by name, for a field of the config."""
    filters = each("global-name", names)
    return Rule(action="allow", operations=("mach-lookup",), filters=filters, origin=Origin(field=field))


def unusable_names(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    """Names that no service and no sysctl can have."""
    for field, names in (("systemInfo", config.system_info), ("machLookup", config.mach_lookup)):
        for index, name in enumerate(names):
            if not _NAME.fullmatch(name):
                yield Refusal(
                    f"{field} {name!r} is no name of macOS's",
                    field=f"{field}[{index}]",
                    code=refusal_codes.UNUSABLE,
                    hint="write the name alone: letters, digits, dots, - and _",
                )
