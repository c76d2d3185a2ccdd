"""The spelling of a grant decides about its canonical form."""

from __future__ import annotations

import pytest

from tests.support.memory_files import MemoryFiles
from tests.support.resolved_blocks import resolved_block


def _read(*grants: str) -> tuple[str, ...]:
    return resolved_block({"allow": {"read": list(grants)}}).config.allow_read


def _write(*grants: str) -> tuple[str, ...]:
    return resolved_block({"allow": {"write": list(grants)}}).config.allow_write


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("lib", "/ws/apps/shop/lib/"),
        ("notes.md", "/ws/apps/shop/notes.md"),
        ("missing", "/ws/apps/shop/missing"),
        ("missing/", "/ws/apps/shop/missing/"),
        (".", "/ws/apps/shop/"),
        ("./lib//cart.py", "/ws/apps/shop/lib/cart.py"),
        ("../../base.toml", "/ws/base.toml"),
        ("/ws/base.toml", "/ws/base.toml"),
        ("~", "/home/mel/"),
        ("~/.cache/pip", "/home/mel/.cache/pip/"),
        ("~mel/x", "/ws/apps/shop/~mel/x"),
        ("lib/**", "/ws/apps/shop/lib/"),
        ("lib/**/*", "/ws/apps/shop/lib/"),
        ("**", "/ws/apps/shop/"),
        ("**/*", "/ws/apps/shop/"),
        ("lib/*.py", "/ws/apps/shop/lib/*.py"),
        ("lib/*/", "/ws/apps/shop/lib/*/"),
        ("alias", "/ws/apps/shop/target/"),
        ("alias/not/yet", "/ws/apps/shop/target/not/yet"),
        ("/ws/link/*.py", "/ws/apps/shop/target/*.py"),
        ("out", "/ws/libs/money/src/"),
        ("dangling", "/ws/gone"),
        ("loop", "/ws/apps/shop/loop"),
        (r"\[id\]", r"/ws/apps/shop/\[id\]/"),
        ("[id]", "/ws/apps/shop/[id]"),
        ("/", "/"),
    ],
)
def test_a_read_grant_is_absolute_and_canonical(grant: str, expected: str) -> None:
    assert _read(grant) == (expected,)


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("dist/", "/ws/apps/shop/dist/"),
        ("dist/**", "/ws/apps/shop/dist/"),
        ("dist", "/ws/apps/shop/dist"),
        ("lib/..", "/ws/apps/shop/"),
        ("dist/.", "/ws/apps/shop/dist/"),
        (".", "/ws/apps/shop/"),
        ("gen/*.py", "/ws/apps/shop/gen/*.py"),
        ("alias/", "/ws/apps/shop/target/"),
        ("../../libs/money/src", "/ws/libs/money/src/"),
        ("/ws/libs/money/gen/", "/ws/libs/money/gen/"),
        ("~/.cache/pip", "/home/mel/.cache/pip/"),
        ("~/.newtoolrc", "/home/mel/.newtoolrc"),
    ],
)
def test_a_write_grant_is_a_directory_by_its_spelling_or_where_one_stands_outside_the_project(
    grant: str, expected: str
) -> None:
    assert _write(grant) == (expected,)


@pytest.mark.parametrize("grant", ["out/", "out/new/", "dangling", "dangling/x/", "out/*.py", "./alias/../out/"])
def test_a_write_grant_spelled_inside_the_project_that_lands_outside_is_refused_with_the_place(grant: str) -> None:
    found = resolved_block({"allow": {"write": ["dist/", grant]}})
    assert found.config.allow_write == ("/ws/apps/shop/dist/",)
    (refused,) = found.refusals
    assert refused.refusal.code == "VX301"
    assert refused.path == ("tasks", "t", "exec", "sandbox", "allow", "write", 1)
    assert ("/ws/libs/money/src" if "out" in grant else "/ws/gone") in refused.refusal.message


@pytest.mark.parametrize("grant", ["/ws/apps/shop/out/", "../../libs/money/src/", "../shop/../../libs/money/src/"])
def test_a_write_grant_spelled_outside_on_purpose_is_not_judged_by_the_link_rule(grant: str) -> None:
    assert _write(grant) == ("/ws/libs/money/src/",)


