"""A request as a JSON value another machine understands, and back: it is built anew where it is read. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.request import build
from sandbox.request.request import WorkspaceFacts
from sandbox.request.task_outputs import Declared
from sandbox.wire.anchors import Anchors, link_in, link_out, path_in, path_out
from sandbox.wire.envelope import malformed
from sandbox.wire.portable_config import config_in, config_out

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.request.request import Request

_TOLD = {"keyed", "nested", "dependencyOutputs", "dependencyReported", "cacheDir", "links", "declared"}


def request_out(request: Request) -> dict[str, Any]:
    """The JSON value: the config and the facts of the workspace, not what was found with them."""
    config, home = request.config, request.facts.home
    places = Anchors(request.workspace_root, config.project, home)
    known = request.workspace

    def many(found: tuple[str, ...]) -> list[str]:
        return [path_out(path, places) for path in found]

    given = {
        "keyed": None if known.keyed is None else many(known.keyed),
        "nested": many(known.nested),
        "dependencyOutputs": many(known.dependency_outputs),
        "dependencyReported": many(known.dependency_reported),
        "cacheDir": None if known.cache_dir is None else path_out(known.cache_dir, places),
        "links": [[path_out(place, places), link_out(target, places)] for place, target in known.links],
        "declared": {
            "own": _patterns_out(known.declared.own, places),
            "upstream": [[task, _patterns_out(made, places)] for task, made in known.declared.upstream],
            "inputs": _patterns_out(known.declared.inputs, places),
        },
    }
    return {"config": config_out(config, home), "given": given}


def request_in(data: dict[str, Any], *, workspace: str, facts: HostFacts, files: Files) -> Request:
    """The request, built anew on this machine.

    Raises:
        RequestRefused: it is no such value, or it is refused here, with every reason.
    """
    config = config_in(
        data.get("config"), workspace=workspace, home=facts.home, files=files, other_homes=facts.other_homes
    )
    known = _known_in(data.get("given"), workspace, Anchors(workspace, config.project, facts.home))
    return build.build(config, known, files=files, facts=facts)


def _known_in(given: object, workspace: str, places: Anchors) -> WorkspaceFacts:
    """The facts of the workspace, with this machine's places in them."""
    if not isinstance(given, dict) or set(given) != _TOLD:
        raise malformed("given", f"the request's given is not an object with {', '.join(sorted(_TOLD))}")

    def one(path: object, key: str) -> str:
        if not isinstance(path, str):
            raise malformed(f"given.{key}", f'"given.{key}" holds something that is no path')
        return path_in(path, places, f"given.{key}")

    def many(key: str) -> tuple[str, ...]:
        if not isinstance(given[key], list):
            raise malformed(f"given.{key}", f'"given.{key}" is not a list')
        return tuple(one(path, key) for path in given[key])

    links = given["links"]
    if not isinstance(links, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in links):  # noqa: PLR2004  a pair
        raise malformed("given.links", '"given.links" is not a list of pairs')
    return WorkspaceFacts(
        root=workspace,
        keyed=None if given["keyed"] is None else many("keyed"),
        nested=many("nested"),
        dependency_outputs=many("dependencyOutputs"),
        dependency_reported=many("dependencyReported"),
        cache_dir=None if given["cacheDir"] is None else one(given["cacheDir"], "cacheDir"),
        links=tuple((one(place, "links"), link_in(target, places)) for place, target in links),
        declared=_declared_in(given["declared"], places),
    )


def _patterns_out(patterns: tuple[str, ...], places: Anchors) -> list[str]:
    """Absolute patterns; the `!` of one that takes files back stays before the anchor."""
    escaped = places.escaped()
    return [f"!{path_out(p[1:], escaped)}" if p.startswith("!") else path_out(p, escaped) for p in patterns]


def _declared_in(data: object, places: Anchors) -> Declared:
    escaped, field = places.escaped(), "given.declared"

    def pattern(text: str) -> str:
        back = "!" if text.startswith("!") else ""
        return back + path_in(text.removeprefix("!"), escaped, field)

    def patterns(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise malformed(field, f'"{field}" holds something that is no list of patterns')
        return tuple(map(pattern, value))

    upstream = data.get("upstream") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(upstream, list) or not all(map(_is_made, upstream)):
        raise malformed(field, f'"{field}" is not an object with own and upstream')
    return Declared(
        own=patterns(data.get("own")),
        upstream=tuple((task, patterns(made)) for task, made in upstream),
        inputs=patterns(data.get("inputs", [])),
    )


def _is_made(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)  # noqa: PLR2004  a pair
