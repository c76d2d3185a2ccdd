"""The names in a directory's `package.json` and `pyproject.toml`: its own, and those of its dependencies."""

from __future__ import annotations

import json
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any

from vxconf.document.read_file import ReadError, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_NPM_LISTS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_SEPARATORS = re.compile(r"[-_.]+")
#: The name at the start of a dependency specifier (PEP 508).
_SPECIFIED = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def manifest_names(directory: str) -> tuple[str, ...]:
    """The package names of a directory; a manifest that does not parse gives none."""
    found = (_npm(directory).get("name"), _project(_python(directory)).get("name"))
    return tuple(name for name in found if isinstance(name, str) and name)


def manifest_dependencies(directory: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The npm packages and the Python packages a directory depends on, the latter as `python_name` spells them."""
    npm = _npm(directory)
    listed = [name for key in _NPM_LISTS for name in _table(npm.get(key))]
    python = _python(directory)
    project = _project(python)
    lists = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    lists += _table(python.get("dependency-groups")).values()
    specified = [found.group(1) for text in _texts(lists) if (found := _SPECIFIED.match(text)) is not None]
    return tuple(dict.fromkeys(listed)), tuple(dict.fromkeys(map(python_name, specified)))


def python_name(name: str) -> str:
    """The normalized name of a Python distribution, which all its spellings share (PEP 503).

    >>> python_name("Acme_Money.Core")
    'acme-money-core'
    """
    return _SEPARATORS.sub("-", name).lower()


def _npm(directory: str) -> dict[str, Any]:
    try:
        data = json.loads(read_file(os.path.join(directory, "package.json")))
    except (ReadError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _python(directory: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_file(os.path.join(directory, "pyproject.toml")).decode("utf-8-sig"))
    except (ReadError, ValueError, RecursionError):
        return {}


def _project(data: dict[str, Any]) -> dict[str, Any]:
    return _table(data.get("project"))


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(lists: list[Any]) -> Iterator[str]:
    for one in lists:
        if isinstance(one, list):
            yield from (text for text in one if isinstance(text, str))
