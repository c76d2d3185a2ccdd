from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.base.globs import escape
from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import Reach
from sandbox.contract.errors import RequestRefused
from sandbox.planning.operations import Bind, Cover, Empty, Link, Make, Operation, Origin, ReadOnlyRoot, Seal, Way
from tests.support.memory_files import MemoryFiles
from tests.support.plans import HOME, placed_in, planned

if TYPE_CHECKING:
    from sandbox.planning.path_reach import Plan

HIDDEN, READ, WRITE = Reach.HIDDEN, Reach.READ, Reach.WRITE

SHOP = (
    "/ws/.git/HEAD",
    "/ws/.vx/cache/x",
    "/ws/base.toml",
    "/ws/apps/shop/lib/cart.py",
    "/ws/apps/shop/lib/tax.py",
    "/ws/apps/shop/notes.md",
    "/ws/libs/money/src/coin.py",
)
MONO = ("/mono/.git/HEAD", "/mono/.vx/cache/x", "/mono/.vx/other", "/mono/src/y", "/mono/sub/kit/x", "/mono/sub/z")


def mono(*names: str, links: dict[str, str] | None = None, **given: Any) -> tuple[Plan, MemoryFiles]:
    files = MemoryFiles.of(*MONO, *names, links=links)
    return planned(files, workspace="/mono", project="/mono", nested=["/mono/sub/kit"], **given), files


def shop(*names: str, links: dict[str, str] | None = None, **given: Any) -> tuple[Plan, MemoryFiles]:
    files = MemoryFiles.of(*SHOP, *names, links=links)
    return planned(files, **given), files


def of_kind(plan: Plan, kind: type[Operation]) -> list[str]:
    return [operation.path for operation in plan.operations if type(operation) is kind]


def binds(plan: Plan) -> list[tuple[str, bool]]:
    return [(o.path, o.writable) for o in plan.operations if isinstance(o, Bind)]


# the baseline


def test_without_a_grant_the_workspace_is_covered_and_only_the_projects_directory_exists() -> None:
    plan, files = shop()
    assert plan.describe() == (
        "show / read-only",
        "cover /ws: only what is placed in it exists",
        "show directory /ws/apps with only what is placed in it",
        "show directory /ws/apps/shop with only what is placed in it",
    )
    assert plan.access("/ws/apps/shop", files) is READ
    assert plan.access("/ws/apps/shop/notes.md", files) is HIDDEN
    assert plan.access("/ws/base.toml", files) is HIDDEN
    assert plan.access("/etc/hostname", files) is READ


def test_granting_the_project_opens_no_sibling() -> None:
    plan, files = shop(read=("/ws/apps/shop/",))
    assert plan.access("/ws/apps/shop/notes.md", files) is READ
    assert plan.access("/ws/apps/shop/../../libs/money/src/coin.py", files) is HIDDEN
    assert plan.access("/ws/libs", files) is HIDDEN


def test_a_file_of_the_root_can_be_granted_by_name() -> None:
    plan, files = shop(read=("/ws/apps/shop/", "/ws/base.toml"))
    assert plan.access("/ws/apps/shop/../../base.toml", files) is READ
    assert ("/ws/base.toml", False) in binds(plan)


def test_one_granted_file_has_a_way_and_no_siblings() -> None:
    plan, files = shop(read=("/ws/apps/shop/lib/cart.py",))
    assert placed_in(plan, "/ws/apps/shop") == ("lib",)
    assert placed_in(plan, "/ws/apps/shop/lib") == ("cart.py",)
    assert plan.access("/ws/apps/shop/lib/tax.py", files) is HIDDEN
    assert plan.access("/ws/apps/shop/lib", files) is READ


# layering


