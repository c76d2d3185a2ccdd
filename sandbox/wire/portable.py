"""Configs, requests and results as JSON another machine understands: a version, sorted keys, and anchors for places.

    {workspace}, {project}, {home}    at the start of a path or a grant
    "{{" and "}}"                     a brace in text for people

A path outside all three stays absolute. What is read is resolved again against the file system it is read on: a link
on the way to a grant counts as it is there, and walls and credential stores are looked for anew. Pure.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.base import globs, paths
from sandbox.contract import refusal_codes, results
from sandbox.contract.config import VERSION, ResolvedSandboxConfig
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.request import build, credentials
from sandbox.request.request import WorkspaceFacts
from sandbox.request.task_outputs import Declared
from sandbox.wire import config_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.results import RunResult
    from sandbox.request.request import Request

_GRANTS = ("allowRead", "allowWrite")
_PLAIN = ("workspace", "project")
# a machine's path in a sentence begins where a word does, and ends at a separator or where a word does
_BEFORE, _AFTER = r"(?<![\w/.~-])", r"(?=/|$|[^\w.-])"
_TOKENS = re.compile(r"\{\{|\}\}|\{(workspace|project|home)\}")


class Anchors(NamedTuple):
    """What the anchors stand for on one machine; canonical directories."""

    workspace: str
    project: str
    home: str


def config_to_json(config: ResolvedSandboxConfig, *, home: str) -> str:
    """One line of JSON; `home` is the canonical home directory the config was resolved with."""
    return _dump("config", _config(config, home))


def config_from_json(text: str, *, workspace: str, home: str, files: Files) -> ResolvedSandboxConfig:
    """The config, with every path as it is on this machine.

    Args:
        text: from `config_to_json`, of any machine.
        workspace: canonical, where the same workspace is here.
        home: canonical.
        files: the host's file system.

    Raises:
        RequestRefused: it is not such a text, or a write grant of the project leads out of it here.
    """
    return _read_config(_load(text, "config"), workspace=workspace, home=home, files=files)


def request_to_json(attempt: Request) -> str:
    """One line of JSON: the config and what `sandbox.request.build` was told of the workspace, not what it found."""
    home, config = attempt.facts.home, attempt.config
    places = Anchors(attempt.workspace_root, config.project, home)
    given = attempt.workspace
    told = {
        "keyed": None if given.keyed is None else [_out(path, places) for path in given.keyed],
        "nested": [_out(path, places) for path in given.nested],
        "dependencyOutputs": [_out(path, places) for path in given.dependency_outputs],
        "dependencyReported": [_out(path, places) for path in given.dependency_reported],
        "cacheDir": None if given.cache_dir is None else _out(given.cache_dir, places),
        "links": [[_out(place, places), _link_text(target, places)] for place, target in given.links],
        "declared": {
            "own": _patterns_out(given.declared.own, places),
            "upstream": [[task, _patterns_out(made, places)] for task, made in given.declared.upstream],
        },
    }
    return _dump("request", {"config": _config(config, home), "given": told})


def request_from_json(text: str, *, workspace: str, facts: HostFacts, files: Files) -> Request:
    """The request, built anew on this machine.

    Raises:
        RequestRefused: it is not such a text, or it is refused here, with every reason.
    """
    data = _load(text, "request")
    config = _read_config(data.get("config"), workspace=workspace, home=facts.home, files=files)
    places = Anchors(workspace, config.project, facts.home)
    given = data.get("given")
    if not isinstance(given, dict) or set(given) != _TOLD:
        raise _malformed("given", f"the request's given is not an object with {', '.join(sorted(_TOLD))}")

    def one(path: object, key: str) -> str:
        if not isinstance(path, str):
            raise _malformed(f"given.{key}", f'"given.{key}" holds something that is no path')
        return _in(path, places, f"given.{key}")

    def many(key: str) -> tuple[str, ...]:
        if not isinstance(given[key], list):
            raise _malformed(f"given.{key}", f'"given.{key}" is not a list')
        return tuple(one(path, key) for path in given[key])

    links = given["links"]
    if not isinstance(links, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in links):  # noqa: PLR2004  a pair
        raise _malformed("given.links", '"given.links" is not a list of pairs')
    known = WorkspaceFacts(
        root=workspace,
        keyed=None if given["keyed"] is None else many("keyed"),
        nested=many("nested"),
        dependency_outputs=many("dependencyOutputs"),
        dependency_reported=many("dependencyReported"),
        cache_dir=None if given["cacheDir"] is None else one(given["cacheDir"], "cacheDir"),
        links=tuple((one(place, "links"), _link_target(target, places)) for place, target in links),
        declared=_declared_in(given["declared"], places),
    )
    return build.build(config, known, files=files, facts=facts)


def _patterns_out(patterns: tuple[str, ...], places: Anchors) -> list[str]:
    """Absolute output patterns; the mark of one that takes files back stays before the anchor."""
    escaped = _escaped(places)
    return [f"!{_out(p[1:], escaped)}" if p.startswith("!") else _out(p, escaped) for p in patterns]


def _declared_in(data: object, places: Anchors) -> Declared:
    escaped = _escaped(places)

    def patterns(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(pattern, str) for pattern in value):
            raise _malformed("given.declared", '"given.declared" holds something that is no list of patterns')
        return tuple(
            f"!{_in(p[1:], escaped, 'given.declared')}" if p.startswith("!") else _in(p, escaped, "given.declared")
            for p in value
        )

    upstream = data.get("upstream") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(upstream, list) or not all(map(_is_made, upstream)):
        raise _malformed("given.declared", '"given.declared" is not an object with own and upstream')
    return Declared(own=patterns(data.get("own")), upstream=tuple((task, patterns(made)) for task, made in upstream))


def _is_made(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)  # noqa: PLR2004  a pair


def result_to_json(result: RunResult, places: Anchors) -> str:
    """One line of JSON; captured output is base64."""
    return _dump("result", _walk(result, lambda text: _words_out(text, places)))


def result_from_json(text: str, places: Anchors) -> RunResult:
    """The result, with this machine's places in it.

    Raises:
        RequestRefused: it is not such a text.
    """
    try:
        read: RunResult = _rebuilt(results.RunResult, _load(text, "result"), lambda word: _words_in(word, places))
    except (TypeError, KeyError, ValueError) as error:
        raise _malformed("", f"the text is no result: {error}") from None
    return read


def _dump(kind: str, value: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, "version": VERSION, "value": value}, sort_keys=True, separators=(",", ":"))


def _load(text: str, kind: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise _malformed("", f"the {kind} is not JSON") from None
    if not isinstance(data, dict) or set(data) != {"kind", "version", "value"} or data["kind"] != kind:
        raise _malformed("kind", f"the text is not a {kind} written for another machine")
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise _malformed("version", f'"version" is not {VERSION}, the version this program reads')
    value = data["value"]
    if not isinstance(value, dict):
        raise _malformed("value", '"value" is not an object')
    return value


def _malformed(field: str, message: str) -> RequestRefused:
    hint = "write it with sandbox.wire.portable, of the same version"
    return RequestRefused((Refusal(message, field=field, code=refusal_codes.MALFORMED, hint=hint),))


# paths and grants: an anchor stands at their start alone


def _config(config: ResolvedSandboxConfig, home: str) -> dict[str, Any]:
    places = Anchors(config.workspace, config.project, home)
    data = config_json.to_dict(config)
    data["workspace"] = "{workspace}"
    data["project"] = _out(config.project, places._replace(project=""))
    for key in _GRANTS:
        data[key] = [_out(grant, _escaped(places)) for grant in data[key]]
    for key in ("read", "write"):
        data["ignore"][key] = [_out(_anchored(grant, places), _escaped(places)) for grant in data["ignore"][key]]
    if isinstance(data["unixSockets"], list):
        data["unixSockets"] = [_out(path, places) for path in data["unixSockets"]]
    return data


def _read_config(data: object, *, workspace: str, home: str, files: Files) -> ResolvedSandboxConfig:
    if not isinstance(data, dict) or not all(isinstance(data.get(key), str) for key in _PLAIN):
        raise _malformed("config", "the config is not an object with a workspace and a project")
    places = Anchors(workspace, "", home)
    places = places._replace(project=_in(data["project"], places, "project"))
    read = dict(data, workspace=workspace, project=places.project)
    for key in _GRANTS:
        read[key] = _grants(data.get(key), key, places, files)
    ignore = data.get("ignore")
    if isinstance(ignore, dict):
        read["ignore"] = dict(ignore)
        for key in ("read", "write"):
            read["ignore"][key] = _grants(ignore.get(key), f"ignore.{key}", places, files)
    if isinstance(data.get("unixSockets"), list):
        read["unixSockets"] = [
            _socket(path, f"unixSockets[{index}]", places, files) if isinstance(path, str) else path
            for index, path in enumerate(data["unixSockets"])
        ]
    return config_json.from_dict(read)


def _grants(value: object, field: str, places: Anchors, files: Files) -> object:
    if not isinstance(value, list) or not all(isinstance(grant, str) for grant in value):
        return value  # said by who reads the whole
    return [one for index, grant in enumerate(value) for one in _resolved(grant, f"{field}[{index}]", places, files)]


def _resolved(written: str, field: str, places: Anchors, files: Files) -> Iterator[str]:
    inside = written.startswith("{project}")
    for grant in globs.expand_braces(_in(written, _escaped(places), field)):
        yield _grant(grant, field, inside, places, files)


def _grant(grant: str, field: str, inside: bool, places: Anchors, files: Files) -> str:
    """The grant with its links resolved, which choose no more here than they may anywhere."""
    if globs.has_wildcard(grant):
        base = globs.literal_base(grant)
        rest = grant.split("/")[len(paths.parts(base)) + 1 :]
        real = paths.canonical(base, files)
        resolved = paths.join(globs.escape(real), "/".join(rest))
    else:
        base = globs.unescape(grant)
        real = paths.canonical(base, files)
        resolved = globs.escape(real) + ("/" if grant.endswith("/") and real != "/" else "")
    if inside and field.startswith("allowWrite"):
        _hold_inside(grant, real, field, places)
    if field.startswith("allowRead"):
        path = paths.normal(base)
        closed = credentials.led_into(path, real, home=places.home, workspace=places.workspace, files=files)
        if closed:
            raise _led(grant, f"into {closed}", field)
    return resolved


def _socket(written: str, field: str, places: Anchors, files: Files) -> str:
    path = _in(written, places, field)
    real = paths.canonical(path, files)
    if written.startswith("{project}"):
        _hold_inside(path, real, field, places)
    return real


def _hold_inside(grant: str, real: str, field: str, places: Anchors) -> None:
    if not paths.at_or_under(real, places.project):
        raise _led(grant, f"out of the project here, to {real}", field)


def _led(grant: str, where: str, field: str) -> RequestRefused:
    refusal = Refusal(
        f"{grant} leads through a link {where}",
        field=field,
        code=refusal_codes.MOVED,
        hint="take the link away, or resolve the config on this machine",
    )
    return RequestRefused((refusal,))


def _anchored(grant: str, places: Anchors) -> str:
    """What is ignored may be spelled from the project."""
    return grant if grant.startswith("/") else paths.join(globs.escape(places.project), grant)


def _escaped(places: Anchors) -> Anchors:
    return Anchors(*map(globs.escape, places))


def _out(path: str, places: Anchors) -> str:
    """The path from the innermost place that holds it."""
    for name, place in sorted(zip(Anchors._fields, places, strict=True), key=lambda pair: -len(pair[1])):
        if place and place != "/" and (path == place or path.startswith(place + "/")):
            return "{" + name + "}" + path[len(place) :]
    return path


def _in(path: str, places: Anchors, field: str) -> str:
    for name, place in zip(Anchors._fields, places, strict=True):
        anchor = "{" + name + "}"
        if place and (path == anchor or path.startswith(anchor + "/")):
            return place + path[len(anchor) :]
    if not path.startswith("/"):
        raise _malformed(field, f'"{path}" of {field} is neither absolute nor begins with a known place')
    return path


def _link_text(target: str, places: Anchors) -> str:
    return f"./{target}" if target.startswith("{") else _out(target, places)


def _link_target(target: object, places: Anchors) -> str:
    if not isinstance(target, str):
        raise _malformed("given.links", '"given.links" holds something that is no path')
    return _in(target, places, "given.links") if target.startswith("{") else target


# text for people: an anchor may stand anywhere, and a brace is written twice


def _words_out(text: str, places: Anchors) -> str:
    held = {place: name for name, place in places._asdict().items() if place and place != "/"}
    if not held:
        return _doubled(text)
    inner = "|".join(re.escape(place) for place in sorted(held, key=len, reverse=True))
    parts = re.split(f"({_BEFORE}(?:{inner}){_AFTER})", text)
    return "".join("{" + held[part] + "}" if index % 2 else _doubled(part) for index, part in enumerate(parts))


def _words_in(text: str, places: Anchors) -> str:
    named: dict[str, str] = places._asdict()

    def meant(found: re.Match[str]) -> str:
        name, token = found.group(1), found.group()
        return named[name] if name else token[0]

    return _TOKENS.sub(meant, text)


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


# results: plain frozen values all the way down


def _walk(value: Any, text: Callable[[str], str]) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _walk(getattr(value, field.name), text) for field in dataclasses.fields(value)}
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple):
        return [_walk(entry, text) for entry in value]
    return value


def _rebuilt(kind: Any, data: Any, text: Callable[[str], str]) -> Any:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if not isinstance(data, dict) or set(data) != set(fields):
        raise ValueError(f"{kind.__name__} has the keys {', '.join(fields)}")
    return kind(**{name: _value(str(field.type), data[name], text) for name, field in fields.items()})


def _value(annotation: str, data: Any, text: Callable[[str], str]) -> Any:
    """A value of a field, by the annotation as it is written."""
    if annotation.startswith("tuple["):
        if not isinstance(data, list):
            raise ValueError(f"{data!r} is no list")
        inner = annotation.removeprefix("tuple[").removesuffix("]").removesuffix(", ...")
        return tuple(_value(inner, entry, text) for entry in data)
    if annotation.endswith(" | None"):
        return None if data is None else _value(annotation.removesuffix(" | None"), data, text)
    if annotation == "bytes":
        return base64.b64decode(data, validate=True)
    named = getattr(results, annotation, None)
    if dataclasses.is_dataclass(named):
        return _rebuilt(named, data, text)
    plain: dict[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (int, float)}
    expected = plain.get(annotation, (str,))
    if not isinstance(data, expected) or (isinstance(data, bool) and annotation != "bool"):
        raise ValueError(f"{data!r} is no {annotation}")
    return text(data) if isinstance(data, str) else data


_TOLD = {"keyed", "nested", "dependencyOutputs", "dependencyReported", "cacheDir", "links", "declared"}


def places_of(config: ResolvedSandboxConfig, *, home: str) -> Anchors:
    """The places the anchors of a config's results stand for."""
    return Anchors(config.workspace, config.project, home)
