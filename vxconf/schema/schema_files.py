"""The schema files: their text, and the look-up of a field in them.

A wheel has them in `vxconf/_schema`, a checkout in the sibling folder `schema/`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics.diagnostic import FieldPath

Name = Literal["vx", "workspace", "resolved"]
Schema = dict[str, Any]

#: The part of a template path that stands for a name of the user's choosing, such as a task's.
ANY = "*"


def text(name: Name) -> str:
    """The schema as JSON text.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    package = files("vxconf")
    wheel = package.joinpath("_schema", f"{name}.schema.json")
    if wheel.is_file():
        return wheel.read_text("utf-8")
    return package.joinpath("..", "schema", f"{name}.schema.json").read_text("utf-8")


@cache
def load(name: Name) -> Schema:
    """The parsed schema, which is shared and must not be changed."""
    schema: Schema = json.loads(text(name))
    return schema


def resolve(root: Schema, node: Schema) -> Schema:
    """The node itself, or the definition its `$ref` stands for."""
    while "$ref" in node:
        node = root["definitions"][node["$ref"].rpartition("/")[2]]
    return node


def properties(root: Schema, node: Schema) -> dict[str, Schema]:
    """The schemas of a table's fields by key; `ANY` stands for names of the user's choosing."""
    node = resolve(root, node)
    known = {key: resolve(root, sub) for key, sub in node.get("properties", {}).items()}
    rest = node.get("additionalProperties")
    return known | ({ANY: resolve(root, rest)} if isinstance(rest, dict) else {})


def lookup(root: Schema, path: FieldPath) -> Schema | None:
    """The schema of the field at `path`, `None` when there is none.

    An index leads into the list branch of a field that is `true` or a list.
    """
    node: Schema | None = root
    for part in path:
        if node is None:
            return None
        if isinstance(part, int):
            branches = [node, *node.get("anyOf", [])]
            items = next((b["items"] for b in branches if "items" in b), None)
            node = None if items is None else resolve(root, items)
        else:
            known = properties(root, node)
            node = known.get(part, known.get(ANY))
    return node


def walk(
    root: Schema, node: Schema | None = None, at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Every field below a table with its template path, in the schema's order; a table comes before its fields."""
    for key, sub in properties(root, root if node is None else node).items():
        yield (*at, key), sub
        yield from walk(root, sub, (*at, key))


@cache
def homes(name: Name) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The tables that know each key, as template paths."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for path, _ in walk(load(name)):
        found.setdefault(path[-1], []).append(path[:-1])
    return {key: tuple(places) for key, places in found.items()}
