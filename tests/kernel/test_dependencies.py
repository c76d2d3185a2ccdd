"""What linked packages open: layouts as npm, pnpm and uv make them, by hand, in real sandboxes."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Link, make_tree
from tests.kernel.conftest import Workspace, shown, violated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox import Request, RunResult
    from tests.conftest import Tree

#: Each package says its name.
MANIFESTS: Tree = {
    f"{place}/package.json": json.dumps({"name": f"@acme/{place.rpartition('/')[2]}"})
    for place in ("apps/shop", "libs/money", "libs/dates")
}
NPM: Tree = {
    **MANIFESTS,
    "package.json": '{"workspaces": ["apps/*", "libs/*"]}',
    "node_modules/@acme/shop": Link("../../apps/shop"),
    "node_modules/@acme/money": Link("../../libs/money"),
    "node_modules/@acme/dates": Link("../../libs/dates"),
    "node_modules/left-pad/index.js": "pad\n",
    "node_modules/.bin/tool": "#!/bin/sh\necho tool\n",
}
#: Each package has its own links, and what is installed lies in a store at the root.
PNPM: Tree = {
    **MANIFESTS,
    "pnpm-workspace.yaml": "packages: ['apps/*', 'libs/*']\n",
    "node_modules/.pnpm/left-pad@1/node_modules/left-pad/index.js": "pad\n",
    "node_modules/.pnpm/left-pad@1/node_modules/dep": Link("../../dep@2/node_modules/dep"),
    "node_modules/.pnpm/dep@2/node_modules/dep/index.js": "dep\n",
    "apps/shop/node_modules/left-pad": Link("../../../node_modules/.pnpm/left-pad@1/node_modules/left-pad"),
    "apps/shop/node_modules/@acme/money": Link("../../../../libs/money"),
    "libs/money/node_modules/@acme/dates": Link("../../../dates"),
}


def request(shop: Workspace, read: Iterable[str] = (), keyed: Iterable[str] | None = None, **given: object) -> Request:
    made = shop.request(read)
    projects = [str(shop.root / name) for name in ("apps/shop", "libs/money", "libs/dates")]
    key = None if keyed is None else [str(shop.root / name) for name in keyed]
    return shop.session.request(
        made.config,
        workspace_root=str(shop.root),
        nested=projects,
        keyed=key,
        links=made.links,
        **given,  # type: ignore[arg-type]  # the tests name arguments of the request
    )


def run(shop: Workspace, made: Request, command: str) -> RunResult:
    return shop.session.run(made, command=command, observer=shop.observer)


def passes(shop: Workspace, made: Request, command: str) -> str:
    result = run(shop, made, command)
    assert (result.exit_code, result.violations, result.hints) == (0, (), ()), shown(result)
    return result.stdout.decode()


def test_a_package_linked_at_the_root_is_imported_by_its_name(shop: Workspace) -> None:
    make_tree(shop.root, NPM)
    command = "cd ../../node_modules && cat @acme/money/src/coin.py left-pad/index.js && sh .bin/tool"
    assert passes(shop, request(shop), command) == "coin\npad\ntool\n"


def test_the_link_to_the_task_itself_hands_nothing_back(shop: Workspace) -> None:
    make_tree(shop.root, NPM)
    result = run(shop, request(shop, ["lib/**"]), "cat ../../node_modules/@acme/shop/notes.md")
    assert violated(result, shop.project) == [("read", "notes.md")], shown(result)
    assert result.stdout == b""


def test_a_withheld_package_is_refused_reported_and_told_how_to_be_keyed(shop: Workspace) -> None:
    make_tree(shop.root, NPM)
    made = request(shop, keyed=["libs/money"])
    assert passes(shop, made, "cat ../../node_modules/@acme/money/src/coin.py") == "coin\n"
    result = run(shop, made, "cat ../../node_modules/@acme/dates/day.py || true")
    assert result.exit_code == 1
    assert violated(result, shop.root) == [("read", "libs/dates/day.py")], shown(result)
    (hint,) = [hint.line for hint in result.hints if "libs/dates" in hint.line]
    assert str(shop.root / "node_modules/@acme/dates") in hint
    assert "dependsOn" in hint
    assert 'allow.read = ["../../libs/dates/"]' in hint
    assert 'cache.inputs.workspaceFiles = ["libs/dates/**"]' in hint


def test_a_package_with_no_project_has_but_one_remedy(shop: Workspace) -> None:
    make_tree(
        shop.root,
        {"vendor/x/i.js": "x\n", "vendor/x/package.json": '{"name": "x"}', "node_modules/x": Link("../vendor/x")},
    )
    result = run(shop, request(shop, keyed=[]), "cat ../../node_modules/x/i.js")
    (hint,) = [hint.line for hint in result.hints if "vendor/x" in hint.line]
    assert "dependsOn" not in hint
    assert 'cache.inputs.workspaceFiles = ["vendor/x/**"]' in hint


def test_a_look_at_a_neighbour_does_not_hide_a_look_at_a_withheld_package(shop: Workspace) -> None:
    make_tree(shop.root, {**NPM, "other/x": "x\n"})
    make_tree(shop.root, {"libs/tool/x": "x\n"})
    made = request(shop, keyed=[])
    result = run(shop, made, "cat ../../libs/tool/x; cat ../../libs/nothing; cat ../../libs/dates/day.py; true")
    assert ("read", "libs/dates/day.py") in violated(result, shop.root), shown(result)


def test_links_of_a_store_and_of_packages_in_turn_are_followed(shop: Workspace) -> None:
    make_tree(shop.root, PNPM)
    command = (
        "cat node_modules/left-pad/index.js node_modules/@acme/money/src/coin.py &&"
        "cat node_modules/left-pad/../dep/index.js &&"
        "cat node_modules/@acme/money/node_modules/@acme/dates/day.py"
    )
    assert passes(shop, request(shop), command) == "pad\ncoin\ndep\nday\n"
    made = request(shop, keyed=["libs/money", "libs/dates"])
    assert passes(shop, made, command) == "pad\ncoin\ndep\nday\n"


def test_a_project_nested_in_a_granted_package_is_a_wall(shop: Workspace) -> None:
    make_tree(shop.root, {**NPM, "libs/money/kit/k.py": "kit\n"})
    made = shop.session.request(
        request(shop).config,
        workspace_root=str(shop.root),
        nested=[str(shop.root / name) for name in ("libs/money", "libs/money/kit", "libs/dates")],
        keyed=[str(shop.root / "libs/money")],
    )
    result = run(shop, made, "cat ../../node_modules/@acme/money/src/coin.py ../../node_modules/@acme/money/kit/k.py")
    assert result.stdout == b"coin\n"
    assert violated(result, shop.root) == [("read", "libs/money/kit/k.py")], shown(result)


def test_outputs_of_other_tasks_are_read_and_what_lies_beside_them_is_reported(shop: Workspace) -> None:
    make_tree(shop.root, {"libs/money/gen/a.js": "a\n", "libs/money/gen/notes.txt": "notes\n"})
    gen = shop.root / "libs/money/gen"
    made = request(shop, dependency_outputs=[str(gen / "a.js")], dependency_reported=[str(gen)])
    assert passes(shop, made, "cat ../../libs/money/gen/a.js; ls ../../libs/money") == "a\ngen\n"
    result = run(shop, made, "cat ../../libs/money/gen/notes.txt || true")
    assert violated(result, shop.root) == [("read", "libs/money/gen/notes.txt")], shown(result)
    assert run(shop, made, "cat ../../libs/money/src/coin.py || true").violations == ()


# Python


@pytest.fixture
def members(shop: Workspace) -> Workspace:
    """An environment at the root with two members of the workspace in it, as uv installs them."""
    site = f".venv/lib/python3.{sys.version_info.minor}/site-packages"
    tree: dict[str, str | Link | None] = {
        ".venv/pyvenv.cfg": f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n",
        ".venv/bin/python": Link(os.path.realpath(sys.executable)),
        f"{site}/requests_like/__init__.py": "WORD = 'installed'\n",
        "libs/money/src/money/__init__.py": "WORD = 'money'\n",
        "libs/dates/src/dates/__init__.py": "WORD = 'dates'\n",
        "apps/shop/src/shop/__init__.py": "WORD = 'shop'\n",
    }
    for name, place in (("money", "libs/money"), ("dates", "libs/dates"), ("shop", "apps/shop")):
        url = {"url": f"file://{shop.root}/{place}", "dir_info": {"editable": True}}
        tree[f"{site}/_editable_impl_{name}.pth"] = f"{shop.root}/{place}/src\n"
        tree[f"{site}/{name}-0.1.dist-info/direct_url.json"] = json.dumps(url)
    make_tree(shop.root, tree)
    return shop


def test_members_of_the_workspace_are_imported_without_a_grant(members: Workspace) -> None:
    command = "python -Bc 'import money, dates, requests_like as r; print(money.WORD, dates.WORD, r.WORD)'"
    assert passes(members, request(members), command) == "money dates installed\n"


def test_a_member_the_key_does_not_answer_for_is_withheld(members: Workspace) -> None:
    made = request(members, keyed=["libs/money"])
    # an interpreter looks for every member as it starts
    assert passes(members, made, "python -Bc 'import money; print(money.WORD)'") == "money\n"
    result = run(members, made, "python -Bc 'import dates'")
    assert (result.exit_code, result.violations) == (1, ()), shown(result)
    assert any("libs/dates is linked as dates" in hint.line for hint in result.hints), shown(result)
    result = run(members, made, "cat ../../libs/dates/src/dates/__init__.py || true")
    assert violated(result, members.root) == [("read", "libs/dates/src/dates/__init__.py")], shown(result)


def test_the_own_sources_are_not_given_back_by_the_environment(members: Workspace) -> None:
    result = run(members, request(members, ["lib/"]), "python -Bc 'import shop'")
    assert result.command_exit_code == 1, shown(result)
    assert passes(members, request(members, ["src/"]), "python -Bc 'import shop; print(shop.WORD)'") == "shop\n"
