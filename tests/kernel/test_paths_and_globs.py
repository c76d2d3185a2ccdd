"""Which spelling of a read grant opens what."""

from __future__ import annotations

import os

import pytest

from tests.conftest import Tree, make_tree
from tests.kernel.conftest import Link, Workspace, shown, violated


def test_a_relative_grant_is_the_projects_and_may_climb(shop: Workspace) -> None:
    assert shop.passes("cat lib/cart.py ../../base.toml", read=["lib", "../../base.toml"]) == "cart\nbase\n"


def test_a_tilde_is_the_home_directory_and_never_a_name_in_the_project(shop: Workspace) -> None:
    # below home, which is open, a grant is what opens a credential store
    make_tree(shop.home, {".cache/tool/state": "state\n", ".ssh/config": "mine\n"})
    assert shop.passes(f"cat {shop.home}/.cache/tool/state {shop.home}/.ssh/config", read=["~/.ssh"]) == "state\nmine\n"
    assert not (shop.project / "~").exists()


@pytest.mark.parametrize("grant", ["alias", "alias/", "alias/cart.py", "alias/*", "real/"])
def test_a_grant_through_a_link_works_by_both_names(shop: Workspace, grant: str) -> None:
    make_tree(shop.project, {"real/cart.py": "behind\n", "alias": Link("real")})
    assert shop.passes("cat real/cart.py", read=[grant]) == "behind\n"
    if grant != "real/":
        assert shop.passes("readlink alias; cat alias/cart.py", read=[grant]) == "real\nbehind\n"


def test_a_link_nothing_was_granted_through_is_not_there(shop: Workspace) -> None:
    make_tree(shop.project, {"real/cart.py": "behind\n", "alias": Link("real")})
    result = shop.run("readlink alias", read=["real/"])
    assert (result.exit_code, violated(result, shop.project)) == (1, [("read", "alias")]), shown(result)


def test_a_directory_of_a_similar_name_is_not_granted(shop: Workspace) -> None:
    make_tree(shop.project, {"libx/y": "secret\n"})
    result = shop.run("cat libx/y", read=["lib"])
    assert violated(result, shop.project) == [("read", "libx/y")]


@pytest.mark.parametrize("grant", ["**/*", "**", ".", "./"])
def test_every_spelling_of_the_whole_project_lists_and_reads_it(shop: Workspace, grant: str) -> None:
    assert shop.passes("ls . >/dev/null && cat lib/cart.py notes.md", read=[grant]) == "cart\nnotes\n"


def test_a_pattern_below_a_missing_directory_matches_nothing_silently(shop: Workspace) -> None:
    assert shop.passes("cat lib/cart.py", read=["cache/deep/*", "lib/"]) == "cart\n"


def test_a_hit_that_leaves_the_wildcards_directory_through_a_link_is_dropped(shop: Workspace) -> None:
    tree: Tree = {"a.txt": "a\n", "real/f": "f\n", "alias": Link("real"), "out": Link("../../libs/money/src")}
    make_tree(shop.project, tree)
    assert shop.passes("cat a.txt real/f alias/f", read=["*"]) == "a\nf\nf\n"
    result = shop.run("cat out/coin.py", read=["*"])
    assert result.exit_code == 1, shown(result)
    assert result.stdout == b""


@pytest.mark.parametrize(
    ("link", "target", "command", "grants"),
    [
        # what the task makes first, in a directory, under a name, and in the pattern's own directory
        ("lib/made", "../out/made", "echo x > out/made && cat lib/made", {"write": ["out/"]}),
        ("lib/made", "../made.txt", "echo x > made.txt && cat lib/made", {"write": ["made.txt"]}),
        ("lib/made", "new", "echo x > lib/new && cat lib/made", {"write": ["lib/new"]}),
        # what another grant opens
        ("lib/made", "../conf/x", "cat lib/made", {"read": ["conf/x"]}),
        ("lib/made", "../conf", "cat lib/made/x", {"read": ["conf/"]}),
    ],
)
def test_a_link_a_pattern_matches_leads_to_what_another_grant_opens(
    shop: Workspace, link: str, target: str, command: str, grants: dict[str, list[str]]
) -> None:
    if shop.observer == "strace" and not all(grant.endswith("/") for grant in grants.get("write", ())):
        pytest.skip("nothing serves names under strace")
    make_tree(shop.project, {link: Link(target), "conf/x": "x\n", "out": None})
    assert shop.passes(command, read=["lib/*", *grants.get("read", ())], write=grants.get("write", ())) == "x\n"


def test_no_wall_is_a_hit(mono: Workspace) -> None:
    make_tree(mono.root, {"note.txt": "note\n", "sub/kit/deep.txt": "deep\n"})
    command = "cat note.txt sub/plain; ls -a . sub; cat sub/kit/x; cat .git/HEAD; cat sub/kit/deep.txt"
    result = mono.run(command, read=["*", "sub/*", "**/*.txt"])
    assert result.stdout.decode().startswith("note\nplain\n")
    assert b"kit" not in result.stdout
    assert b".git" not in result.stdout
    assert result.exit_code == 1


