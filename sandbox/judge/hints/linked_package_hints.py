"""Notes on linked packages a cache key does not answer for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.results import Hint
from sandbox.judge import path_as_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.judge.attempt_denials import Denied
    from sandbox.judge.boundary import Boundary
    from sandbox.request.linked_packages import Withheld


def withheld(counted: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """One note for each withheld package a violation lies in: where it is linked, and what would make the key right."""
    paths_met = [access.path for access, _ in counted]
    return [
        Hint(line=_unkeyed(package, boundary), class_="grant")
        for package in boundary.packages
        if any(paths.at_or_under(path, package.dir) for path in paths_met)
    ]


def not_installed(counted: Iterable[Denied], walled: Iterable[Denied], boundary: Boundary) -> list[Hint]:
    """One note for the withheld packages whose sources an interpreter found missing when it started."""
    told = [access.path for access, _ in counted]
    missing = [access.path for access, _ in walled if access.path in boundary.asked]
    found = [
        package
        for package in boundary.packages
        if any(paths.at_or_under(path, package.dir) for path in missing)
        and not any(paths.at_or_under(path, package.dir) for path in told)
    ]
    if not found:
        return []
    names = path_as_entry.listed(dict.fromkeys(package.name for package in found))
    said = f"not importable, since it is no such package, or the cache key of the task does not answer for it: {names}"
    if not any(package.unnamed for package in found):
        said = f"not importable, since the cache key of the task does not answer for it: {names}"
    return [Hint(line=f"{said}; {_unkeyed(found[0], boundary)}", class_="grant")]


def _unkeyed(package: Withheld, boundary: Boundary) -> str:
    where = path_as_entry.shown(package.target)
    name, link = path_as_entry.shown(package.name), path_as_entry.shown(package.link)
    if package.unnamed:
        grant = path_as_entry.readable(package.dir, boundary)
        said = f"{where} is linked as {name} by {link}, and nothing in it says that it is that package"
        return f"{said}: install it again, or give {grant}"
    note = f"{where} is linked as {name} by {link}, and the cache key"
    note += " of the task answers for no task of it: "
    if package.owner:
        note += f"add a task of {path_as_entry.shown(package.owner)} that has a cache to dependsOn, or give "
    else:
        note += "give "
    note += f"allow.read = [{path_as_entry.quoted(path_as_entry.entry(package.dir, boundary, directory=True))}]"
    if paths.under(package.dir, boundary.workspace) and path_as_entry.unkeyed(package.dir, boundary):
        taken = path_as_entry.from_root(package.dir, boundary).removesuffix("/**")
        note += f" and cache.inputs.workspaceFiles = [{path_as_entry.quoted(taken + '/**')}]"
    return note
