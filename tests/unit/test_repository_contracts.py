"""The import contracts of `.importlinter` hold, and each one breaks when a violation is planted."""

from __future__ import annotations

import configparser
import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grimp
import pytest
from importlinter import configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

if TYPE_CHECKING:
    from grimp import ImportGraph

REPOSITORY = Path(__file__).resolve().parents[2]
_PREFIX = "importlinter:contract:"
#: Folders whose files serve each other and have an order all the same; a folder of one file has none.
_PACKAGES = sorted(
    str(init.parent.relative_to(REPOSITORY)).replace("/", ".")
    for package in ("vxconf", "sandbox")
    for init in (REPOSITORY / package).rglob("__init__.py")
)


def _contracts() -> dict[str, dict[str, Any]]:
    parser = configparser.ConfigParser()
    parser.read(REPOSITORY / ".importlinter", encoding="utf-8")
    found = {}
    for section in parser.sections():
        if section.startswith(_PREFIX):
            options: dict[str, Any] = dict(parser[section])
            for name in ("containers", "layers", "source_modules", "forbidden_modules"):
                if name in options:
                    options[name] = options[name].split("\n")[1:]
            found[section.removeprefix(_PREFIX)] = options
    return found


CONTRACTS = _contracts()
configuration.configure()


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return grimp.build_graph("vxconf", "sandbox", include_external_packages=True, cache_dir=None)


def _holds(graph: ImportGraph, contract: str) -> bool:
    options = CONTRACTS[contract]
    kind = {"layers": LayersContract, "forbidden": ForbiddenContract}[options["type"]]
    session = {"root_packages": ["vxconf", "sandbox"], "include_external_packages": "True"}
    given = {name: value for name, value in options.items() if name not in {"type", "name"}}
    made = kind(name=options["name"], session_options=session, contract_options=given)
    return bool(made.check(graph=graph, verbose=False).kept)


def _names(contract: str) -> list[str]:
    """The layers of a contract from the top down, one absolute module of each."""
    options = CONTRACTS[contract]
    prefix = f"{options['containers'][0]}." if "containers" in options else ""
    return [prefix + layer.split(" | ")[0] for layer in options["layers"]]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_contract_holds(contract: str, graph: ImportGraph) -> None:
    assert _holds(graph, contract)


@pytest.mark.parametrize("contract", [name for name, one in CONTRACTS.items() if one["type"] == "layers"])
def test_an_import_from_the_bottom_to_the_top_breaks_the_contract(contract: str, graph: ImportGraph) -> None:
    names = _names(contract)
    top, bottom = names[0], names[-1]
    if top == bottom:
        first, second = CONTRACTS[contract]["layers"][0].split(" | ")[:2]
        prefix = CONTRACTS[contract]["containers"][0]
        top, bottom = f"{prefix}.{first}", f"{prefix}.{second}"
    planted = _copied(graph)
    planted.add_import(importer=bottom, imported=top)
    assert not _holds(planted, contract)


@pytest.mark.parametrize("contract", [name for name, one in CONTRACTS.items() if "containers" in one])
def test_a_module_without_a_place_breaks_the_contract(contract: str, graph: ImportGraph) -> None:
    planted = _copied(graph)
    planted.add_module(f"{CONTRACTS[contract]['containers'][0]}.nowhere")
    assert not _holds(planted, contract)


@pytest.mark.parametrize("contract", [name for name, one in CONTRACTS.items() if one["type"] == "forbidden"])
def test_a_forbidden_import_breaks_the_contract(contract: str, graph: ImportGraph) -> None:
    options = CONTRACTS[contract]
    for source in options["source_modules"]:
        planted = _copied(graph)
        forbidden = options["forbidden_modules"][-1]
        inside = next((name for name in sorted(planted.modules) if name.startswith(f"{source}.")), source)
        if forbidden not in planted.modules:
            planted.add_module(forbidden, is_squashed=True)
        planted.add_import(importer=inside, imported=forbidden)
        assert not _holds(planted, contract), source


def test_every_folder_with_more_than_one_file_has_a_contract() -> None:
    contained = {one["containers"][0] for one in CONTRACTS.values() if "containers" in one}
    large = {
        name
        for name in _PACKAGES
        if sum(child.name != "__init__.py" for child in (REPOSITORY / name.replace(".", "/")).glob("*.py")) > 1
    }
    assert large - contained == set()


def _copied(graph: ImportGraph) -> ImportGraph:
    return copy.deepcopy(graph)
