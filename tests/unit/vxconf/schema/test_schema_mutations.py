"""The corpus notices each loosened constraint of the schema and each dropped rule: some verdict changes."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.configs import documents
from vxconf.schema import schema_files
from vxconf.validate.rules import RULES
from vxconf.validate.rules.well_typed_view import file_view
from vxconf.validate.schema_errors import schema_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.validate.finding import Finding
    from vxconf.validate.rules.well_typed_view import FileView

_CONSTRAINTS = frozenset(
    {
        "type",
        "additionalProperties",
        "required",
        "minItems",
        "minLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "pattern",
        "enum",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "anyOf",
        "items",
    }
)
_NOT_SCHEMAS = frozenset({"examples", "default"})

Path = tuple[str | int, ...]
Verdict = frozenset[tuple[str, tuple[str | int, ...]]]


def _nodes(node: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield at, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        if key not in _NOT_SCHEMAS:
            yield from _nodes(child, (*at, key))


def _mutations() -> Iterator[Path]:
    """The path of each keyword, field and branch that a mutation takes out."""
    for at, node in _nodes(schema_files.load("vx")):
        if not isinstance(node, dict) or (at and at[-1] in {"properties", "definitions"}):
            continue
        for keyword in node:
            if keyword in _CONSTRAINTS:
                yield (*at, keyword)
        for field in node.get("properties", {}):
            yield (*at, "properties", field)
        for index, _ in enumerate(node.get("anyOf", [])):
            yield (*at, "anyOf", index)


def _copy(path: Path) -> tuple[Any, Any]:
    """A copy of a schema, and the node in it that holds the last part of `path`."""
    mutant: Any = copy.deepcopy(schema_files.load("vx"))
    parent = mutant
    for key in path[:-1]:
        parent = parent[key]
    return mutant, parent


def _without(path: Path) -> Any:
    mutant, parent = _copy(path)
    del parent[path[-1]]
    return mutant


def _shifted(path: Path, by: int) -> Any:
    mutant, parent = _copy(path)
    parent[path[-1]] += by
    return mutant


@functools.cache
def _corpus() -> tuple[Any, ...]:
    # files with every field come first: most mutations are noticed there
    return tuple(sorted(documents(), key=lambda d: -len(d.text)))


def _verdict(data: object, form: Any, root: Any) -> Verdict:
    # a verdict is the codes and the fields; another wording is the same verdict
    return frozenset((finding.code, finding.path) for finding in schema_findings(data, form, "vx", root))


@functools.cache
def _verdicts() -> tuple[Verdict, ...]:
    return tuple(_verdict(d.data, d.format, schema_files.load("vx")) for d in _corpus())


def _survives(root: Any) -> bool:
    return all(_verdict(d.data, d.format, root) == v for d, v in zip(_corpus(), _verdicts(), strict=True))


def test_there_are_as_many_constraints_as_a_schema_of_this_size_has() -> None:
    assert len(list(_mutations())) >= 190


@pytest.mark.parametrize("path", list(_mutations()), ids=lambda path: "/".join(map(str, path)))
def test_taking_out_a_constraint_changes_a_verdict(path: Path) -> None:
    assert not _survives(_without(path))


_BOUNDS = [p for p in _mutations() if p[-1] in {"minimum", "exclusiveMinimum", "maximum"}]


@pytest.mark.parametrize("path", _BOUNDS, ids=lambda path: "/".join(map(str, path)))
@pytest.mark.parametrize("by", [-1, 1])
def test_moving_a_bound_changes_a_verdict(path: Path, by: int) -> None:
    assert not _survives(_shifted(path, by))


def _findings(rules: tuple[Callable[[FileView], Iterator[Finding]], ...]) -> set[Finding]:
    return {finding for d in _corpus() for rule in rules for finding in rule(file_view(d.data))}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_dropping_a_rule_changes_a_verdict(rule: Callable[[FileView], Iterator[Finding]]) -> None:
    rest = tuple(other for other in RULES if other is not rule)
    assert _findings(rest) != _findings(RULES)


def test_every_rule_has_a_code_of_its_own_or_shares_none_of_its_findings() -> None:
    seen: dict[tuple[str, Any], str] = {}
    for d in _corpus():
        for rule in RULES:
            for finding in rule(file_view(d.data)):
                owner = seen.setdefault((finding.code, (d.file, finding.path)), rule.__name__)
                assert owner == rule.__name__