def test_a_write_grant_lies_over_a_read_grant_and_is_made() -> None:
    plan, files = shop(read=("/ws/apps/shop/",), write=("/ws/apps/shop/out/deep/",))
    assert plan.operations[0] == Make(path="/ws/apps/shop/out/deep", origin=Origin(field="allowWrite[0]"))
    assert binds(plan) == [("/ws/apps/shop", False), ("/ws/apps/shop/out/deep", True)]
    assert plan.access("/ws/apps/shop/out/deep/m", files) is WRITE
    assert plan.access("/ws/apps/shop/out", files) is READ


def test_an_existing_directory_is_not_made() -> None:
    plan, _ = shop("/ws/apps/shop/out/", write=("/ws/apps/shop/out/", "/ws/apps/shop/cov/**"))
    assert of_kind(plan, Make) == ["/ws/apps/shop/cov"]
    assert binds(plan) == [("/ws/apps/shop/cov", True), ("/ws/apps/shop/out", True)]


@pytest.mark.parametrize(
    ("read", "write", "expected"),
    [
        (("/ws/apps/shop/", "/ws/apps/shop/lib/"), (), [("/ws/apps/shop", False)]),
        (("/ws/apps/shop/lib/cart.py",), ("/ws/apps/shop/lib/",), [("/ws/apps/shop/lib", True)]),
        (("/ws/apps/shop/lib/",), ("/ws/apps/shop/lib/",), [("/ws/apps/shop/lib", True)]),
        ((), ("/ws/apps/shop/lib/", "/ws/apps/shop/lib/sub/"), [("/ws/apps/shop/lib", True)]),
        (("/etc/", "/etc/hosts"), (), []),
    ],
)
def test_a_bind_that_adds_nothing_is_left_out(
    read: tuple[str, ...], write: tuple[str, ...], expected: list[tuple[str, bool]]
) -> None:
    plan, _ = shop("/etc/hosts", read=read, write=write)
    assert binds(plan) == expected


def test_one_path_granted_and_implied_is_bound_once_for_the_grant() -> None:
    plan, _ = shop("/ws/node_modules/", read=("/ws/node_modules/", "/ws/node_modules/"))
    assert binds(plan) == [("/ws/node_modules", False)]
    assert plan.decided_by("/ws/node_modules/x").origin == Origin(field="allowRead[0]")


def test_outside_the_project_a_directory_or_file_is_bound_as_it_stands() -> None:
    plan, files = shop("/else/d/", "/else/f", write=("/else/d", "/else/f", "/else/new/"))
    assert binds(plan) == [("/else/d", True), ("/else/f", True), ("/else/new", True)]
    assert of_kind(plan, Make) == ["/else/new"]
    assert plan.access("/else/d/x", files) is WRITE
    assert plan.access("/else", files) is READ


# walls


def test_a_read_grant_around_walls_shows_everything_but_them() -> None:
    plan, files = mono(read=("/mono/",))
    assert placed_in(plan, "/mono") == (".vx", "src", "sub")
    assert placed_in(plan, "/mono/sub") == ("z",)
    assert placed_in(plan, "/mono/.vx") == ("other",)
    assert of_kind(plan, Way) == ["/mono/.vx", "/mono/sub"]
    assert [plan.access(f"/mono/{name}", files) for name in (".git", ".git/HEAD", "sub/kit/x", ".vx/cache/x")] == (
        [HIDDEN] * 4
    )
    assert [plan.access(f"/mono/{name}", files) for name in ("src/y", "sub/z", ".vx/other")] == [READ] * 3


def test_a_grant_on_the_directory_of_a_wall_shows_the_others_in_it() -> None:
    plan, _ = mono(read=("/mono/sub/",))
    assert placed_in(plan, "/mono/sub") == ("z",)


def test_a_grant_naming_a_wall_or_something_in_one_opens_just_that() -> None:
    plan, files = mono("/mono/sub/kit/src/a", read=("/mono/", "/mono/sub/kit/src/", "/mono/.git/HEAD"))
    assert plan.access("/mono/sub/kit/src/a", files) is READ
    assert plan.access("/mono/sub/kit/x", files) is HIDDEN
    assert placed_in(plan, "/mono/.git") == ("HEAD",)
    whole, files = mono(read=("/mono/", "/mono/.git/"))
    assert whole.access("/mono/.git/HEAD", files) is READ


