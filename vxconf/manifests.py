"""The name a directory has for its own package manager."""

from __future__ import annotations

import json
import os
import tomllib

from vxconf.reading import ReadError, read


def names(directory: str) -> tuple[str, ...]:
    """The names in `package.json` and `pyproject.toml`; a file that does not parse gives none."""
    found = (_npm(os.path.join(directory, "package.json")), _python(os.path.join(directory, "pyproject.toml")))
    return tuple(name for name in found if isinstance(name, str) and name)


def _npm(path: str) -> object:
    try:
        data = json.loads(read(path))
    except (ReadError, ValueError, RecursionError):
        return None
    return data.get("name") if isinstance(data, dict) else None


def _python(path: str) -> object:
    try:
        data = tomllib.loads(read(path).decode("utf-8-sig"))
    except (ReadError, ValueError, RecursionError):
        return None
    project = data.get("project")
    return project.get("name") if isinstance(project, dict) else None
