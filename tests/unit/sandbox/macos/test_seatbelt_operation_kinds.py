"""What a denied operation of seatbelt's is about."""

from __future__ import annotations

import pytest

from sandbox.contract.intents import Intent
from sandbox.macos.seatbelt_operation_kinds import file_intent, violation_kind


@pytest.mark.parametrize(
    ("operation", "intent"),
    [
        ("file-read-data", Intent.OPEN),
        ("file-read-metadata", Intent.PROBE),
        ("file-read-xattr", Intent.PROBE),
        ("file-write-data", Intent.WRITE),
        ("file-write-create", Intent.CREATE),
        ("file-write-unlink", Intent.REMOVE),
        ("file-write-times", Intent.TIMES),
        ("file-write-mode", Intent.ATTRIBUTES),
        ("process-exec", Intent.EXEC),
        ("process-exec-interpreter", Intent.EXEC),
        ("mach-lookup", None),
        ("system-info", None),
    ],
)
def test_every_operation_on_files_has_a_meaning(operation: str, intent: Intent | None) -> None:
    assert file_intent(operation) is intent


@pytest.mark.parametrize(
    ("operation", "target", "kind"),
    [
        ("file-read-data", "/x", "read"),
        ("file-read-metadata", "/x", "read"),
        ("process-exec", "/x", "read"),
        ("file-write-mode", "/x", "write"),
        ("file-write-create", "", "other"),
        ("network-outbound", "pkg.test:443", "network"),
        ("network-outbound", "/x.sock", "network"),
        ("network-bind", "", "network"),
        ("sysctl-read", "kern.hostname", "systemInfo"),
        ("system-info", "", "systemInfo"),
        ("system-socket", "", "other"),
        ("mach-lookup", "org.example.service", "other"),
    ],
)
def test_a_denied_operation_is_a_violation_of_one_kind(operation: str, target: str, kind: str) -> None:
    assert violation_kind(operation, target) == kind