def test_a_write_grant_inside_a_wall_opens_just_that() -> None:
    plan, files = mono(read=("/mono/",), write=("/mono/sub/kit/gen/",))
    assert plan.access("/mono/sub/kit/gen/x", files) is WRITE
    assert plan.access("/mono/sub/kit/x", files) is HIDDEN
    assert plan.access("/mono/sub/z", files) is READ


def test_walls_that_do_not_exist_leave_a_grant_whole() -> None:
    files = MemoryFiles.of("/mono/src/y", "/mono/.vx/cache/", "/mono/.vx/tmp/")
    plan = planned(files, workspace="/mono", project="/mono", read=("/mono/src/",), nested=["/mono/src/none"])
    assert binds(plan) == [("/mono/src", False)]


def test_a_cache_that_is_made_later_does_not_come_into_sight() -> None:
    files = MemoryFiles.of("/mono/src/y", "/mono/sub/x")
    plan = planned(files, workspace="/mono", project="/mono", read=("/mono/",), cache_dir="/mono/sub/made/later")
    assert binds(plan) == [("/mono/src", False), ("/mono/sub/x", False)]


def test_hits_of_a_pattern_stop_at_walls() -> None:
    plan, files = mono("/mono/a.txt", "/mono/sub/kit/b.txt", read=("/mono/*", "/mono/sub/*", "/mono/**/*.txt"))
    for name in (".git", ".git/HEAD", "sub/kit", "sub/kit/x", "sub/kit/b.txt"):
        assert plan.access(f"/mono/{name}", files) is HIDDEN, name
    for name in ("a.txt", "src/y", "sub/z"):
        assert plan.access(f"/mono/{name}", files) is READ, name


def test_an_escaped_name_is_walled_as_a_plain_one_is() -> None:
    files = MemoryFiles.of("/ws/p/pk/[old]/src/f", "/ws/p/pk/old/src/f")
    nested = ["/ws/p/pk/[old]", "/ws/p/pk/old"]
    plan = planned(
        files,
        project="/ws/p",
        nested=nested,
        read=("/ws/p/", r"/ws/p/pk/\[old\]/src/", "/ws/p/pk/old/src/"),
    )
    for wall in nested:
        assert plan.access(f"{wall}/src/f", files) is READ
        assert placed_in(plan, wall) == ("src",)


def test_a_presented_directory_shows_links_as_links_and_no_sockets() -> None:
    plan, files = mono("/mono/s=", links={"/mono/l": "src", "/mono/far": "/nowhere"}, read=("/mono/",))
    links = {o.path: o.target for o in plan.operations if isinstance(o, Link)}
    assert links == {"/mono/l": "src", "/mono/far": "/nowhere"}
    assert plan.access("/mono/l/y", files) is READ
    assert plan.access("/mono/s", files) is HIDDEN


# patterns and names


def test_a_pattern_grants_its_hits_and_drops_those_that_leave() -> None:
    plan, files = shop(
        "/ws/apps/shop/a.txt",
        "/ws/apps/shop/real/f",
        links={"/ws/apps/shop/alias": "real", "/ws/apps/shop/out": "../../libs/money/src"},
        read=("/ws/apps/shop/*",),
    )
    for name in ("a.txt", "real/f", "alias/f", "lib/cart.py"):
        assert plan.access(f"/ws/apps/shop/{name}", files) is READ, name
    assert "out" not in placed_in(plan, "/ws/apps/shop")
    assert plan.access("/ws/apps/shop/out/coin.py", files) is HIDDEN