def test_an_escaped_bracket_is_a_name_and_a_bare_one_a_class(shop: Workspace) -> None:
    make_tree(shop.project, {"pages/[slug].py": "page\n"})
    assert shop.passes("cat 'pages/[slug].py'", read=[r"pages/\[slug\].py"]) == "page\n"
    result = shop.run("cat 'pages/[slug].py'", read=["pages/[slug].py"])
    assert violated(result, shop.project) == [("read", "pages/[slug].py")]


@pytest.mark.parametrize(
    "name", ["a*b.md", "q?.md", "back\\slash", "[id].md", "{x}", "new\nline", "sp ace", "q'\"", "ü"]
)
def test_every_name_can_be_granted(shop: Workspace, name: str) -> None:
    make_tree(shop.project, {f"odd/{name}": "odd\n", "odd/other": "other\n"})
    grant = "odd/" + "".join("\\" + c if c in "\\*?[]{}" else c for c in name)
    result = shop.run('cat "odd/$NAME"; ls -A odd | wc -l', read=[grant], env={"NAME": name})
    # a name with a line break is quoted by ls on a terminal alone
    assert result.stdout.decode() == f"odd\n{1 + name.count(chr(10))}\n", shown(result)
    assert result.exit_code == 0


def test_a_project_below_a_directory_of_an_odd_name_runs(shop: Workspace) -> None:
    for parent in ("w[1]", "w*s", "w?s", "w\\s", "w{a,b}"):
        project = shop.root / parent / "p"
        make_tree(project, {"lib/x": parent})
        odd = Workspace(shop.session, shop.base, shop.root, project, shop.home, shop.observer)
        assert odd.passes("cat lib/x && echo new > out/f", read=["lib/*"], write=["out/"]) == parent


def test_an_escaped_directory_is_granted_with_all_it_holds(shop: Workspace) -> None:
    make_tree(shop.project, {"out/[id]/f": "f\n", "out/i/f": "i\n", "out/[id]x/f": "x\n"})
    for grant in (r"out/\[id\]", r"out/\[id\]/**"):
        assert shop.passes("cat 'out/[id]/f'; ls out", read=[grant]) == "f\n[id]\n"
        result = shop.run("cat out/i/f 'out/[id]x/f'", read=[grant])
        assert violated(result, shop.project) == [("read", "out/i/f"), ("read", "out/[id]x/f")]


def test_braces_are_expanded_first(shop: Workspace) -> None:
    make_tree(shop.project, {"ca.md": "a\n", "cb.md": "b\n", "cc.md": "c\n", "a{b}": "plain\n"})
    assert shop.passes("cat ca.md cb.md", read=["c{a,b}.md"]) == "a\nb\n"
    result = shop.run("cat ca.md cb.md cc.md", read=["c{a,b}.md"])
    assert violated(result, shop.project) == [("read", "cc.md")]
    assert shop.passes("cat 'a{b}'", read=["a{b}"]) == "plain\n"


def test_a_star_stays_in_one_component_and_meets_dotfiles(shop: Workspace) -> None:
    make_tree(shop.project, {"d/.env": "env\n", "d/deep/x": "x\n", "d/f": "f\n"})
    assert shop.passes("cat d/.env d/f d/deep/x", read=["d/*"]) == "env\nf\nx\n"
    result = shop.run("cat d/deep/x", read=["*/f"])
    assert violated(result, shop.project) == [("read", "d/deep/x")]


def test_a_name_that_is_no_text_can_be_granted_by_a_pattern(shop: Workspace) -> None:
    name = b"odd\xff"
    os.makedirs(shop.project / "bytes")
    (shop.project / "bytes" / os.fsdecode(name)).write_bytes(b"bytes\n")
    assert shop.passes("cat bytes/*", read=["bytes/*"]) == "bytes\n"


def test_many_files_of_one_directory_are_granted_one_by_one_and_the_rest_of_it_is_seen(shop: Workspace) -> None:
    make_tree(shop.project, {f"many/{n}.txt": f"{n}\n" for n in range(300)} | {"many/hidden.md": "hidden\n"})
    said = shop.passes("cat many/7.txt many/299.txt; ls many | wc -l", read=["many/*.txt"])
    assert said.split() == ["7", "299", "300"]
    # a listing tells the kernel what is there, and a look at what is not still arrives
    result = shop.run(
        "ls -l many > /dev/null; cat many/hidden.md; cat many/hidden.md; echo x >> many/7.txt", read=["many/*.txt"]
    )
    assert ("read", "many/hidden.md") in violated(result, shop.project), shown(result)
    assert shop.text("many/7.txt") == "7\n"
