"""What the log says, as it is described in public: the recorded lines were written by hand, not on a Mac."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sandbox.macos.denial_log import LINE_LIMIT, LoggedDenial, LogLines, predicate
from tests.conftest import REPOSITORY

RECORDED = (REPOSITORY / "fixtures" / "seatbelt" / "session.ndjson").read_bytes()
SHOP = "/Users/mel/ws/apps/shop"
EXPECTED = [
    ("cat", "file-read-data", "/private/etc/hosts", "begin"),
    ("node", "file-read-data", f"{SHOP}/notes.md", ""),
    ("node", "file-read-metadata", "/Users/mel/ws/base.toml", ""),
    ("node", "file-write-create", f"{SHOP}/a b (1).txt", ""),
    ("my (odd) tool", "file-read-data", "/Users/mel/ws/two\nlines", ""),
    ("bun", "sysctl-read", "hw.optional.neon", ""),
    ("bun", "system-info", "vfs.disk-space", ""),
    ("curl", "network-outbound", "1.2.3.4:443", ""),
    ("node", "network-outbound", "", ""),
    ("open", "mach-lookup", "com.apple.coreservices.launchservicesd", ""),
    ("docker", "network-outbound", "/private/var/run/docker.sock", ""),
    ("cat", "file-read-data", "/private/etc/hosts", "end"),
]


def _told(found: list[tuple[LoggedDenial, str]]) -> list[tuple[str, str, str, str]]:
    return [(one.process, one.operation, one.target, word) for one, word in found]


def test_recorded_lines_become_denials_and_nothing_else_does() -> None:
    assert _told(list(LogLines("vx0123").feed(RECORDED))) == EXPECTED


@given(st.lists(st.integers(0, len(RECORDED)), max_size=20))
def test_lines_mean_the_same_however_they_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(RECORDED)]
    lines = LogLines("vx0123")
    found = [one for start, end in itertools.pairwise(edges) for one in lines.feed(RECORDED[start:end])]
    assert _told(found) == EXPECTED


def test_what_follows_the_last_line_waits_for_its_end() -> None:
    lines = LogLines("t")
    text = b'{"eventMessage": "Sandbox: a(1) deny(1) file-read-data /x\\nt"}'
    assert list(lines.feed(text)) == []
    assert len(list(lines.feed(b"\n"))) == 1


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    lines = LogLines("t")
    assert list(lines.feed(b"{" + b"x" * (LINE_LIMIT + 1))) == []
    assert list(lines.feed(b'\n{"eventMessage": "Sandbox: a(1) deny(1) file-read-data /x\\nt"}\n'))


def test_a_path_that_holds_the_tag_ends_nothing() -> None:
    message = '{"eventMessage": "Sandbox: a(1) deny(1) file-read-data /x/t-end\\nt"}\n'
    ((found, word),) = LogLines("t").feed(message.encode())
    assert (found.target, word) == ("/x/t-end", "")


def test_the_log_is_asked_for_one_run_alone() -> None:
    assert '"vx0123"' in predicate("vx0123")
