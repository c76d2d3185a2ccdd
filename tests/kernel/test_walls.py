"""What no grant above it opens: the repository, the cache, nested projects, credential stores."""

from __future__ import annotations

import shutil

import pytest

from sandbox import RequestRefused
from tests.conftest import make_tree
from tests.kernel.conftest import Link, Workspace, shown, violated


def test_a_grant_of_the_root_opens_no_wall(mono: Workspace) -> None:
    assert mono.passes("cat src/y sub/plain .vx/other; ls -A . sub .vx", read=["."]) == (
        "y\nplain\nother\n.:\n.vx\nsrc\nsub\n\n.vx:\nother\n\nsub:\nplain\n"
    )
    for walled in ("sub/kit/x", ".git/HEAD", ".vx/cache/entry"):
        result = mono.run(f"cat {walled}", read=["."])
        assert result.exit_code == 1
        assert (result.stdout, b"No such file" in result.stderr) == (b"", True), shown(result)


def test_a_workspace_without_any_wall_is_granted_whole(shop: Workspace) -> None:
    shutil.rmtree(shop.root / ".git")
    shutil.rmtree(shop.root / ".vx")
    for grant in ("../..", "../../", "../../**"):
        assert (
            shop.passes("cat ../../base.toml lib/cart.py; ls ../../libs", read=[grant]) == "base\ncart\ndates\nmoney\n"
        )
    result = shop.run("echo x > ../../libs/new", read=["../.."])
    assert result.exit_code != 0
    assert not (shop.root / "libs" / "new").exists()


def test_only_the_wall_itself_is_missing_from_a_granted_directory(mono: Workspace) -> None:
    assert mono.passes("ls -A sub; cat sub/plain", read=["sub"]) == "plain\nplain\n"


def test_asking_whether_a_wall_is_there_is_silent_and_opening_it_is_not(mono: Workspace) -> None:
    mono.passes("test -e .git || test -d sub/kit || test -e .git/HEAD || true", read=["."])
    result = mono.run("cat .git/HEAD || true", read=["."])
    assert violated(result, mono.root) == [("read", ".git/HEAD")], shown(result)
    assert "wall" in result.violations[0].line


def test_a_task_that_fails_is_told_of_the_wall_it_met(mono: Workspace) -> None:
    result = mono.run("test -e .git", read=["."])
    assert result.exit_code == 1
    assert any(".git" in hint.line for hint in result.hints), shown(result)
    assert result.violations == ()


def test_a_grant_that_names_a_wall_or_something_in_it_opens_that(mono: Workspace) -> None:
    assert mono.passes("cat .git/HEAD; ls -A sub", read=[".", ".git"]) == "ref: refs/heads/main\nplain\n"
    assert mono.passes("cat sub/kit/x; ls -A", read=["sub/kit/x"]) == "x\nsub\n"


@pytest.mark.parametrize("grant", [".", "sub/", ".vx/", "**"])
def test_a_write_grant_that_holds_a_wall_is_refused_naming_it(quick_mono: Workspace, grant: str) -> None:
    with pytest.raises(RequestRefused, match=r"write grant .* holds the (nested project|cache|repository's data)"):
        quick_mono.request(write=[grant])


def test_a_write_grant_inside_a_wall_opens_that_alone(mono: Workspace) -> None:
    mono.passes("echo x > sub/kit/gen/f", write=["sub/kit/gen/"])
    assert (mono.root / "sub/kit/gen/f").read_text() == "x\n"
    result = mono.run("cat sub/kit/x; echo y > sub/kit/y", write=["sub/kit/gen/"])
    assert result.stdout == b""
    assert not (mono.root / "sub/kit/y").exists()


def test_the_cache_is_written_by_no_task(quick_mono: Workspace) -> None:
    for grant in (".vx/cache/", ".vx/cache/x/"):
        with pytest.raises(RequestRefused, match="the cache"):
            quick_mono.request(write=[grant])


def test_a_cache_directory_of_the_run_is_a_wall(shop: Workspace) -> None:
    make_tree(shop.project, {".tc/entry": "kept\n"})
    shop.cache = str(shop.project / ".tc")
    assert shop.passes("ls -A", read=["."]) == "conf\nlib\nnotes.md\n"
    with pytest.raises(RequestRefused, match="the cache directory of the run"):
        shop.request(write=[".tc/"])


def test_a_wall_that_is_a_link_hides_its_name_and_what_it_leads_to(shop: Workspace) -> None:
    make_tree(shop.root, {"apps/shop/real/x": "x\n", "apps/shop/kit": Link("real")})
    shop.nested = (str(shop.project / "kit"),)
    assert "real" not in shop.passes("ls -A", read=["."]).split()


