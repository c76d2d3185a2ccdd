"""Links that a task leaves where packages are installed: the next run is given what says that it is the package."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown, violated

if TYPE_CHECKING:
    from sandbox import RunResult

_SITE = ".venv/lib/python3.11/site-packages"
_RECORD = json.dumps({"url": "file://{}", "dir_info": {"editable": True}})
_HIDDEN = "node_modules/own/real.json node_modules/money/src/coin.py node_modules/@s/dates/day.py"
_READ = f"cat {_HIDDEN} conf/real.json ../../libs/money/src/coin.py ../../libs/dates/day.py; true"


def _planted(shop: Workspace) -> RunResult:
    """A run that reads through links which the run before it left."""
    plant = (
        "mkdir -p node_modules/@s; ln -s ../conf node_modules/own; ln -s ../../../libs/money node_modules/money;"
        " ln -s ../../../../libs/dates node_modules/@s/dates"
    )
    shop.passes(plant, write=["node_modules/"])
    return shop.run(_READ)


def test_links_left_in_the_dependencies_open_nothing_and_what_is_read_through_them_is_reported(shop: Workspace) -> None:
    result = _planted(shop)
    assert result.stdout == b"", shown(result)
    assert result.exit_code == 1, shown(result)
    assert {"conf/real.json", "../../libs/money/src/coin.py", "../../libs/dates/day.py"} <= {
        path for _, path in violated(result, shop.project)
    }, shown(result)
    assert any("nothing in it says that it is that package" in hint.line for hint in result.hints), shown(result)


def test_the_name_in_the_manifest_is_what_keeps_them_closed(shop: Workspace) -> None:
    named = {"libs/money/package.json": '{"name": "money"}', "libs/dates/package.json": '{"name": "@s/dates"}'}
    make_tree(shop.root, {**named, "apps/shop/conf/package.json": '{"name": "own"}'})
    result = _planted(shop)
    # a part of the project itself stays its own grants' matter
    assert result.stdout == b"coin\nday\ncoin\nday\n", shown(result)
    assert {path for _, path in violated(result, shop.project)} == {"conf/real.json"}, shown(result)


@pytest.mark.parametrize(
    ("link", "target"), [("node_modules", "../../libs"), (".venv", "../../libs"), (".venv", "conf")]
)
def test_a_link_in_place_of_what_is_installed_opens_nothing_else(shop: Workspace, link: str, target: str) -> None:
    (shop.project / link).symlink_to(target)
    result = shop.run(f"cat {link}/money/src/coin.py {link}/real.json")
    assert result.stdout == b"", shown(result)


def test_a_search_path_left_in_the_environment_opens_no_other_directory(shop: Workspace) -> None:
    libs = shop.root / "libs"
    record = _RECORD.replace("{}", f"{libs}/money", 1)
    plant = (
        f"mkdir -p {_SITE}/money-1.dist-info; echo '{record}' > {_SITE}/money-1.dist-info/direct_url.json;"
        f" echo {libs}/dates > {_SITE}/day.pth; echo {shop.project}/conf > {_SITE}/conf.pth"
    )
    shop.passes(plant, write=[".venv/"])
    result = shop.run("cat ../../libs/money/src/coin.py ../../libs/dates/day.py conf/real.json; true")
    assert result.stdout == b"", shown(result)
    make_tree(libs, {"money/pyproject.toml": '[project]\nname = "money"\n', "dates/day/__init__.py": ""})
    assert shop.run("cat ../../libs/money/src/coin.py ../../libs/dates/day.py; true").stdout == b"coin\nday\n"
