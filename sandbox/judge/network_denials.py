"""The connections the sandbox refused: to hosts, and to sockets of the host's. Each target is reported once. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from sandbox.base import known_sockets, paths
from sandbox.base.host_patterns import PatternRefused, check_pattern, is_address, is_single_label
from sandbox.contract.results import Fix, Hint, Violation, WithheldGrant
from sandbox.judge import path_as_entry
from sandbox.judge.boundary import never_counts
from sandbox.proxy.policy import address_guard
from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED, UNTOLD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.contract.results import Access, DenialClass
    from sandbox.judge.boundary import Boundary
    from sandbox.judge.ignore_lists import IgnoreLists

#: The operation that refusals of the proxy and of dials are reported as; any other is a call on a socket with a path.
OUTBOUND = "network-outbound"

# Characters that the rule for `unixSockets` refuses.
_UNNAMED = frozenset("\"'\\*?")

_METADATA = frozenset(
    {
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "instance-data.ec2.internal",
        "metadata.tencentyun.com",
        # the short names, which search domains of those clouds complete
        "metadata",
        "instance-data",
    }
)


class NetworkDenials:
    """The judge of one attempt's refused connections, none of which has a place in the report boundary."""

    def __init__(self, boundary: Boundary, silence: IgnoreLists) -> None:
        self._boundary = boundary
        self._silence = silence
        self._told: set[str] = set()
        self._hosts: list[tuple[str, str]] = []
        self._sockets: list[str] = []
        self._notes: dict[str, str] = {}

    def take(self, access: Access) -> Violation | None:
        """The violation a refused connection is; `None` for one that was let through, ignored or told before."""
        if not access.refused:
            # A connection that was let through and that nobody answered is kept for a note, which helps a task that
            # failed.
            if access.reason and access.operation == OUTBOUND:
                self._notes.setdefault(access.asked, access.reason)
            return None
        return self._host(access) if access.operation == OUTBOUND else self._socket(access)

    def _host(self, access: Access) -> Violation | None:
        target = access.asked
        if target in self._told or self._silence.covers("host", target):
            return None
        self._told.add(target)
        self._hosts.append((target, access.reason))
        line = f"deny {OUTBOUND} {path_as_entry.shown(target)} ({access.reason or 'refused'})"
        return self._violation(access, "", line, _helps(target, access.reason))

    def _socket(self, access: Access) -> Violation | None:
        path = access.path
        # A missing socket is answered by the host itself.
        if not path or not access.exists or path in self._told or never_counts(path, self._boundary):
            return None
        if known_sockets.asked_everywhere(path) or self._silence.covers("socket", path):
            return None
        self._told.add(path)
        self._sockets.append(path)
        reason = access.reason or "no grant opens it"
        asked, shown = path_as_entry.shown(access.asked), path_as_entry.shown(path)
        line = f"{access.operation} {asked}: {access.errno or 'EPERM'}, {shown}"
        helps: DenialClass = "grant" if _entry(path, self._boundary) else "tool-fault"
        return self._violation(access, path, f"{line} is a socket of the host's ({reason})", helps)

    def _violation(self, access: Access, path: str, line: str, helps: DenialClass) -> Violation:
        mask = self._boundary.mask
        return Violation(
            kind="network",
            operation=access.operation,
            target=mask(access.asked),
            path=mask(path),
            errno=access.errno or ("EPERM" if path else ""),
            line=mask(line),
            class_=helps,
        )

    def completed(self, fix: Fix | None) -> Fix | None:
        """A fix with the hosts that an entry would open, too; `None` when there is nothing to add to none."""
        curable = [target for target, reason in self._hosts if reason.startswith(NOT_ALLOWED)]
        withheld = tuple(target for target, _ in self._hosts if never_suggested(target))
        entries = _entries(target for target in curable if target not in withheld)
        if not entries and fix is None:
            return None
        fix = fix or Fix()
        mask = self._boundary.mask
        network = tuple(dict.fromkeys((*fix.allow.network, *map(mask, entries))))
        return dataclasses.replace(
            fix,
            allow=dataclasses.replace(fix.allow, network=network),
            withheld=tuple(dict.fromkeys((*fix.withheld, *withheld))),
            by_hand=(*fix.by_hand, *map(_by_hand, dict.fromkeys(withheld))),
        )

    def hints(self, others: Iterable[Hint] = ()) -> tuple[Hint, ...]:
        """Notes on the targets for which there is no entry to suggest.

        Args:
            others: the notes that stand already, perhaps about the same port.
        """
        told = "\n".join(hint.line for hint in others)
        notes = [
            f"{path_as_entry.shown(target)} is an address of the machine's own surroundings, such as hand out its"
            " credentials: no entry is suggested for it"
            for target, _ in self._hosts
            if never_suggested(target)
        ]
        notes += (
            f"{path_as_entry.shown(target)}: its server may go by a name that was not judged; a client that greets it"
            " in one plain TLS message, or an entry for its address in place of its name, is let through"
            for target, reason in self._hosts
            if reason.startswith(UNTOLD)
        )
        notes += (
            f"{path_as_entry.shown(target)} has no dot, as services of a compose file have none: list it with its port,"
            f' such as allow.network = ["{target}:5432"]'
            for target, reason in self._hosts
            if reason.startswith(NOT_ALLOWED) and is_single_label(target)
        )
        notes += map(self._about, self._sockets)
        notes += (
            f"{path_as_entry.shown(target)}: {reason}"
            for target, reason in self._notes.items()
            if f'"localhost:{target.rpartition(":")[2]}"' not in told
        )
        return tuple(Hint(line=self._boundary.mask(note)) for note in notes)

    def _about(self, path: str) -> str:
        shown, what = path_as_entry.shown(path), known_sockets.control(path)
        known = f"{shown} is {what}" if what else f"{shown} is a socket of the host's"
        entry = _entry(path, self._boundary)
        return f"{known}: allow.unixSockets = [{entry}] opens it" if entry else f"{known}, and no entry can name it"