#: Links that a task could leave where it may write.
_PLANTED = MemoryFiles.of(
    "/home/mel/.ssh/id",
    "/vault/netrc",
    "/etc/shadow",
    "/ws/.git/config",
    "/ws/base.toml",
    "/ws/apps/shop/dist/x",
    links={
        "/home/mel/.netrc": "/vault/netrc",
        "/ws/apps/shop/dist/key": "/home/mel/.ssh/id",
        "/ws/apps/shop/dist/keys": "/home/mel/.ssh",
        "/ws/apps/shop/dist/home": "../../../../home/mel",
        "/ws/apps/shop/dist/vault": "/vault",
        "/ws/apps/shop/dist/shadow": "/etc/shadow",
        "/ws/apps/shop/dist/git": "../../../.git",
        "/ws/apps/shop/dist/base": "../../../base.toml",
        "/ws/apps/shop/dist/s.sock": "/run/docker.sock",
        "/ws/apps/shop/dist/run": "/run",
        "/ws/shared": "/home/mel/.ssh",
    },
)


@pytest.mark.parametrize(
    "grant",
    [
        *("dist/key", "dist/keys/", "dist/keys/*", "dist/home/.ssh/id", "dist/home/.netrc", "dist/vault/netrc"),
        *("dist/shadow", "dist/git/config", "/ws/shared/id", "../../shared/", "dist/{x,key}"),
    ],
)
def test_a_link_opens_no_store_no_secret_and_no_repository_to_a_grant_that_does_not_name_it(grant: str) -> None:
    found = resolved_block({"allow": {"read": [grant]}}, files=_PLANTED)
    assert found.config.allow_read == ()
    (refused,) = found.refusals
    assert refused.refusal.code == "VX301"
    assert refused.path == ("tasks", "t", "exec", "sandbox", "allow", "read", 0)


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("~/.ssh/id", "/home/mel/.ssh/id"),
        ("~/.netrc", "/vault/netrc"),
        ("/vault/netrc", "/vault/netrc"),
        ("/etc/shadow", "/etc/shadow"),
        ("../../.git/config", "/ws/.git/config"),
        ("dist/base", "/ws/base.toml"),
        ("dist/home", "/home/mel/"),
    ],
)
def test_a_closed_place_has_to_be_named_itself_and_other_links_are_followed(grant: str, expected: str) -> None:
    found = resolved_block({"allow": {"read": [grant]}}, files=_PLANTED)
    assert (found.config.allow_read, found.refusals) == ((expected,), ())


@pytest.mark.parametrize("entry", ["dist/s.sock", "./dist/s.sock", "dist/run/docker.sock", "/ws/apps/shop/dist/s.sock"])
def test_a_socket_listed_in_the_project_is_none_that_a_link_leads_to(entry: str) -> None:
    found = resolved_block({"allow": {"unixSockets": ["/run/db.sock", "dist/own.sock", entry]}}, files=_PLANTED)
    assert found.config.unix_sockets == ("/run/db.sock", "/ws/apps/shop/dist/own.sock")
    (refused,) = found.refusals
    assert (refused.refusal.code, refused.path[-1]) == ("VX301", 2)
    assert 'grant the place itself, "/run/docker.sock"' in str(refused.refusal.hint)


def test_braces_are_expanded_before_anything_else() -> None:
    assert _read("{notes.md,~/.cache,/ws/base.toml}") == (
        "/ws/apps/shop/notes.md",
        "/home/mel/.cache/",
        "/ws/base.toml",
    )


def test_literal_metacharacters_of_the_project_directory_and_home_are_escaped() -> None:
    files = MemoryFiles.of("/ws/a[1]*{b}/x")
    config = resolved_block({"allow": {"read": ["x", "*.md"]}}, files=files, project="/ws/a[1]*{b}").config
    assert config.allow_read == (r"/ws/a\[1\]\*\{b\}/x", r"/ws/a\[1\]\*\{b\}/*.md")


def test_links_a_grant_is_spelled_through_are_kept() -> None:
    found = resolved_block({"allow": {"read": ["alias/x", "out/*.py"]}})
    assert found.links == (("/ws/apps/shop/alias", "target"), ("/ws/apps/shop/out", "../../libs/money/src"))


def test_ignored_paths_are_anchored_like_grants_and_never_become_directories() -> None:
    ignore = resolved_block(
        {"ignore": {"read": ["lib", "*.env"], "write": ["~/x"], "network": ["a.test:1"]}}
    ).config.ignore
    assert ignore.read == ("/ws/apps/shop/lib", "/ws/apps/shop/*.env")
    assert ignore.write == ("/home/mel/x",)
    assert ignore.network == ("a.test:1",)
