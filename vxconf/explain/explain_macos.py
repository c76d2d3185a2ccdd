"""The macOS part of an explanation: the rules of the profile, each beside its entry or its reason; pure.

The rules are those of the profile that a run would use. Nobody has run them on a Mac.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.base import globs, paths
from sandbox.base.host_patterns import PatternRefused, check_pattern
from sandbox.planning.macos.plan_of_request import plan
from sandbox.planning.macos.profile_rules import At, Below, Rule
from sandbox.planning.macos.profile_text import text, written
from sandbox.proxy.policy import policy_from_config
from sandbox.proxy.policy.published_ports import published_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.planning.macos.macos_path_reach import MacPlan
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.resolve.task_model import Entry

JSON = dict[str, Any]

NEVER_RUN = "macOS: worked out here and checked by an evaluator; it has never run on a Mac"

#: The differences between the platforms for the same grants; property tests know no other.
DIFFERENCES = (
    "made later: on macOS a read grant covers what is made while the task runs; on Linux what is there at the start",
    "on the way: on macOS a directory that leads to a grant lists all its names; on Linux those that are granted",
    "the root: on macOS the workspace root lists nothing; on Linux what is granted in it",
    "closed: on macOS a wall or a credential store is refused, there or not; on Linux one that is there is empty",
    "special files: on macOS a pattern covers sockets, pipes and devices as well; on Linux files and directories",
    "directories of patterns: on macOS a task makes none on the way to a name it may write; on Linux it does",
    "beside a name: on macOS a task makes nothing beside a granted name; on Linux it does, until the run ends",
    "other spellings: on macOS what is closed is closed in every case and Unicode form, where they differ as well",
    "repositories: on macOS no task makes, moves or removes a .git or .claude where it may write around it",
)

_PROXY = "the task's own proxy, for programs that obey the proxy variables"


class ExplainedMac(NamedTuple):
    """A block judged for macOS, to be explained.

    Attributes:
        judged: the block, judged for macOS.
        plan: the plan of its profile; `None` where the block is refused.
    """

    judged: JudgedBlock
    plan: MacPlan | None

    @property
    def config(self) -> ResolvedSandboxConfig:
        """The config without the refused entries."""
        bare = self.judged.bare
        return bare.config if bare is not None else self.judged.resolution.config


def explained(judged: JudgedBlock, temp: str) -> ExplainedMac:
    """The block with the plan of its profile.

    Args:
        judged: the block, judged for macOS.
        temp: the path that stands for the task's temporary directory.
    """
    request = judged.request
    return ExplainedMac(judged, None if request is None else plan(request, judged.files, temp=temp))


def profile(mac: ExplainedMac) -> str:
    """The text of the whole profile, empty where the block is refused."""
    return "" if mac.plan is None else text(mac.plan)


def rules(mac: ExplainedMac, field: str, entry: Entry) -> list[JSON]:
    """The rules of one entry, each with its text and its description."""
    if mac.plan is None:
        return []
    if field == "network":
        return list(_network(mac, mac.plan, entry))
    if field == "denyNetwork":
        return [{"rule": "", "describe": f"refused by {_PROXY}"}]
    mine = (rule for rule in mac.plan.rules if rule.origin.field and entry in _origin(mac, rule.origin.field))
    every = [*mine, *(rule for rule in mac.plan.rules if not entry.text and rule.origin.field == field)]
    if field == "gitConfig":
        every += [rule for rule in mac.plan.rules if "execute" in rule.origin.reason]
    return [_told(rule) for rule in dict.fromkeys(every)]


def _origin(mac: ExplainedMac, field: str) -> tuple[Entry, ...]:
    return mac.judged.resolution.origin(mac.judged.origins.get(field, field))


def _network(mac: ExplainedMac, whole: MacPlan, entry: Entry) -> Iterator[JSON]:
    if not entry.text:
        yield {"rule": "", "describe": f"what the tasks of one run list goes through {_PROXY}"}
        return
    try:
        pattern = check_pattern(entry.text, allow=True)
    except PatternRefused:  # the block's refusals have it
        return
    if policy_from_config.is_loopback(pattern) and pattern.port in policy_from_config.host_ports(mac.config):
        for rule in whole.rules:
            if rule.origin.field == "network":
                yield _told(rule)
    elif policy_from_config.is_loopback(pattern) and pattern.port in published_ports(mac.config):
        return
    else:
        yield {"rule": "", "describe": f"let {pattern} through {_PROXY}"}


def notes(mac: ExplainedMac, field: str, entry: Entry) -> Iterator[str]:
    """The notes on one entry that are about macOS."""
    if field == "weakerWhenNested":
        yield "does nothing on macOS: no sandbox runs in another there"
    elif field == "localBinding":
        yield "macOS: any port of this machine's loopback, whatever is listed, and a server may bind any address"
    elif field == "pty":
        yield "macOS: the terminal is one of the machine's, made outside the sandbox, and hangs up with the command"
    elif field == "weakerNetworkIsolation":
        yield "macOS: programs in Go verify certificates through a service that may dial by itself"
    elif field in {"allowRead", "allowWrite"}:
        yield from _path_notes(mac, field, entry)


def _path_notes(mac: ExplainedMac, field: str, entry: Entry) -> Iterator[str]:
    config = mac.judged.resolution.config
    listed = config.allow_read if field == "allowRead" else config.allow_write
    for index, grant in enumerate(listed):
        if next(iter(mac.judged.resolution.origin(f"{field}[{index}]")), None) is not entry:
            continue
        if globs.has_wildcard(grant):
            if field == "allowRead":
                yield "macOS: what matches, whenever it is made"
        elif field == "allowRead" and mac.judged.files.kind(globs.path_of(grant)) is None:
            yield "macOS: covered once it is made"
        elif field == "allowWrite" and grant.endswith("/"):
            yield "macOS: the directory itself may be removed and renamed"


def implied(mac: ExplainedMac) -> Iterator[tuple[str, str, list[JSON]]]:
    """The rules without an entry, as a place, a reason, and the rules of both."""
    found: dict[tuple[str, str], dict[str, JSON]] = {}
    for rule in mac.plan.rules if mac.plan is not None else ():
        if rule.origin.field:
            continue
        for place in _places(rule) or ("macOS",):
            told = _told(rule)
            found.setdefault((place, rule.origin.reason), {})[told["rule"]] = told
    for (place, reason), told in found.items():
        yield place, reason, list(told.values())


def _places(rule: Rule) -> tuple[str, ...]:
    """The paths a rule is about; none for a list of the system's paths."""
    every = tuple(one.path for one in rule.filters if isinstance(one, (At, Below)))
    return every if len(every) <= 1 or not all(map(_is_systems, every)) else ()


def _is_systems(path: str) -> bool:
    return any(paths.at_or_under(path, one) for one in ("/System", "/dev", "/usr", "/bin", "/Library", "/private"))


def _told(rule: Rule) -> JSON:
    return {"rule": written(rule), "describe": rule.describe()}
