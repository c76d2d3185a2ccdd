from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.request.linked_packages import Withheld
from tests.support.memory_files import MemoryFiles
from tests.support.plans import HOME, request

if TYPE_CHECKING:
    from sandbox.request.request import Request

WS = (
    "/ws/.git/HEAD",
    "/ws/.vx/cache/",
    "/ws/apps/shop/lib/cart.py",
    "/ws/libs/money/src/coin.py",
    "/ws/libs/dates/day.py",
    "/outside/pkg/i.js",
    f"{HOME}/.ssh/id",
)
PROJECTS = ("/ws/apps/shop", "/ws/libs/money", "/ws/libs/dates")
#: As npm and Yarn lay a workspace out, with links nobody should follow beside them.
NPM = {
    "/ws/node_modules/@acme/shop": "../../apps/shop",
    "/ws/node_modules/@acme/money": "../../libs/money",
    "/ws/node_modules/@acme/dates": "../../libs/dates",
    "/ws/node_modules/up": "..",
    "/ws/node_modules/apps": "../apps",
    "/ws/node_modules/slash": "/",
    "/ws/node_modules/outside": "/outside/pkg",
    "/ws/node_modules/.bin/tool": "../../libs/money",
    "/ws/node_modules/left/node_modules/deep": "../../../libs/dates",
    "/ws/node_modules/file": "../.git/HEAD",
    "/ws/apps/shop/node_modules/self": "..",
}


def manifests(**names: str) -> dict[str, str]:
    """A `package.json` in each directory of `/ws/libs`, which says a name."""
    return {f"/ws/libs/{directory}/package.json": json.dumps({"name": name}) for directory, name in names.items()}


#: The packages say that they are what `NPM` links.
SAID = {**manifests(money="@acme/money", dates="@acme/dates"), "/outside/pkg/package.json": '{"name": "outside"}'}


def npm(*more: str, links: dict[str, str] | None = None, texts: dict[str, str] | None = None) -> MemoryFiles:
    return MemoryFiles.of(*WS, *more, links={**NPM, **(links or {})}, texts={**SAID, **(texts or {})})


def made(files: MemoryFiles, **given: Any) -> Request:
    return request(files, **{"nested": PROJECTS, **given})


def reads(files: MemoryFiles, **given: Any) -> list[str]:
    return [read.path for read in made(files, **given).reads]


def test_packages_of_the_workspace_linked_at_the_root_may_be_read_but_never_the_own_project_or_above() -> None:
    found = made(npm())
    assert {read.path for read in found.reads} == {
        "/ws/apps/shop/node_modules",
        "/ws/node_modules",
        "/ws/libs/money",
        "/ws/libs/dates",
        "/outside/pkg",
    }
    assert (found.withheld, found.reported) == ((), ())


def test_each_package_says_where_it_is_linked() -> None:
    reasons = {read.path: read.reason for read in made(npm()).reads}
    assert reasons["/ws/libs/money"] == "the package @acme/money linked in /ws/node_modules"
    assert reasons["/ws/node_modules"] == "the dependencies in /ws/node_modules"


def test_a_key_grants_the_packages_it_answers_for_and_withholds_the_others() -> None:
    found = made(npm(), keyed=["/ws/libs/money"])
    granted = {read.path for read in found.reads}
    assert {"/ws/libs/money", "/outside/pkg"} <= granted
    assert "/ws/libs/dates" not in granted
    assert found.withheld == (
        Withheld(
            dir="/ws/libs/dates",
            name="@acme/dates",
            target="libs/dates",
            link="/ws/node_modules/@acme/dates",
            project=True,
            owner="libs/dates",
        ),
    )
    assert found.reported == ("/ws/libs/dates",)


def test_a_key_that_answers_for_nothing_withholds_every_package_of_the_workspace() -> None:
    found = made(npm(), keyed=[])
    assert [one.name for one in found.withheld] == ["@acme/dates", "@acme/money"]
    assert "/outside/pkg" in {read.path for read in found.reads}


