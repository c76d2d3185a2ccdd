"""What a profile opens and keeps closed, asked of its text."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.planning.macos.plan_of_request import plan
from sandbox.planning.macos.profile_text import LIMIT, text, weight
from sandbox.request.build import build
from sandbox.request.request import WorkspaceFacts
from tests.support.memory_files import MemoryFiles
from tests.support.seatbelt import Profile

HOME, WS, SHOP, TEMP = "/Users/mel", "/Users/mel/ws", "/Users/mel/ws/apps/shop", "/private/tmp/vx-501"
FACTS = HostFacts(platform="macos", home=HOME, temp_root=TEMP, protected=("/opt/tool",))
TREE = (
    f"{SHOP}/lib/cart.py",
    f"{SHOP}/lib/tax.py",
    f"{SHOP}/notes.md",
    f"{SHOP}/.git/",
    f"{WS}/.git/HEAD",
    f"{WS}/.vx/cache/x",
    f"{WS}/libs/money/src/coin.py",
    f"{HOME}/.ssh/id",
    f"{HOME}/notes",
)


def _profile(
    *more: str,
    read: tuple[str, ...] = (),
    write: tuple[str, ...] = (),
    project: str = SHOP,
    nested: tuple[str, ...] = (),
    ports: tuple[int, ...] = (),
    **fields: Any,
) -> Profile:
    files = MemoryFiles.of(*TREE, *more)
    config = ResolvedSandboxConfig(
        platform="macos", workspace=WS, project=project, allow_read=read, allow_write=write, **fields
    )
    request = build(config, WorkspaceFacts(root=WS, nested=nested), files=files, facts=FACTS)
    return Profile.of(text(plan(request, files, temp=f"{TEMP}/task-1", ports=ports)))


def _reads(profile: Profile, path: str, **how: bool) -> bool:
    return profile.allows("file-read-data", path, **how)


def _writes(profile: Profile, path: str) -> bool:
    return all(profile.allows(f"file-write-{what}", path) for what in ("data", "create", "unlink"))


def test_nothing_granted_is_nothing_read_in_the_workspace_and_everything_outside() -> None:
    profile = _profile()
    for path in (f"{SHOP}/notes.md", f"{WS}/libs", f"{WS}/new", f"{HOME}/.ssh/id", f"{TEMP}/task-2"):
        assert not _reads(profile, path), path
        assert not profile.allows("file-read-metadata", path), path
    for path in ("/etc/hosts", f"{HOME}/notes", "/", "/usr/bin/env", f"{TEMP}/task-1/x"):
        assert _reads(profile, path), path
    assert not _writes(profile, f"{HOME}/notes")
    assert _writes(profile, f"{TEMP}/task-1/x")


def test_directories_on_the_way_are_listed_and_the_root_is_only_looked_at() -> None:
    profile = _profile(read=(f"{WS}/libs/*/src/coin.py",))
    for way in (SHOP, f"{WS}/apps", f"{WS}/libs", f"{WS}/libs/money", f"{WS}/libs/other/src"):
        assert _reads(profile, way, directory=True), way
    assert not _reads(profile, f"{WS}/libs/notes.md")
    assert profile.allows("file-read-metadata", WS, directory=True)
    assert not _reads(profile, WS, directory=True)


def test_a_pattern_covers_what_is_made_later_and_what_is_in_its_matches() -> None:
    profile = _profile(read=(f"{SHOP}/lib/*.py",), write=(f"{SHOP}/.*.tmp", f"{SHOP}/out/"))
    assert _reads(profile, f"{SHOP}/lib/new.py")
    assert not _reads(profile, f"{SHOP}/lib/new.txt")
    for path in (".k.tmp", ".k.tmp/f", ".k.tmp/d/f", "out", "out/a/b"):
        assert _writes(profile, f"{SHOP}/{path}"), path
    assert not _writes(profile, f"{SHOP}/k.tmp/f")


def test_an_escaped_bracket_names_one_path() -> None:
    profile = _profile(read=(f"{SHOP}/pages/\\[id\\].tsx", f"{SHOP}/a\\*.txt"))
    assert _reads(profile, f"{SHOP}/pages/[id].tsx")
    assert not _reads(profile, f"{SHOP}/pages/i.tsx")
    assert _reads(profile, f"{SHOP}/a*.txt")
    assert not _reads(profile, f"{SHOP}/ab.txt")
    assert not _reads(profile, f"{SHOP}/a\\bc.txt")


def test_write_grants_of_names_stay_exact() -> None:
    profile = _profile(write=(f"{SHOP}/out/a.bin", f"{SHOP}/out/b.bin"))
    assert _writes(profile, f"{SHOP}/out/a.bin")
    assert not _writes(profile, f"{SHOP}/out/c.bin")


@pytest.mark.parametrize("read", [(f"{WS}/",), (f"{WS}/**/*.py", f"{WS}/**/HEAD")])
def test_walls_outrank_grants_above_them(read: tuple[str, ...]) -> None:
    profile = _profile(f"{WS}/sub/kit/x.py", project=WS, nested=(f"{WS}/sub/kit",), read=read)
    assert _reads(profile, f"{WS}/libs/money/src/coin.py")
    for path in (f"{WS}/.git/HEAD", f"{WS}/.vx/cache/x", f"{WS}/sub/kit/x.py", f"{WS}/.git", f"{WS}/sub/kit"):
        assert not _reads(profile, path), path
    assert _reads(profile, f"{WS}/sub", directory=True)


def test_a_grant_that_names_a_wall_or_something_in_it_is_the_authors_choice() -> None:
    profile = _profile(
        f"{WS}/pk/b/src/x.ts",
        project=WS,
        nested=(f"{WS}/pk/b",),
        read=(f"{WS}/**/*.ts", f"{WS}/pk/b/src/", f"{WS}/.git/"),
    )
    assert _reads(profile, f"{WS}/pk/b/src/x.ts")
    assert not _reads(profile, f"{WS}/pk/b/y.ts")
    assert _reads(profile, f"{WS}/.git/HEAD")
    assert not _writes(profile, f"{WS}/.git/HEAD")


def test_a_pattern_of_names_reaches_no_wall() -> None:
    profile = _profile(f"{WS}/o/c/x", project=WS, nested=(f"{WS}/o/c",), write=(f"{WS}/o/*", f"{WS}/o/c/gen/"))
    assert _writes(profile, f"{WS}/o/x")
    assert not _writes(profile, f"{WS}/o/c/x")
    assert not _writes(profile, f"{WS}/o/c")
    assert _writes(profile, f"{WS}/o/c/gen/x")


@pytest.mark.parametrize("spelling", [".git", ".GIT", ".Git", ".g\u0131t".replace("\u0131", "i")])
def test_no_spelling_opens_a_wall(spelling: str) -> None:
    profile = _profile(project=WS, read=(f"{WS}/",), write=(f"{WS}/gen/*",))
    assert not _reads(profile, f"{WS}/{spelling}/HEAD")
    assert not _reads(_profile(), "/users/MEL/Ws/apps/shop/notes.md")


def test_closed_walls_stay_closed_however_they_are_spelled() -> None:
    profile = _profile(write=(f"{WS}/.VX/cache/",))
    assert not _writes(profile, f"{WS}/.VX/cache/x")


def test_names_other_programs_execute_are_not_written_and_not_moved() -> None:
    profile = _profile(f"{SHOP}/gen/.git/hooks/x", write=(f"{SHOP}/gen/", f"{SHOP}/other/"))
    for path in (".bashrc", "a/b/.BASHRC", ".vscode/x", ".git/hooks/x", ".git/config", ".gIt/HOOKS", ".mcp.json"):
        assert not profile.allows("file-write-create", f"{SHOP}/gen/{path}"), path
        assert not profile.allows("file-write-data", f"{SHOP}/gen/{path}"), path
    assert _writes(profile, f"{SHOP}/gen/.git/index")
    for path in ("gen/.git", "other/.git", "other/.claude"):
        assert not profile.allows("file-write-unlink", f"{SHOP}/{path}"), path
        assert not profile.allows("file-write-create", f"{SHOP}/{path}"), path
    open_ = _profile(write=(f"{SHOP}/gen/",), git_config=True)
    assert _writes(open_, f"{SHOP}/gen/.git/config")
    assert not _writes(open_, f"{SHOP}/gen/.git/hooks/x")


def test_a_store_opens_for_what_is_named_in_it() -> None:
    profile = _profile(read=(f"{HOME}/", f"{HOME}/.ssh/known_hosts"))
    assert _reads(profile, f"{HOME}/.ssh/known_hosts")
    assert not _reads(profile, f"{HOME}/.ssh/id")
    assert not _reads(profile, f"{HOME}/.ssh", directory=True)


def test_a_hermetic_task_finds_the_system_and_its_grants() -> None:
    profile = _profile(hermetic=True, read=(f"{HOME}/notes",))
    for path in ("/usr/lib/dyld", "/System/Library/x", "/bin/sh", "/private/etc/hosts", f"{HOME}/notes", "/"):
        assert _reads(profile, path), path
    for path in (HOME, "/opt/homebrew/bin/node", "/private/var/db/x", "/Applications/Xcode.app", "/Volumes/x"):
        assert not _reads(profile, path), path


def test_the_front_is_reached_at_its_own_ports_and_nothing_else() -> None:
    profile = _profile(network=("example.org",), ports=(50_123, 50_124))
    for host in ("localhost", "127.0.0.1", "::1"):
        assert profile.allows("network-outbound", f"{host}:50123")
        assert not profile.allows("network-outbound", f"{host}:50125")
    for target in ("1.2.3.4:443", "example.org:443"):
        assert not profile.allows("network-outbound", target)
    assert not profile.allows("network-bind", "localhost:0")


def test_a_granted_loopback_port_is_reached_and_the_proxy_settings_are_read() -> None:
    profile = _profile(network=("localhost:4173",))
    assert profile.allows("network-outbound", "localhost:4173")
    assert not profile.allows("network-outbound", "localhost:4174")
    assert profile.allows("mach-lookup", "com.apple.SystemConfiguration.configd")
    assert not _profile().allows("mach-lookup", "com.apple.SystemConfiguration.configd")


@pytest.mark.parametrize("binding", [True, (8000,)])
def test_binding_opens_loopback_wide_whatever_is_listed(binding: object) -> None:
    profile = _profile(local_binding=binding)
    assert profile.allows("network-bind", "*:0")
    assert profile.allows("network-inbound", "127.0.0.1:51000")
    assert profile.allows("network-outbound", "localhost:1")
    assert not profile.allows("network-outbound", "10.0.0.1:1")
    assert not any("network" in op for rule in _profile().rules for op in rule.operations if "ip" in str(rule.filters))


def test_sockets_open_by_path_and_a_tasks_own_always() -> None:
    closed = _profile(write=(f"{SHOP}/gen/",))
    for path, allowed in (
        ("/private/var/run/docker.sock", False),
        (f"{TEMP}/task-1/s", True),
        (f"{SHOP}/gen/s", True),
        (f"{TEMP}/task-2/s", False),
    ):
        assert closed.allows("network-outbound", path) is allowed, path
        assert closed.allows("network-bind", path) is allowed, path
    listed = _profile(unix_sockets=("/p/x.sock",))
    assert listed.allows("network-outbound", "/p/x.sock")
    assert not listed.allows("network-outbound", "/p/y.sock")
    assert _profile(unix_sockets=True).allows("network-outbound", "/anything")
    assert not _profile(unix_sockets=True).allows("network-outbound", "1.2.3.4:443")


def test_system_information_and_services_by_name() -> None:
    profile = _profile(system_info=("hw.optional.neon",), mach_lookup=("com.acme.x",), weaker_network_isolation=True)
    assert profile.allows("system-info", "hw.optional.neon")
    assert profile.allows("sysctl-read", "hw.optional.neon")
    assert profile.allows("mach-lookup", "com.acme.x")
    assert profile.allows("mach-lookup", "com.apple.trustd.agent")
    bare = _profile()
    for operation, name in (
        ("system-info", "hw.optional.neon"),
        ("sysctl-read", "hw.optional.neon"),
        ("mach-lookup", "com.acme.x"),
        ("mach-lookup", "com.apple.trustd.agent"),
        ("sysctl-read", "kern.procargs2"),
    ):
        assert not bare.allows(operation, name)


def test_a_terminal_of_its_own() -> None:
    assert _profile(pty=True).allows("pseudo-tty")
    assert _profile(pty=True).allows("file-ioctl", "/dev/ttys004")
    assert _profile(pty=True).allows("file-write-data", "/dev/ptmx")
    for profile in (_profile(), _profile(pty=True), _profile(hermetic=True)):
        assert not profile.allows("file-read-data", "/dev/ttys004")
    assert _profile(pty=True).allows("file-write-data", "/dev/tty")
    assert not _profile().allows("pseudo-tty")
    assert not _profile().allows("file-ioctl", "/dev/ttys004")


def test_no_terminal_of_somebody_else_is_opened_for_writing() -> None:
    profile = _profile(pty=True)
    assert not profile.allows("file-write-data", "/dev/ttys004")
    made = [
        rule
        for rule in profile.rules
        if any(one[0] == "require-all" and "com.apple.sandbox.pty" in str(one) for one in rule.filters)
    ]
    assert [rule.operations for rule in made] == [("file-read*", "file-write*", "file-ioctl")]


@pytest.mark.parametrize("field", ["system_info", "mach_lookup"])
@pytest.mark.parametrize("name", ['a"b', "a)", "a b", "", "a\n"])
def test_a_name_that_is_none_is_refused_by_field_and_value(field: str, name: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        _profile(**{field: (name,)})  # type: ignore[arg-type]
    (one,) = refused.value.refusals
    assert one.field in {"systemInfo[0]", "machLookup[0]"}
    assert repr(name) in one.message


def test_no_program_is_started_outside_the_walls() -> None:
    everything = _profile(
        read=(f"{WS}/",), write=(f"{SHOP}/gen/",), pty=True, unix_sockets=True, local_binding=True, network=("a.test",)
    )
    for profile in (everything, _profile(), _profile(hermetic=True)):
        for operation in ("lsopen", "appleevent-send", "job-creation", "mach-register", "file-link", "file-mount"):
            assert not profile.allows(operation, "anything")
        asked = " ".join(profile.strings()).lower()
        for word in ("launchservices", "coreservices", "lsd.", "securityd", "pasteboard", "appleevents", "tccd"):
            assert word not in asked
        assert not profile.allows("mach-lookup", "com.apple.coreservices.launchservicesd")


def test_what_nothing_says_anything_about_is_denied() -> None:
    profile = _profile()
    for operation in ("nvram-set", "device-camera", "system-fsctl", "ipc-sysv-shm", "default"):
        assert not profile.allows(operation, "x")


def _many(count: int, length: int = 40) -> tuple[str, ...]:
    return tuple(f"{SHOP}/lib/{index:05}{'x' * length}.py" for index in range(count))


def test_a_long_profile_spells_a_directory_once() -> None:
    files = _many(900)
    config = ResolvedSandboxConfig(platform="macos", workspace=WS, project=SHOP, allow_read=files)
    tree = MemoryFiles.of(*TREE, *files)
    request = build(config, WorkspaceFacts(root=WS), files=tree, facts=FACTS)
    found = plan(request, tree)
    assert weight(found.rules) > LIMIT
    profile = Profile.of(text(found))
    assert len(profile.rules) < 60
    assert all(_reads(profile, path) for path in files)
    assert not _reads(profile, f"{SHOP}/lib/cart.py")
    assert not _reads(profile, files[0] + "x")


def test_one_that_is_too_long_all_the_same_is_refused_with_the_remedy() -> None:
    with pytest.raises(RequestRefused, match=r"the compiler of macOS takes") as refused:
        _profile(read=_many(900, 100))
    assert "trailing slash" in refused.value.refusals[0].hint
