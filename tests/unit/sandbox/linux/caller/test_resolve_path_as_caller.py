"""Walks along paths, with links that are told."""

from __future__ import annotations

import pytest

from sandbox.linux.caller.resolve_path_as_caller import Jump, walk

LINKS = {
    "/ws/l": "lib",
    "/ws/absolute": "/lib",
    "/ws/loop": "loop",
    "/ws/round": "lib/../out",
    "/proc/net": "self/net",
    "/proc/self/cwd": Jump("/ws"),
    "/proc/self/fd/3": Jump("/ws/l"),
}


@pytest.mark.parametrize(
    ("asked", "path", "passed"),
    [
        ("a/./b//c", "/ws/a/b/c", ()),
        ("../../..", "/", ()),
        ("a/../b", "/ws/b", ("/ws/a",)),
        ("a/b/../../c", "/ws/c", ("/ws/a/b",)),
        ("a/../b/../c", "/ws/c", ("/ws/a", "/ws/b")),
        ("l/x", "/ws/lib/x", ()),
        ("l/../x", "/ws/x", ("/ws/lib",)),
        ("absolute/x", "/lib/x", ()),
        ("round/x", "/ws/out/x", ("/ws/lib",)),
        ("/proc/net/../cwd/x", "/ws/x", ("/proc/self/net",)),
        ("/proc/self/cwd/l/x", "/ws/lib/x", ()),
        # a jump leads to the link itself, which is not followed
        ("/proc/self/fd/3/../x", "/ws/x", ("/ws/l",)),
        ("loop/x", "/ws/loop", ()),
    ],
)
def test_a_path_leads_where_the_kernel_takes_it(asked: str, path: str, passed: tuple[str, ...]) -> None:
    assert walk(LINKS.get, asked, base="/ws", follows=True) == (path, passed)


def test_the_last_link_is_followed_only_where_the_call_follows_it_or_something_stands_behind() -> None:
    assert walk(LINKS.get, "l", base="/ws", follows=False).path == "/ws/l"
    assert walk(LINKS.get, "l", base="/ws", follows=True).path == "/ws/lib"
    assert walk(LINKS.get, "l/", base="/ws", follows=False).path == "/ws/lib"