def test_a_key_spelled_through_a_link_is_the_same_key() -> None:
    files = npm(links={"/link": "/ws"})
    assert [one.name for one in made(files, keyed=["/link/libs/money"]).withheld] == ["@acme/dates"]


def test_a_package_that_is_no_project_is_withheld_and_says_so() -> None:
    texts = {"/ws/vendor/x/package.json": '{"name": "x"}'}
    files = npm("/ws/vendor/x/i.js", links={"/ws/node_modules/x": "../vendor/x"}, texts=texts)
    (found,) = (one for one in made(files, keyed=["/ws/libs/money", "/ws/libs/dates"]).withheld)
    assert (found.target, found.project) == ("vendor/x", False)


def test_what_lies_in_granted_dependencies_is_not_granted_again() -> None:
    files = MemoryFiles.of(
        *WS,
        "/ws/node_modules/.pnpm/pad@1/node_modules/pad/i.js",
        links={"/ws/node_modules/pad": ".pnpm/pad@1/node_modules/pad"},
    )
    assert reads(files) == ["/ws/node_modules"]


@pytest.mark.parametrize(
    "target",
    [
        "/ws/.git",
        "/ws/.git/HEAD",
        "/ws/.git/refs",
        "/ws",
        "/",
        "/ws/.vx",
        "/ws/.vx/cache",
        HOME,
        f"{HOME}/.ssh",
        "/home",
    ],
)
def test_no_link_opens_a_wall_what_holds_one_or_a_credential_store(target: str) -> None:
    files = MemoryFiles.of(*WS, "/ws/.git/refs/", f"{HOME}/.ssh/id", links={"/ws/node_modules/x": target})
    for keyed in (None, ["/ws/libs/money", target]):
        found = made(files, keyed=keyed)
        assert [read.path for read in found.reads] == ["/ws/node_modules"]
        assert found.withheld == ()


def test_links_are_followed_through_the_dependencies_of_a_granted_package() -> None:
    files = MemoryFiles.of(
        *WS,
        "/ws/libs/core/c.py",
        links={
            "/ws/apps/shop/node_modules/money": "../../../libs/money",
            "/ws/libs/money/node_modules/@acme/dates": "../../../dates",
            "/ws/libs/dates/node_modules/core": "../../core",
            "/ws/libs/core/node_modules/shop": "../../../apps/shop",
        },
        texts=manifests(money="money", dates="@acme/dates", core="core"),
    )
    projects = (*PROJECTS, "/ws/libs/core")
    assert set(reads(files, nested=projects)) == {
        "/ws/apps/shop/node_modules",
        "/ws/libs/money",
        "/ws/libs/dates",
        "/ws/libs/core",
    }
    found = made(files, nested=projects, keyed=["/ws/libs/money", "/ws/libs/core"])
    # what a withheld package links is not looked at
    assert [one.dir for one in found.withheld] == ["/ws/libs/dates"]
    assert "/ws/libs/core" not in {read.path for read in found.reads}


def test_dependencies_that_are_a_link_are_judged_by_where_it_leads() -> None:
    there = "/ws/libs/money/node_modules"
    files = MemoryFiles.of(*WS, f"{there}/pad/i.js", links={"/ws/apps/shop/node_modules": there})
    assert reads(files) == [there]
    assert reads(files, keyed=[there]) == [there]
    found = made(files, keyed=[])
    assert [(one.dir, one.unnamed) for one in found.withheld] == [(there, False)]


def test_dependencies_that_are_a_link_to_the_roots_are_granted_once() -> None:
    files = npm(links={"/ws/libs/dates/node_modules": "../../node_modules"})
    found = made(files, keyed=["/ws/libs/money", "/ws/libs/dates"])
    assert [read.path for read in found.reads].count("/ws/node_modules") == 1
    assert found.withheld == ()


def test_links_on_the_way_to_a_package_are_shown() -> None:
    files = MemoryFiles.of(
        *WS,
        links={"/ws/node_modules/money": "../packages/money", "/ws/packages": "libs"},
        texts=manifests(money="money"),
    )
    assert made(files).links == (("/ws/packages", "libs"),)


