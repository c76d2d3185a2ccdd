"""The globs by which a workspace names its projects, read from the file of whichever tool marks the workspace.

The files are `.vx/workspace.toml` (`projects`), `pnpm-workspace.yaml` (`packages`), `package.json` (`workspaces`) and
`pyproject.toml` (`[tool.uv.workspace]` `members`, `exclude`). For another tool's globs a directory counts only where
that tool's manifest is, as it does for the tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vxconf.document import toml_subset
from vxconf.document.read_file import ReadError, read_file

if TYPE_CHECKING:
    from vxconf.workspace.root import Root


class MemberGlobs(NamedTuple):
    """The members that a workspace's own file names.

    Attributes:
        include, exclude: globs of directories, relative to the root, without a `/` at the end.
        manifest: the file a matching directory must hold to count, or an empty string.
        cache_dir: the cache directory as written, or an empty string.
        problem: the reason why the file names none, or an empty string; with a problem the fields above are empty.
        code: the problem's diagnostic code.
        help: advice about the problem.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    manifest: str = ""
    cache_dir: str = ""
    problem: str = ""
    code: str = ""
    help: str = ""


class _Problem(Exception):
    def __init__(self, code: str, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.found = MemberGlobs(problem=problem, code=code, help=remedy)


def member_globs(root: Root) -> MemberGlobs:
    """The member globs of a workspace; none for a root chosen by git or by the project alone."""
    reader = {"workspace.toml": _own, "pnpm": _pnpm, "package.json": _npm, "uv": _uv}.get(root.rule)
    if reader is None:
        return MemberGlobs()
    try:
        return reader(read_file(root.marker))
    except ReadError as fault:
        return MemberGlobs(problem=f"the file {fault.message}", code="VX001", help=fault.help)
    except _Problem as fault:
        return fault.found


def _own(raw: bytes) -> MemberGlobs:
    try:
        data = _toml(raw)
        globs = _strings(data, "projects")
    except _Problem:
        # the file is validated as a document of its own, which gives the fault its place
        return MemberGlobs()
    for glob in globs:
        bare = glob.removeprefix("!")
        if bare.startswith("/") or ".." in bare.split("/"):
            raise _Problem(
                "VX308",
                f'projects "{glob}" leaves the workspace',
                "name directories below the workspace root, relative to it",
            )
    include, exclude = _split(globs)
    cache = data.get("cacheDir")
    return MemberGlobs(include=include, exclude=exclude, cache_dir=cache if isinstance(cache, str) else "")


def _pnpm(raw: bytes) -> MemberGlobs:
    from vxconf.workspace.pnpm_yaml import NotAList, top_level_list

    try:
        globs = top_level_list(_text(raw), "packages")
    except NotAList as fault:
        raise _Problem(
            "VX102", str(fault), "write packages as a plain list of globs, or use .vx/workspace.toml"
        ) from None
    include, exclude = _split(globs)
    return MemberGlobs(include=include, exclude=exclude, manifest="package.json")


def _npm(raw: bytes) -> MemberGlobs:
    import json

    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        raise _Problem("VX004", "the file is not JSON", "repair it, or use .vx/workspace.toml") from None
    value = data.get("workspaces") if isinstance(data, dict) else None
    globs = _strings(value, "packages") if isinstance(value, dict) else _strings({"workspaces": value}, "workspaces")
    include, exclude = _split(globs)
    return MemberGlobs(include=include, exclude=exclude, manifest="package.json")


def _uv(raw: bytes) -> MemberGlobs:
    found: dict[str, Any] = _toml(raw)["tool"]["uv"]["workspace"]
    return MemberGlobs(
        include=_split(_strings(found, "members"))[0],
        exclude=_split(_strings(found, "exclude"))[0],
        manifest="pyproject.toml",
    )


def _toml(raw: bytes) -> dict[str, Any]:
    text = _text(raw)
    data: dict[str, Any] | None = toml_subset.read(text)
    if data is not None:
        return data
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as fault:
        raise _Problem("VX004", f"the file does not parse: {str(fault)[:200]}", "repair the syntax") from None


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Problem("VX003", "the file is not UTF-8", "save it as UTF-8") from None


def _strings(data: dict[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(glob, str) and glob for glob in value):
        raise _Problem("VX102", f"{key} is not a list of non-empty strings", f'write {key} = ["apps/*", "libs/*"]')
    return tuple(value)


def _split(globs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The globs to include and, without their `!`, the globs to exclude; a glob that leaves the root is dropped."""
    include: list[str] = []
    exclude: list[str] = []
    for glob in globs:
        bare = glob.removeprefix("!")
        parts = [part for part in bare.split("/") if part not in {"", "."}]
        if parts and ".." not in parts and not bare.startswith("/"):
            (exclude if glob.startswith("!") else include).append("/".join(parts))
    return tuple(include), tuple(exclude)
