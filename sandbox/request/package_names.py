"""Whether a directory holds the package it is installed as: what a task leaves as a link must open nothing else. Pure.

A task that may write `node_modules` or an environment chooses the names and the targets of what is linked there, and
not what is written in a directory it cannot write. So a package's own files have to say its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sandbox.base import paths
from sandbox.base.host_facts import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files

#: The most bytes of a manifest that are read; of a larger one nothing is known.
_MANIFEST = 1 << 20
_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
#: The beginnings of a dependency that may be installed under a name other than the package's.
_UNDER_ANY_NAME = ("file:", "link:", "npm:", "portal:", "workspace:")
#: Files that package managers leave in a directory of installed packages.
_INSTALLED = (".package-lock.json", ".modules.yaml", ".yarn-state.yml", ".yarn-integrity")
_SEPARATORS = re.compile(r"[-_.]+")
_METADATA = (".egg-info", ".dist-info")


def is_modules(directory: str, files: Files) -> bool:
    """Whether a directory is one of installed packages, by its name or by what package managers leave there."""
    named = paths.name(directory) == "node_modules"
    return named or any(files.kind(paths.join(directory, name)) is Kind.FILE for name in _INSTALLED)


def is_environment(directory: str, files: Files) -> bool:
    """Whether a directory is a virtual environment (Python's `venv`)."""
    return files.kind(paths.join(directory, "pyvenv.cfg")) is Kind.FILE


def is_node_package(directory: str, name: str, modules: str, files: Files) -> bool:
    """Whether a directory holds the package that is installed as `name`.

    Args:
        directory: canonical.
        name: as installed, such as `@acme/dates`.
        modules: the `node_modules` it is installed in; the manifest beside that may name the package otherwise.
        files: the host's.
    """
    said = _json(paths.join(directory, "package.json"), files).get("name")
    if said == name:
        return True
    return isinstance(said, str) and bool(said) and name in _renamed(paths.parent(modules), files)


def _renamed(project: str, files: Files) -> Iterator[str]:
    """The names under which a manifest asks for packages that may be called otherwise."""
    manifest = _json(paths.join(project, "package.json"), files)
    for field in _DEPENDENCIES:
        listed = manifest.get(field)
        for name, wanted in listed.items() if isinstance(listed, dict) else ():
            if isinstance(wanted, str) and wanted.startswith(_UNDER_ANY_NAME):
                yield name


def _json(path: str, files: Files) -> dict[str, Any]:
    raw = files.read(path, _MANIFEST)
    if not raw:
        return {}
    import json  # few configs have linked packages

    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def is_python_package(directory: str, name: str, files: Files) -> bool:
    """Whether a directory holds the distribution `name`: by its manifest, its metadata or a package of the name.

    Args:
        directory: of the project, or on the search path; canonical. The project of `src` is the directory above it.
        name: as installed; letters, `-`, `_` and `.` compare as in names of distributions.
        files: the host's.
    """
    wanted = _plain(name)
    if not wanted:
        return False
    places = (directory, paths.join(directory, "src"))
    if any(_has_metadata(place, wanted, files) or _is_importable(place, wanted, files) for place in places):
        return True
    return any(wanted in _declared(place, files) for place in (directory, paths.parent(directory)))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def _has_metadata(place: str, wanted: str, files: Files) -> bool:
    for entry in files.entries(place):
        stem, dot, kind = entry.rpartition(".")
        if dot + kind in _METADATA and _plain(stem.partition("-")[0]) == wanted:
            return True
    return False


def _is_importable(place: str, wanted: str, files: Files) -> bool:
    """Whether a package of the name can be imported; a module alone may be any script, and says nothing."""
    return any(
        _plain(entry) == wanted and files.kind(paths.join(place, entry, "__init__.py")) is Kind.FILE
        for entry in files.entries(place)
    )


def _declared(project: str, files: Files) -> Iterator[str]:
    """The names a project's own files declare."""
    for table in _toml(paths.join(project, "pyproject.toml"), files):
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            yield _plain(table["name"])
    raw = files.read(paths.join(project, "setup.cfg"), _MANIFEST)
    if raw:
        from configparser import Error, RawConfigParser  # such projects are few

        parser = RawConfigParser()
        try:
            parser.read_string(raw.decode("utf-8"))
        except (Error, ValueError):
            return
        yield _plain(parser.get("metadata", "name", fallback=""))


def _toml(path: str, files: Files) -> tuple[Any, ...]:
    """The tables of a `pyproject.toml` in which a name may stand."""
    raw = files.read(path, _MANIFEST)
    if not raw:
        return ()
    import tomllib  # few configs have linked packages

    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return ()
    tools = data.get("tool")
    return (data.get("project"), tools.get("poetry") if isinstance(tools, dict) else None)


def names_of_search_path(file: str, site: str, files: Files) -> tuple[str, ...]:
    """The distributions whose sources a `.pth` file may name, by the name that installers give the file.

    `easy-install.pth` stands for all that have an `.egg-link` beside it.
    """
    stem = file.removesuffix(".pth")
    if stem == "easy-install":
        return tuple(name.removesuffix(".egg-link") for name in files.entries(site) if name.endswith(".egg-link"))
    for start in ("_editable_impl_", "__editable__.", "_"):
        stem = stem.removeprefix(start)
    return (stem.partition("-")[0],)