def test_braces_in_a_grant_stand_for_each_name() -> None:
    names = ("/ws/apps/shop/ca.md", "/ws/apps/shop/cb.md", "/ws/apps/shop/cc.md")
    plan, files = shop(*names, read=("/ws/apps/shop/c{a,b}.md",))
    assert [plan.access(name, files) for name in names] == [READ, READ, HIDDEN]


def test_a_hit_reached_through_links_works_by_both_names() -> None:
    plan, files = shop(links={"/ws/apps/shop/one": "two", "/ws/apps/shop/two": "lib"}, read=("/ws/apps/shop/on*",))
    assert [o.path for o in plan.operations if isinstance(o, Link)] == ["/ws/apps/shop/one", "/ws/apps/shop/two"]
    assert plan.access("/ws/apps/shop/one/cart.py", files) is READ
    assert plan.access("/ws/apps/shop/lib/cart.py", files) is READ


def test_a_grant_spelled_through_a_link_works_by_both_names() -> None:
    files = MemoryFiles.of(*SHOP, "/ws/apps/shop/real/", links={"/ws/apps/shop/gen": "real"})
    plan = planned(files, write=("/ws/apps/shop/real/",), links=[("/ws/apps/shop/gen", "real")])
    assert plan.access("/ws/apps/shop/gen/x", files) is WRITE
    assert of_kind(plan, Link) == ["/ws/apps/shop/gen"]


def test_a_link_a_bind_shows_anyway_is_not_placed() -> None:
    files = MemoryFiles.of(*SHOP, links={"/ws/apps/shop/l": "lib"})
    plan = planned(files, read=("/ws/apps/shop/",), links=[("/ws/apps/shop/l", "lib")])
    assert of_kind(plan, Link) == []
    assert plan.access("/ws/apps/shop/l/cart.py", files) is READ


def test_a_literal_bracket_is_granted_escaped_and_not_as_a_class() -> None:
    names = ("/ws/apps/shop/pages/[slug].py", "/ws/apps/shop/pages/s.py")
    plan, files = shop(*names, read=(r"/ws/apps/shop/pages/\[slug\].py",))
    assert [plan.access(name, files) for name in names] == [READ, HIDDEN]
    plan, files = shop(*names, read=("/ws/apps/shop/pages/[slug].py",))
    assert [plan.access(name, files) for name in names] == [HIDDEN, READ]


@pytest.mark.parametrize("tail", ["", "/", "/**"])
def test_an_escaped_directory_is_granted_whole(tail: str) -> None:
    plan, files = shop("/ws/apps/shop/out/[id]/f", "/ws/apps/shop/out/i", read=(rf"/ws/apps/shop/out/\[id\]{tail}",))
    assert plan.access("/ws/apps/shop/out/[id]/f", files) is READ
    assert plan.access("/ws/apps/shop/out/i", files) is HIDDEN


def test_names_full_of_metacharacters_are_bound_as_they_are() -> None:
    names = ["a*b.md", "q?.md", "b\\c.md", "[id].md", "{x,y}.md", "two words", "n\nl", "caf\udce9"]
    plan, files = shop(
        *(f"/ws/apps/shop/{name}" for name in names), read=tuple(escape(f"/ws/apps/shop/{name}") for name in names)
    )
    assert placed_in(plan, "/ws/apps/shop") == tuple(sorted(names))
    assert all("\n" not in line for line in plan.describe())
    assert plan.access("/ws/apps/shop/a*b.md", files) is READ


def test_grants_that_name_nothing_are_inert() -> None:
    plan, _ = shop(
        links={"/ws/apps/shop/gone": "nothing", "/ws/apps/shop/l": "l"},
        read=("/ws/none", "/ws/apps/shop/cache/deep/*", "/ws/apps/shop/notes.md/", "/ws/apps/shop/l", "/ws/base.toml"),
    )
    assert plan.inert == (
        ("allowRead[0]", "/ws/none"),
        ("allowRead[1]", "/ws/apps/shop/cache/deep/*"),
        ("allowRead[2]", "/ws/apps/shop/notes.md"),
        ("allowRead[3]", "/ws/apps/shop/l"),
    )
    assert binds(plan) == [("/ws/base.toml", False)]


