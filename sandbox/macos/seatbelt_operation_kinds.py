"""The kinds of seatbelt's operations: files and the intent with them, the network, system information, others. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.intents import WRITE_INTENTS, Intent

if TYPE_CHECKING:
    from sandbox.contract.results import ViolationKind

#: The operation of reaching an address or a socket.
OUTBOUND = "network-outbound"

_SYSTEM = frozenset({"system-info", "sysctl-read"})
_INTENTS = {
    "file-read-metadata": Intent.PROBE,
    "file-read-xattr": Intent.PROBE,
    "file-test-existence": Intent.PROBE,
    "file-write-create": Intent.CREATE,
    "file-write-unlink": Intent.REMOVE,
    "file-write-times": Intent.TIMES,
    "file-write-mode": Intent.ATTRIBUTES,
    "file-write-owner": Intent.ATTRIBUTES,
    "file-write-flags": Intent.ATTRIBUTES,
    "file-write-xattr": Intent.ATTRIBUTES,
    "file-write-acl": Intent.ATTRIBUTES,
    "file-link": Intent.LINK,
    "file-clone": Intent.OPEN,
    "file-map-executable": Intent.OPEN,
}


def file_intent(operation: str) -> Intent | None:
    """The intent with a file that an operation stands for; `None` for an operation that is about no file."""
    known = _INTENTS.get(operation)
    if known is not None:
        return known
    if operation.startswith("process-exec"):
        return Intent.EXEC
    if operation.startswith("file-read"):
        return Intent.OPEN
    return Intent.WRITE if operation.startswith("file-") else None


def violation_kind(operation: str, target: str) -> ViolationKind:
    """The kind of violation a denied operation is; one on a file that the log does not name is `other`."""
    intent = file_intent(operation)
    if intent is not None and target.startswith("/"):
        return "write" if intent in WRITE_INTENTS else "read"
    if operation.startswith("network-"):
        return "network"
    return "systemInfo" if operation in _SYSTEM else "other"