# what a link leads to says what it is


@pytest.mark.parametrize(
    ("name", "manifest"),
    [
        ("money", None),
        ("money", ""),
        ("money", "[]"),
        ("money", '{"name": 1}'),
        ("money", '{"name": "dates"}'),
        ("@other/money", '{"name": "@acme/money"}'),
        ("@acme", '{"name": "@acme/money"}'),
        ("money", '{"name": "@acme/money"}'),
        ("money", "[" * 60000),
    ],
    ids=range(9),
)
def test_a_link_to_a_directory_that_holds_no_package_of_that_name_opens_nothing_and_is_told(
    name: str, manifest: str | None
) -> None:
    texts = {} if manifest is None else {"/ws/libs/money/package.json": manifest}
    files = MemoryFiles.of(*WS, links={f"/ws/node_modules/{name}": "/ws/libs/money"}, texts=texts)
    for keyed in (None, ["/ws/libs/money"]):
        found = made(files, keyed=keyed)
        assert [read.path for read in found.reads] == ["/ws/node_modules"]
        assert [(one.dir, one.unnamed) for one in found.withheld] == [("/ws/libs/money", True)]
        assert found.reported == ("/ws/libs/money",)


@pytest.mark.parametrize("wanted", ["file:../libs/money", "link:../libs/money", "workspace:@acme/money@*", "npm:x@1"])
def test_a_package_under_the_name_that_the_manifest_asks_for_may_be_read(wanted: str) -> None:
    manifest = json.dumps({"devDependencies": {"coins": wanted, "day": "1"}})
    files = MemoryFiles.of(
        *WS,
        links={"/ws/node_modules/coins": "../libs/money", "/ws/node_modules/day": "../libs/dates"},
        texts={**manifests(money="@acme/money", dates="@acme/dates"), "/ws/package.json": manifest},
    )
    assert reads(files) == ["/ws/node_modules", "/ws/libs/money"]


@pytest.mark.parametrize("target", ["hidden", "hidden/deep", "lib"])
@pytest.mark.parametrize("name", ["node_modules/a", "node_modules/@s/a", "node_modules", ".venv"])
def test_no_link_opens_a_hidden_part_of_the_own_project_whatever_it_says_of_itself(target: str, name: str) -> None:
    place = f"/ws/apps/shop/{target}"
    texts = {f"{place}/package.json": '{"name": "a"}', f"{place}/pyvenv.cfg": "", f"{place}/.modules.yaml": ""}
    files = MemoryFiles.of(*WS, links={f"/ws/apps/shop/{name}": place}, texts=texts)
    assert [read for read in reads(files) if not read.endswith("node_modules")] == []


@pytest.mark.parametrize(("place", "sign"), [("node_modules", ".modules.yaml"), (".venv", "pyvenv.cfg")])
def test_installed_packages_that_are_a_link_lead_to_installed_packages_alone(place: str, sign: str) -> None:
    links = {f"/ws/apps/shop/{place}": "../../libs/money"}
    assert reads(MemoryFiles.of(*WS, links=links)) == []
    signed = MemoryFiles.of(*WS, links=links, texts={f"/ws/libs/money/{sign}": ""})
    assert reads(signed) == ["/ws/libs/money"]


# projects nested in packages


def test_projects_nested_in_a_granted_package_are_walls_unless_the_key_answers_for_them() -> None:
    files = npm("/ws/libs/money/kit/k.py", "/ws/libs/money/lab/l.py")
    projects = (*PROJECTS, "/ws/libs/money/kit", "/ws/libs/money/lab")
    found = made(files, nested=projects, keyed=["/ws/libs/money", "/ws/libs/money/kit"])
    assert "/ws/libs/money/lab" in {wall.path for wall in found.walls}
    assert "/ws/libs/money/kit" not in {wall.path for wall in found.walls}
    assert "/ws/libs/money/lab" in found.reported
    assert not {wall.path for wall in made(files, nested=projects).walls} & set(projects)