def test_a_socket_is_bound_when_named_and_never_by_a_pattern() -> None:
    plan, files = shop("/ws/apps/shop/s=", read=("/ws/apps/shop/s",))
    assert plan.access("/ws/apps/shop/s", files) is READ
    plan, files = shop("/ws/apps/shop/s=", read=("/ws/apps/shop/?",))
    assert plan.access("/ws/apps/shop/s", files) is HIDDEN
    assert plan.inert == (("allowRead[0]", "/ws/apps/shop/?"),)


def test_a_read_grant_with_a_link_planted_in_it_is_refused() -> None:
    files = MemoryFiles.of(*SHOP, links={"/ws/apps/shop/l": "/ws/.git", "/ws/apps/shop/m": "/ws/libs"})
    with pytest.raises(RequestRefused) as caught:
        planned(files, read=("/ws/apps/shop/l/", "/ws/apps/shop/m/*"))
    assert [(r.code, r.field) for r in caught.value.refusals] == [("VX314", "allowRead[0]"), ("VX314", "allowRead[1]")]


def test_a_pattern_too_wide_to_look_at_is_refused_with_its_field() -> None:
    files = MemoryFiles.of(*SHOP)
    with pytest.raises(RequestRefused) as caught:
        planned(files, read=("/ws/", "/ws/{1..9999}"))
    assert [(r.code, r.field) for r in caught.value.refusals] == [("VX313", "allowRead[1]")]


# credential stores and temporary directories

STORED = (
    f"{HOME}/.ssh/id",
    f"{HOME}/.ssh/config",
    f"{HOME}/.npmrc",
    f"{HOME}/.config/gh/hosts",
    f"{HOME}/.config/app/x",
    f"{HOME}/.cache/t/s",
)


def test_stores_are_closed_and_their_neighbours_are_not() -> None:
    plan, files = shop(*STORED, read=("/ws/apps/shop/",))
    assert of_kind(plan, Cover) == [HOME, "/ws"]
    assert of_kind(plan, Empty) == [f"{HOME}/.config/gh", f"{HOME}/.ssh"]
    assert of_kind(plan, Seal) == [f"{HOME}/.npmrc"]
    assert plan.access(f"{HOME}/.npmrc", files) is HIDDEN
    assert plan.access(f"{HOME}/.ssh", files) is READ
    assert plan.access(f"{HOME}/.ssh/id", files) is HIDDEN
    assert plan.access(f"{HOME}/.config/gh/hosts", files) is HIDDEN
    assert plan.access(f"{HOME}/.config/app/x", files) is READ
    assert plan.access(f"{HOME}/.cache/t/s", files) is READ


def test_only_the_directory_of_a_store_is_covered() -> None:
    plan, _ = shop(f"{HOME}/.config/gh/hosts", f"{HOME}/.config/app/x", f"{HOME}/notes")
    assert of_kind(plan, Cover) == [f"{HOME}/.config", "/ws"]


def test_a_grant_opens_the_store_it_names_or_just_what_it_names_in_one() -> None:
    plan, files = shop(*STORED, read=(f"{HOME}/.npmrc", f"{HOME}/.ssh/config"))
    assert plan.access(f"{HOME}/.npmrc", files) is READ
    assert plan.access(f"{HOME}/.ssh/config", files) is READ
    assert plan.access(f"{HOME}/.ssh/id", files) is HIDDEN
    plan, files = shop(*STORED, write=(f"{HOME}/.ssh/",))
    assert plan.access(f"{HOME}/.ssh/id", files) is WRITE
    assert plan.access(f"{HOME}/.npmrc", files) is HIDDEN