def _by_hand(target: str) -> WithheldGrant:
    reason = "is an address of the machine's own surroundings, such as hand out its credentials"
    remedy = "pass what the task needs in a variable, by exec.env.passThrough"
    return WithheldGrant(target=target, reason=reason, remedy=remedy)


def _helps(target: str, reason: str) -> DenialClass:
    """The cure of a refused host: an entry of `allow.network`, one of `ignore.network`, or neither."""
    if never_suggested(target):
        return "credential"
    if reason.startswith(NOT_ALLOWED) and _entries((target,)):
        return "grant"
    return "ignore" if reason.startswith(DENIED) else "tool-fault"


def _entry(path: str, boundary: Boundary) -> str:
    """A socket's path as the project's file would quote it; empty for one that cannot stand there."""
    if any(char in _UNNAMED or not char.isprintable() for char in path):
        return ""
    for place, start in ((boundary.project, ""), (boundary.home, "~/")):
        if paths.under(path, place):
            return f'"{start}{paths.relative(path, place)}"'
    return f'"{path}"'


def never_suggested(target: str) -> bool:
    """Whether `host:port` hands out a machine's credentials, or is no host of anybody's."""
    host = _host_of(target)
    if host in _METADATA or not is_address(host):
        return host in _METADATA
    try:
        return address_guard.kind(host, frozenset()) not in {"", "a loopback address"}
    except ValueError:  # colons, and yet no address
        return False


def _host_of(target: str) -> str:
    if target.startswith("["):
        return target[1:].partition("]")[0].lower()
    host, colon, port = target.rpartition(":")
    return (host if colon and port.isdecimal() else target).lower()


def _entries(targets: Iterable[str]) -> list[str]:
    """The entries of a list that stand for targets, in canonical form; a host without a port covers its ports."""
    found: list[str] = []
    for target in targets:
        try:
            pattern = check_pattern(target, allow=True)
        except PatternRefused:  # such as a name without a dot and without a port: no entry can allow it
            continue
        found.append(str(pattern))
    bare = {entry for entry in found if check_pattern(entry, allow=True).port is None}
    return [entry for entry in dict.fromkeys(found) if entry in bare or _host_of(entry) not in bare]
