"""A hermetic task: of the host only what a process needs to start, and what is granted."""

from __future__ import annotations

import os

import pytest

from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown

HERMETIC = {"fields": {"hermetic": True}}


def test_the_root_holds_what_a_process_needs_and_no_more(shop: Workspace) -> None:
    listed = set(shop.passes("ls -A /", **HERMETIC).split())
    top = os.path.realpath(shop.base).split("/")[1]
    wanted = {"usr", "bin", "sbin", "etc", "dev", "proc", top}
    assert {name for name in wanted if os.path.lexists(f"/{name}")} <= listed
    assert all(name in wanted or name.startswith("lib") or name in {"tmp", "nix", "gnu"} for name in listed)


def test_the_rest_of_the_host_is_not_there(shop: Workspace) -> None:
    for place in ("/var/lib", "/opt", "/srv", "/sys/kernel", "/root", "/home", str(shop.home), "/run", "/mnt"):
        if os.path.exists(place):
            result = shop.run(f"ls -d {place}/. 2>/dev/null || echo none", **HERMETIC)
            assert result.stdout == b"none\n", place
            assert (result.exit_code, result.violations) == (0, ()), shown(result)
    assert set(shop.passes(f"ls -A {shop.base}", **HERMETIC).split()) == {"ws", "temp"}


def test_programs_start_and_the_projects_grants_hold(shop: Workspace) -> None:
    command = "cat notes.md && echo made > out/f && sh -c 'cat out/f' && git --version >/dev/null"
    assert shop.passes(command, read=["notes.md"], write=["out/"], **HERMETIC) == "notes\nmade\n"
    assert shop.passes("cat /proc/self/comm && echo x > /dev/null && test -c /dev/null", **HERMETIC) == "cat\n"
    assert shop.passes('echo x > "$TMPDIR/a" && cat "$TMPDIR/a" && ls /dev/shm', **HERMETIC) == "x\n"


def test_a_grant_outside_the_workspace_opens_a_path_in_it(shop: Workspace) -> None:
    make_tree(shop.base, {"other/deep/x": "x\n", "other/beside": "b\n", "made/y": "y\n"})
    read, write = [f"{shop.base}/other/deep"], [f"{shop.base}/made/"]
    assert shop.passes(f"cat {read[0]}/x; ls {shop.base}/other", read=read, **HERMETIC) == "x\ndeep\n"
    shop.passes(f"echo z > {write[0]}z", write=write, **HERMETIC)
    assert (shop.base / "made/z").read_text(encoding="utf-8") == "z\n"
    assert shop.run("cat ../../../other/beside", **HERMETIC).stdout == b""


@pytest.mark.parametrize(
    ("read", "shown"), [(["/"], "/mnt\n"), (["/*"], "/mnt\n"), (["/dev/"], ""), (["/proc/", "/dev"], "")]
)
def test_a_grant_of_all_there_is_leaves_the_sandbox_its_own_devices_and_processes(
    shop: Workspace, read: list[str], shown: str
) -> None:
    looks = "ls /dev; ls /proc | grep -v '[0-9]'; echo x > /dev/null"
    assert shop.passes(looks, read=read, **HERMETIC) == shop.passes(looks, **HERMETIC)
    assert shop.passes("ls -d /mnt || true", read=read, **HERMETIC) == shown


def test_a_credential_store_under_a_granted_home_stays_closed(shop: Workspace) -> None:
    make_tree(shop.home, {".npmrc": "secret\n", "plain": "p\n"})
    result = shop.run("cat ~/plain; cat ~/.npmrc", read=["~"], **HERMETIC)
    assert result.stdout == b"p\n", shown(result)


def test_a_credential_store_in_a_writable_directory_stays_closed(shop: Workspace) -> None:
    make_tree(shop.home, {".config/gh/hosts": "secret\n", ".config/x": "x\n"})
    command = "cat ~/.config/x; cat ~/.config/gh/hosts; echo evil > ~/.config/gh/hosts; ls -A ~/.config/gh"
    result = shop.run(command, write=[f"{shop.home}/.config/"], **HERMETIC)
    assert result.stdout == b"x\n", shown(result)
    assert (shop.home / ".config/gh/hosts").read_text(encoding="utf-8") == "secret\n"


def test_nothing_of_the_hosts_is_writable_and_no_way_leads_back_out(shop: Workspace) -> None:
    result = shop.run("echo x > /etc/evil; mkdir /new; touch /usr/x; ls /proc/1/root/ && ls /dev/.vx*", **HERMETIC)
    assert result.command_exit_code != 0
    assert b"evil" not in result.stdout
    for name in ("/etc/evil", "/new", "/usr/x"):
        assert not os.path.exists(name)
    assert b"home" not in result.stdout.split(), shown(result)


def test_a_failing_task_is_told_what_it_looked_for(shop: Workspace) -> None:
    make_tree(shop.base, {"other/x": "x\n"})
    result = shop.run(f"cat {shop.base}/other/x", **HERMETIC)
    assert (result.exit_code, result.violations) == (1, ()), shown(result)
    if shop.observer != "none":
        assert any(f"{shop.base}/other/x" in hint.line for hint in result.hints), shown(result)


def test_a_link_into_the_host_leads_nowhere(shop: Workspace) -> None:
    make_tree(shop.base, {"other/x": "x\n"})
    (shop.project / "l").symlink_to(f"{shop.base}/other/x")
    result = shop.run("cat l", read=["."], **HERMETIC)
    assert result.stdout == b"", shown(result)


@pytest.mark.parametrize("observer", ["none"])
def test_nobody_has_to_watch(quick_shop: Workspace, observer: str) -> None:
    quick_shop.observer = observer
    assert quick_shop.run("ls /opt /home", **HERMETIC).stdout == b""