def test_only_a_directory_that_must_be_is_shown_entry_by_entry() -> None:
    auth = f"{HOME}/.config/containers/auth.json"
    root = f"{HOME}/code/ws"
    files = MemoryFiles.of(*STORED[2:3], auth, f"{HOME}/.config/app/x", f"{root}/p/", f"{root}/.git/HEAD")
    plan = planned(
        files, workspace=root, project=f"{root}/p", read=(f"{root}/",), write=(f"{HOME}/.config/containers/",)
    )
    # a writable directory is bound whole and its store laid over; a wall of the workspace is the workspace's matter
    assert (f"{HOME}/.config", False) in binds(plan)
    assert (f"{HOME}/code", False) in binds(plan)
    assert of_kind(plan, Seal) == [auth, f"{HOME}/.npmrc"]
    assert plan.access(auth, files) is HIDDEN


def test_a_directory_to_be_made_in_a_covered_home_is_bound_there() -> None:
    plan, files = shop(*STORED, write=(f"{HOME}/.new/deep/",))
    assert of_kind(plan, Make) == [f"{HOME}/.new/deep"]
    assert plan.access(f"{HOME}/.new/deep/x", files) is WRITE
    assert plan.access(f"{HOME}/.npmrc", files) is HIDDEN
    assert (f"{HOME}/.new", False) in binds(plan)


def test_a_grant_above_a_store_or_a_pattern_does_not_open_it() -> None:
    plan, files = shop(*STORED, read=(f"{HOME}/", f"{HOME}/.*", f"{HOME}/.ssh/*"))
    assert plan.access(f"{HOME}/.npmrc", files) is HIDDEN
    assert plan.access(f"{HOME}/.ssh/id", files) is HIDDEN


def test_a_store_in_a_writable_directory_is_laid_over() -> None:
    plan, files = shop(*STORED, f"{HOME}/.docker/config.json", write=(f"{HOME}/.config/", f"{HOME}/.docker/"))
    assert plan.access(f"{HOME}/.config/app/x", files) is WRITE
    assert plan.access(f"{HOME}/.config/gh/hosts", files) is HIDDEN
    assert plan.access(f"{HOME}/.docker/config.json", files) is HIDDEN
    assert f"{HOME}/.docker/config.json" in of_kind(plan, Seal)
    assert f"{HOME}/.config/gh" in of_kind(plan, Empty)
    laid_over = {o.path: o.laid_over for o in plan.operations if isinstance(o, Empty | Seal)}
    assert laid_over == {
        f"{HOME}/.config/gh": True,
        f"{HOME}/.docker/config.json": True,
        f"{HOME}/.npmrc": False,
        f"{HOME}/.ssh": False,
    }


def test_what_is_granted_in_a_closed_store_in_a_writable_directory_is_open_alone() -> None:
    plan, files = shop(*STORED, write=(f"{HOME}/.config/",), read=(f"{HOME}/.config/gh/hosts",))
    assert plan.access(f"{HOME}/.config/gh/hosts", files) is READ
    assert plan.access(f"{HOME}/.config/gh/other", files) is HIDDEN
    assert plan.access(f"{HOME}/.config/x", files) is WRITE


def test_a_store_in_the_workspace_is_closed_below_a_grant_and_absent_otherwise() -> None:
    links = {f"{HOME}/.npmrc": "/ws/apps/shop/npmrc"}
    plan, files = shop("/ws/apps/shop/npmrc", links=links, read=("/ws/apps/shop/",))
    assert of_kind(plan, Seal) == ["/ws/apps/shop/npmrc"]
    assert plan.access(f"{HOME}/.npmrc", files) is HIDDEN
    plan, _ = shop("/ws/apps/shop/npmrc", links=links)
    assert of_kind(plan, Seal) == []