def test_a_link_in_a_readable_directory_is_no_way_into_a_wall(mono: Workspace) -> None:
    make_tree(mono.root, {"src/git": Link("../.git"), "src/kit": Link("../sub/kit")})
    for path in ("src/git/HEAD", "src/kit/x", "src/../sub/kit/x", "sub/../.git/HEAD"):
        result = mono.run(f"cat {path}", read=["."])
        assert (result.exit_code, result.stdout) == (1, b""), path


def test_a_swallowed_write_into_a_wall_changes_nothing_and_counts(mono: Workspace) -> None:
    for command in ("echo x > .git/new", "rm -f .git/HEAD", "mkdir -p sub/kit/new", "mv src .git/"):
        mono.run(f"{command} || true", read=["."])
    assert (mono.root / ".git/HEAD").read_text() == "ref: refs/heads/main\n"
    assert not (mono.root / ".git/new").exists()
    assert [p.name for p in (mono.root / "sub/kit").iterdir()] == ["x"]


STORES = {
    ".ssh/id": "key\n",
    ".npmrc": "token\n",
    ".aws/credentials": "secret\n",
    ".cache/t/s": "state\n",
    ".config/gh/hosts.yml": "gh\n",
    ".config/other": "plain\n",
    ".docker/config.json": "{}\n",
    ".docker/other": "plain\n",
}


def test_credential_stores_are_closed_and_the_rest_of_home_is_open(shop: Workspace) -> None:
    make_tree(shop.home, STORES)
    command = "cat ~/.cache/t/s ~/.config/other ~/.docker/other; "
    result = shop.run(command + "cat ~/.ssh/id ~/.npmrc ~/.aws/credentials ~/.config/gh/hosts.yml", read=["."])
    assert result.stdout == b"state\nplain\nplain\n", shown(result)
    assert result.violations == ()
    for name in ("key", "token", "secret", "gh"):
        assert name not in result.stderr.decode().split()
    # never as an empty file: a tool would take that for a configuration
    assert b"Permission denied" in shop.run("cat ~/.npmrc", read=["."]).stderr
    assert b"Permission denied" in shop.run("cat ~/.docker/config.json", read=["."]).stderr


def test_a_store_is_opened_by_the_grant_that_names_it(shop: Workspace) -> None:
    make_tree(shop.home, STORES)
    assert shop.passes("cat ~/.npmrc", read=[".", "~/.npmrc"]) == "token\n"
    result = shop.run("cat ~/.ssh/id ~/.aws/credentials", read=[".", "~/.npmrc"])
    assert (result.exit_code, result.stdout) == (1, b"")
    # a pattern never reaches into one
    assert shop.run("cat ~/.aws/credentials", read=["~/.a*/credentials", "~/**/credentials"]).stdout == b""


def test_a_store_that_is_a_link_is_closed_at_its_real_place(shop: Workspace) -> None:
    make_tree(shop.base, {"vault/id": "key\n", "home/.ssh": Link("../vault"), "home/.netrc": Link("vaulted")})
    make_tree(shop.home, {"vaulted": "password\n"})
    result = shop.run(f"cat ~/.ssh/id {shop.base}/vault/id ~/.netrc ~/vaulted", read=["."])
    assert (result.exit_code, result.stdout) == (1, b""), shown(result)


def test_a_store_that_holds_the_workspace_is_not_closed(shop: Workspace) -> None:
    root = make_tree(shop.home / ".config" / "gh" / "ws", {"p/lib/x": "x\n"})
    inside = Workspace(shop.session, shop.base, root, root / "p", shop.home, shop.observer)
    assert inside.passes("cat lib/x", read=["lib"]) == "x\n"


def test_a_store_inside_a_writable_directory_is_closed_and_cannot_be_moved(shop: Workspace) -> None:
    make_tree(shop.home, STORES)
    grant = ["~/.config/"]
    shop.passes("echo x > ~/.config/new", write=grant)
    result = shop.run("cat ~/.config/gh/hosts.yml", write=grant)
    assert (result.exit_code, result.stdout) == (1, b"")
    for command in ("mv ~/.config/gh ~/.config/moved", "rm -r ~/.config/gh", "echo x > ~/.config/gh/new"):
        assert shop.run(command, write=grant).exit_code != 0, command
    assert (shop.home / ".config/gh/hosts.yml").read_text() == "gh\n"


def test_writing_to_a_store_is_refused(shop: Workspace) -> None:
    make_tree(shop.home, STORES)
    command = "echo x > ~/.npmrc; echo x > ~/.ssh/new; rm -f ~/.npmrc; rm -rf ~/.ssh; mkdir ~/.gnupg"
    assert shop.run(command, read=["."]).exit_code != 0
    assert {n: (shop.home / n).read_text() for n in STORES} == STORES
    assert not (shop.home / ".gnupg").exists()
