"""A config as a JSON value another machine understands, and back: every link is resolved where it is read. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.base import globs, paths
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.request import credential_stores
from sandbox.request.protected_names import leads_to_policy
from sandbox.wire import config_json
from sandbox.wire.anchors import Anchors, path_in, path_out
from sandbox.wire.envelope import malformed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files
    from sandbox.contract.config import ResolvedSandboxConfig

_GRANTS = ("allowRead", "allowWrite")
_PLAIN = ("workspace", "project")


class _Here(NamedTuple):
    """This machine: its file system, and the homes with credential stores."""

    files: Files
    homes: tuple[str, ...]


def config_out(config: ResolvedSandboxConfig, home: str) -> dict[str, Any]:
    """The JSON value; `home` is the canonical home directory the config was resolved with."""
    places = Anchors(config.workspace, config.project, home)
    data = config_json.to_dict(config)
    data["workspace"] = "{workspace}"
    data["project"] = path_out(config.project, places._replace(project=""))
    for key in _GRANTS:
        data[key] = [path_out(grant, places.escaped()) for grant in data[key]]
    for key in ("read", "write"):
        data["ignore"][key] = [path_out(_anchored(grant, places), places.escaped()) for grant in data["ignore"][key]]
    if isinstance(data["unixSockets"], list):
        data["unixSockets"] = [path_out(path, places) for path in data["unixSockets"]]
    return data


def config_in(
    data: object, *, workspace: str, home: str, files: Files, other_homes: tuple[str, ...] = ()
) -> ResolvedSandboxConfig:
    """The config, with every path as it is on this machine.

    Args:
        data: from `config_out`, of any machine.
        workspace: canonical, where the same workspace is here.
        home: canonical.
        files: the host's file system.
        other_homes: further homes with credential stores, canonical.

    Raises:
        RequestRefused: it is no such value, or a link leads a grant out of the project or into a credential store here.
    """
    if not isinstance(data, dict) or not all(isinstance(data.get(key), str) for key in _PLAIN):
        raise malformed("config", "the config is not an object with a workspace and a project")
    places, here = Anchors(workspace, "", home), _Here(files, (home, *other_homes))
    places = places._replace(project=path_in(data["project"], places, "project"))
    read = dict(data, workspace=workspace, project=places.project)
    for key in _GRANTS:
        read[key] = _grants(data.get(key), key, places, here)
    ignore = data.get("ignore")
    if isinstance(ignore, dict):
        read["ignore"] = dict(ignore)
        for key in ("read", "write"):
            read["ignore"][key] = _grants(ignore.get(key), f"ignore.{key}", places, here)
    if isinstance(data.get("unixSockets"), list):
        read["unixSockets"] = [
            _socket(path, f"unixSockets[{index}]", places, files) if isinstance(path, str) else path
            for index, path in enumerate(data["unixSockets"])
        ]
    return config_json.from_dict(read)


def _grants(value: object, field: str, places: Anchors, here: _Here) -> object:
    if not isinstance(value, list) or not all(isinstance(grant, str) for grant in value):
        return value  # said by who reads the whole
    return [one for index, grant in enumerate(value) for one in _resolved(grant, f"{field}[{index}]", places, here)]


def _resolved(written: str, field: str, places: Anchors, here: _Here) -> Iterator[str]:
    inside = written.startswith("{project}")
    for grant in globs.expand_braces(path_in(written, places.escaped(), field)):
        yield _grant(grant, field, inside, places, here)


def _grant(grant: str, field: str, inside: bool, places: Anchors, here: _Here) -> str:
    """The grant with its links resolved; a link here chooses no more than links may anywhere."""
    if globs.has_wildcard(grant):
        base = globs.literal_base(grant)
        rest = grant.split("/")[len(paths.parts(base)) + 1 :]
        real = paths.canonical(base, here.files)
        resolved = paths.join(globs.escape(real), "/".join(rest))
    else:
        base = globs.unescape(grant)
        real = paths.canonical(base, here.files)
        resolved = globs.escape(real) + ("/" if grant.endswith("/") and real != "/" else "")
    if inside and field.startswith("allowWrite"):
        _hold_inside(grant, real, field, places)
    if field.startswith("allowWrite") and leads_to_policy(paths.normal(base), real):
        raise _led(grant, f"to {real}", field)
    if field.startswith("allowRead"):
        path = paths.normal(base)
        closed = credential_stores.led_into(path, real, homes=here.homes, workspace=places.workspace, files=here.files)
        if closed:
            raise _led(grant, f"into {closed}", field)
    return resolved


def _socket(written: str, field: str, places: Anchors, files: Files) -> str:
    path = path_in(written, places, field)
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
    """The entry of an `ignore` list, which may be spelled from the project, made absolute."""
    return grant if grant.startswith("/") else paths.join(globs.escape(places.project), grant)