def test_stores_of_a_home_that_is_the_root_are_laid_over() -> None:
    files = MemoryFiles.of(*SHOP, "/.ssh/id", "/.npmrc")
    plan = planned(files, facts=HostFacts(platform="linux", home="/", temp_root="/tmp/t"))
    assert of_kind(plan, Cover) == ["/ws"]
    assert plan.access("/.ssh/id", files) is HIDDEN
    assert plan.access("/.npmrc", files) is HIDDEN


def test_a_workspace_in_home_is_reached_through_the_covered_home() -> None:
    root = f"{HOME}/code/ws"
    files = MemoryFiles.of(*STORED, f"{root}/p/a", f"{root}/q/b", f"{HOME}/code/other/c")
    plan = planned(files, workspace=root, project=f"{root}/p", read=(f"{root}/p/",))
    lines = plan.describe()
    assert lines.index(f"bind directory {HOME}/code read-only") < lines.index(
        f"cover {root}: only what is placed in it exists"
    )
    assert plan.access(f"{root}/p/a", files) is READ
    assert plan.access(f"{root}/q/b", files) is HIDDEN
    assert plan.access(f"{HOME}/code/other/c", files) is READ


def test_the_tasks_own_temporary_directory_is_writable_and_others_do_not_exist() -> None:
    plan, files = shop("/tmp/vx-1000/mine/", "/tmp/vx-1000/other/x", temp="/tmp/vx-1000/mine")
    assert plan.access("/tmp/vx-1000/mine/x", files) is WRITE
    assert plan.access("/tmp/vx-1000/other", files) is HIDDEN
    assert placed_in(plan, "/tmp/vx-1000") == ("mine",)


def test_another_tasks_temporary_directory_cannot_be_read() -> None:
    files = MemoryFiles.of(*SHOP, "/tmp/vx-1000/other/x")
    with pytest.raises(RequestRefused) as caught:
        planned(files, read=("/tmp/vx-1000/other/", "/tmp/vx-1000/"))
    assert [(r.code, r.field) for r in caught.value.refusals] == [("VX302", "allowRead[0]"), ("VX302", "allowRead[1]")]
    plan = planned(files, read=("/tmp/*", "/tmp/vx-1000/*"))
    assert plan.access("/tmp/vx-1000/other/x", files) is HIDDEN


def test_a_writable_tmp_does_not_open_other_tasks_directories() -> None:
    plan, files = shop("/tmp/vx-1000/other/x", write=("/tmp/",))
    assert plan.access("/tmp/x", files) is WRITE
    assert plan.access("/tmp/vx-1000/other/x", files) is HIDDEN


def test_temporary_directories_inside_the_workspace_stay_apart() -> None:
    facts = HostFacts(platform="linux", home=HOME, temp_root="/ws/.tmp")
    files = MemoryFiles.of(*SHOP, "/ws/.tmp/mine/", "/ws/.tmp/other/x")
    plan = planned(files, facts=facts, temp="/ws/.tmp/mine")
    assert of_kind(plan, Cover) == ["/ws"]
    assert of_kind(plan, Way)[0] == "/ws/.tmp"
    plan = planned(files, facts=facts, temp="/ws/.tmp/mine", read=("/ws/",))
    assert of_kind(plan, Cover) == ["/ws", "/ws/.tmp"]
    assert plan.access("/ws/.tmp/mine/x", files) is WRITE
    assert plan.access("/ws/.tmp/other/x", files) is HIDDEN
    with pytest.raises(RequestRefused):
        planned(files, facts=facts, write=("/ws/.tmp/other/",))


def test_a_workspace_in_the_directory_of_temporary_directories_is_reached() -> None:
    root = "/tmp/vx-1000/ws"
    files = MemoryFiles.of(f"{root}/p/a", "/tmp/vx-1000/other/x")
    plan = planned(files, workspace=root, project=f"{root}/p", read=(f"{root}/p/",), write=(f"{root}/p/out/",))
    assert plan.access(f"{root}/p/a", files) is READ
    assert plan.access("/tmp/vx-1000/other/x", files) is HIDDEN


# the model's own answers