def test_a_nested_project_that_is_linked_follows_the_key() -> None:
    files = MemoryFiles.of(
        "/ws/sub/kit/k.py",
        "/ws/sub/kit/deep/d.py",
        links={"/ws/node_modules/kit": "../sub/kit"},
        texts={"/ws/sub/kit/package.json": '{"name": "kit"}'},
    )
    given: dict[str, Any] = {"project": "/ws", "nested": ["/ws", "/ws/sub/kit", "/ws/sub/kit/deep"]}
    assert "/ws/sub/kit" in reads(files, **given)
    found = made(files, keyed=["/ws/sub/kit"], **given)
    assert "/ws/sub/kit" in {read.path for read in found.reads}
    assert "/ws/sub/kit/deep" in {wall.path for wall in found.walls}
    found = made(files, keyed=[], **given)
    assert "/ws/sub/kit" not in {read.path for read in found.reads}
    assert [one.dir for one in found.withheld] == ["/ws/sub/kit"]


# Python


def _record(path: str, *, editable: object = True) -> str:
    return json.dumps({"url": f"file://{path}", "dir_info": {"editable": editable}})


SITE = "/ws/.venv/lib/python3.12/site-packages"


def uv(project: str = "/ws/apps/shop", **texts: str) -> MemoryFiles:
    return MemoryFiles.of(
        *WS,
        f"{SITE}/requests/api.py",
        texts={
            f"{SITE}/money-0.1.dist-info/direct_url.json": _record("/ws/libs/money"),
            f"{SITE}/_editable_impl_money.pth": "/ws/libs/money/src\n",
            f"{SITE}/shop-0.1.dist-info/direct_url.json": _record(project),
            f"{SITE}/_editable_impl_shop.pth": f"{project}/lib\n",
            f"{SITE}/_virtualenv.pth": "import _virtualenv",
            "/ws/libs/money/pyproject.toml": '[project]\nname = "Money"\n',
            "/ws/libs/dates/setup.cfg": "[metadata]\nname = dates\n",
            **{f"{SITE}/{name}": text for name, text in texts.items()},
        },
    )


def test_members_installed_to_be_edited_may_be_read_and_the_own_project_is_not_given_back() -> None:
    found = made(uv())
    assert [read.path for read in found.reads] == ["/ws/.venv", "/ws/libs/money"]
    assert found.reads[1].reason == "the package money installed in /ws/.venv to be edited"


def test_members_follow_the_key() -> None:
    assert [read.path for read in made(uv(), keyed=["/ws/libs/money"]).reads] == ["/ws/.venv", "/ws/libs/money"]
    (found,) = made(uv(), keyed=[]).withheld
    assert (found.dir, found.name, found.link) == (
        "/ws/libs/money",
        "money",
        f"{SITE}/money-0.1.dist-info/direct_url.json",
    )


def test_sources_named_by_a_search_path_alone_follow_the_key_of_their_project() -> None:
    listed = "/ws/libs/dates\n# /ws\nimport os; x\n/ws/libs/dates/sub\n/nowhere\n"
    files = uv(**{"easy-install.pth": listed, "dates.egg-link": "/ws/libs/dates\n.\n"})
    assert "/ws/libs/dates" in reads(files)
    assert "/ws/libs/dates" in reads(files, keyed=["/ws/libs/money", "/ws/libs/dates"])
    assert [one.dir for one in made(files, keyed=["/ws/libs/money"]).withheld] == ["/ws/libs/dates"]
    files = uv(**{"dates.pth": "/ws/libs/dates/src\n"})
    files.add("/ws/libs/dates/src/d.py", files.kinds["/ws/libs/dates/day.py"])
    assert "/ws/libs/dates/src" in reads(files, keyed=["/ws/libs/dates"])
    assert made(files, keyed=["/ws/libs/money"]).withheld[0].dir == "/ws/libs/dates/src"