def test_links_are_followed_as_the_task_would() -> None:
    plan, files = shop(
        links={"/etc/alt": "/ws/base.toml", "/a": "b", "/b": "a", "/d": "/etc", "/etc/up": ".."},
        read=("/ws/apps/shop/",),
    )
    assert plan.access("/etc/alt", files) is HIDDEN
    assert plan.access("/d/up/ws/apps/shop/notes.md", files) is READ
    assert plan.access("/a", files) is HIDDEN


def test_links_in_a_bind_are_followed_too() -> None:
    plan, files = shop(
        links={"/ws/apps/shop/lib/up": "../notes.md", "/ws/apps/shop/lib/same": "cart.py"}, read=("/ws/apps/shop/lib/",)
    )
    assert plan.access("/ws/apps/shop/lib/up", files) is HIDDEN
    assert plan.access("/ws/apps/shop/lib/same", files) is READ


def test_a_hidden_directory_cannot_be_stepped_through() -> None:
    plan, files = shop(read=("/ws/base.toml",))
    assert plan.access("/ws/libs/../base.toml", files) is HIDDEN
    assert plan.access("/ws/apps/../base.toml", files) is READ


def test_the_deciding_operation_carries_its_origin() -> None:
    plan, _ = shop(read=("/ws/apps/shop/lib/",), write=("/ws/apps/shop/out/",))
    assert plan.decided_by("/ws/apps/shop/lib/x").origin == Origin(field="allowRead[0]")
    assert plan.decided_by("/ws/apps/shop/out").origin == Origin(field="allowWrite[0]")
    assert isinstance(plan.decided_by("/ws/base.toml"), Cover)
    assert isinstance(plan.decided_by("/usr/bin"), ReadOnlyRoot)


def test_a_plan_is_a_value() -> None:
    plan, _ = shop(*STORED, read=("/ws/apps/shop/",))
    again, _ = shop(*STORED, read=("/ws/apps/shop/",))
    assert plan == again
    assert hash(plan) == hash(again)
    copy = pickle.loads(pickle.dumps(plan))  # noqa: S301  our own bytes
    assert copy == plan
    assert copy.reach("/ws/apps/shop/x") is READ


def test_paths_deeper_than_the_interpreters_stack_are_planned() -> None:
    deep = "/ws" + "/d" * 1500
    files = MemoryFiles.of(f"{deep}/f", "/ws/.git/")
    plan = planned(files, project="/ws", read=(f"{deep}/f",))
    assert plan.reach(f"{deep}/f") is READ


def test_control_characters_are_shown_as_escapes() -> None:
    origin = Origin()
    assert Bind(path="/a\nb", origin=origin, directory=False).describe() == "bind file /a\\nb read-only"
    assert Way(path="/caf\udce9", origin=origin).describe() == (
        "show directory /caf\\udce9 with only what is placed in it"
    )


def test_a_hermetic_task_reaches_what_starts_a_process_its_grants_and_nothing_else() -> None:
    files = MemoryFiles.of(
        "/ws/apps/shop/x",
        "/usr/bin/sh",
        "/etc/passwd",
        "/var/x",
        "/else/deep/y",
        "/home/mel/z",
        links={"/bin": "usr/bin"},
    )
    plan = planned(files, read=("/ws/apps/shop/", "/else/deep/"), fields={"hermetic": True})
    assert not any(isinstance(operation, ReadOnlyRoot) for operation in plan.operations)
    reach = {
        path: plan.access(path, files).value
        for path in (
            "/",
            "/bin/sh",
            "/etc/passwd",
            "/else/deep/y",
            "/dev/null",
            "/proc/1/x",
            "/ws/apps/shop/x",
            "/else",
        )
    }
    assert set(reach.values()) == {"read"}, reach
    for path in ("/var", "/var/x", "/home/mel/z", "/else/beside", "/sys", "/nix/store"):
        assert plan.access(path, files).value == "hidden", path