def test_members_of_a_root_project_follow_the_key_and_its_own_sources_do_not() -> None:
    files = uv(project="/ws")
    files.add("/ws/lib/x.py", files.kinds["/ws/libs/dates/day.py"])
    assert reads(files, project="/ws") == ["/ws/.venv", "/ws/libs/money"]
    assert reads(files, project="/ws", keyed=[]) == ["/ws/.venv"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"dir_info": {"editable": true}}',
        _record("/ws/libs/dates", editable=False),
        '{"url": "https://x/ws/libs/dates", "dir_info": {"editable": true}}',
        '{"url": "file://host/ws/libs/dates", "dir_info": {"editable": true}}',
        '{"url": 1, "dir_info": {"editable": true}}',
        _record("/ws/libs/dates/day.py"),
        _record("/"),
        "[" * 60000 + "editable",
    ],
)
def test_a_record_that_names_no_directory_grants_nothing(text: str) -> None:
    files = uv(**{"dates-1.dist-info/direct_url.json": text})
    assert reads(files) == ["/ws/.venv", "/ws/libs/money"]


def test_a_directory_with_a_space_is_read_out_of_its_address() -> None:
    files = uv(**{"odd-1.dist-info/direct_url.json": _record("/ws/libs/o%20d%C3%A9")})
    files.add("/ws/libs/o dé/src/odd/__init__.py", files.kinds["/ws/libs/dates/day.py"])
    assert "/ws/libs/o dé" in reads(files)


def test_both_environments_are_looked_for() -> None:
    files = MemoryFiles.of(*WS, "/ws/.venv/", "/ws/apps/shop/.venv/bin/python")
    assert reads(files) == ["/ws/apps/shop/.venv", "/ws/.venv"]


@pytest.mark.parametrize(
    ("name", "there", "opens"),
    [
        ("dates-1.dist-info", {"pyproject.toml": '[project]\nname = "dates"'}, True),
        ("Dates_x-1.dist-info", {"pyproject.toml": '[tool.poetry]\nname = "dates.X"'}, True),
        ("dates-1.dist-info", {"setup.cfg": "[metadata]\nname = dates\n"}, True),
        ("dates-1.dist-info", {"src/dates.egg-info/PKG-INFO": ""}, True),
        ("dates-1.dist-info", {"dates/__init__.py": ""}, True),
        ("dates-1.dist-info", {"pyproject.toml": '[project]\nname = "money"'}, False),
        ("dates-1.dist-info", {"pyproject.toml": "project = ["}, False),
        ("dates-1.dist-info", {"setup.cfg": "name\n"}, False),
        ("dates-1.dist-info", {"dates/x.py": "", "dates.py": ""}, False),
        ("day-1.dist-info", {}, False),
        ("-1.dist-info", {"pyproject.toml": '[project]\nname = ""'}, False),
    ],
)
def test_a_member_says_itself_that_it_is_the_distribution(name: str, there: dict[str, str], opens: bool) -> None:
    texts = {f"/ws/libs/dates/{file}": text for file, text in there.items()}
    texts[f"{SITE}/{name}/direct_url.json"] = _record("/ws/libs/dates")
    found = made(MemoryFiles.of(*WS, texts=texts))
    assert ("/ws/libs/dates" in {read.path for read in found.reads}) is opens
    assert [one.dir for one in found.withheld] == ([] if opens else ["/ws/libs/dates"])


@pytest.mark.parametrize(
    ("file", "opens"),
    [
        ("dates.pth", True),
        ("_dates.pth", True),
        ("_editable_impl_dates.pth", True),
        ("__editable__.dates-1.0.pth", True),
        ("day.pth", False),
        ("sub.pth", False),
        ("easy-install.pth", False),
        (".pth", False),
    ],
)
@pytest.mark.parametrize("sources", ["/ws/libs/dates", "/ws/libs/dates/src"])
def test_a_search_path_leads_to_sources_of_the_distribution_it_is_named_after(
    file: str, opens: bool, sources: str
) -> None:
    texts = {f"{SITE}/{file}": f"{sources}\n", "/ws/libs/dates/pyproject.toml": '[project]\nname = "dates"'}
    found = reads(MemoryFiles.of(*WS, "/ws/libs/dates/src/sub/x.py", texts=texts))
    assert found == (["/ws/.venv", sources] if opens else ["/ws/.venv"])
