"""A resolved config as JSON and back: sorted keys, the same bytes for the same value. Pure.

Reading is strict: each mistake is named and refused, because another program may have written the text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from sandbox.contract.config import VERSION, Ignore, ResolvedSandboxConfig
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.contract.refusal_codes import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Callable

_PORTS = range(1, 65536)


def to_dict(config: ResolvedSandboxConfig) -> dict[str, Any]:
    """The JSON form: camelCase keys, lists for tuples, every key present."""
    return {key: _plain(getattr(config, attribute)) for attribute, (key, _) in _FIELDS.items()}


def to_json(config: ResolvedSandboxConfig) -> str:
    """One line of JSON with sorted keys; names that are no text come out as escaped surrogates."""
    return json.dumps(to_dict(config), sort_keys=True, separators=(",", ":"))


def from_json(text: str) -> ResolvedSandboxConfig:
    """The config a text stands for.

    Raises:
        RequestRefused: with everything that is wrong with it, each by its key.
    """
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestRefused((_malformed("", f"the resolved config is not JSON: {reason}"),)) from None
    return from_dict(data)


def from_dict(data: object) -> ResolvedSandboxConfig:
    """The config a JSON value stands for.

    Raises:
        RequestRefused: with everything that is wrong with it, each by its key.
    """
    if not isinstance(data, dict):
        raise RequestRefused((_malformed("", "the resolved config is not an object"),))
    refusals: list[Refusal] = []
    values = _take(data, _FIELDS, "", refusals)
    if refusals:
        raise RequestRefused(tuple(refusals))
    return ResolvedSandboxConfig(**values)


class _Wrong(ValueError):
    """The kind of value that was expected."""


def _plain(value: object) -> object:
    if isinstance(value, Ignore):
        return {key: list(getattr(value, attribute)) for attribute, (key, _) in _IGNORE.items()}
    return list(value) if isinstance(value, tuple) else value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'key "{next(key for key in keys if keys.count(key) > 1)}" appears twice')
    return found


def _take(
    data: dict[str, Any], fields: dict[str, tuple[str, Callable[[Any], object]]], where: str, refusals: list[Refusal]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for attribute, (key, read) in fields.items():
        if key not in data:
            refusals.append(_malformed(where + key, f'key "{where}{key}" is missing'))
            continue
        try:
            values[attribute] = read(data[key])
        except _Wrong as wrong:
            refusals.append(_malformed(where + key, f'"{where}{key}" is not {wrong}'))
        except RequestRefused as inner:
            refusals.extend(inner.refusals)
    known = {key for key, _ in fields.values()}
    refusals += [_malformed(where + str(key), f'key "{where}{key}" is unknown') for key in data if key not in known]
    return values


def _malformed(field: str, message: str) -> Refusal:
    return Refusal(message, field=field, code=MALFORMED, hint="write it with vxconf resolve")


def _version(value: Any) -> int:
    if value != VERSION or type(value) is not int:
        raise _Wrong(f"{VERSION}, the version this program reads")
    return VERSION


def _platform(value: Any) -> str:
    if value not in ("linux", "macos"):
        raise _Wrong('"linux" or "macos"')
    return str(value)


def _path(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        raise _Wrong("an absolute path")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry for entry in value):
        raise _Wrong("a list of non-empty strings")
    return tuple(value)


def _grants(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry.startswith("/") for entry in value):
        raise _Wrong("a list of absolute grants")
    return tuple(value)


def _hosts(value: Any) -> Literal[True] | tuple[str, ...] | None:
    if value is None or value is True:
        return value
    if value is False or not isinstance(value, list):
        raise _Wrong("null, true or a list of non-empty strings")
    return _strings(value)


def _sockets(value: Any) -> Literal[True] | tuple[str, ...] | None:
    if value is None or value is True:
        return value
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry.startswith("/") for entry in value):
        raise _Wrong("null, true or a list of absolute paths")
    return tuple(value)


def _ports(value: Any) -> bool | tuple[int, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not value or not all(type(port) is int and port in _PORTS for port in value):
        raise _Wrong("true, false or a list of ports from 1 to 65535")
    return tuple(value)


def _ignore(value: Any) -> Ignore:
    if not isinstance(value, dict):
        raise _Wrong("an object")
    refusals: list[Refusal] = []
    values = _take(value, _IGNORE, "ignore.", refusals)
    if refusals:
        raise RequestRefused(tuple(refusals))
    return Ignore(**values)


_IGNORE: dict[str, tuple[str, Callable[[Any], object]]] = {
    "read": ("read", _strings),
    "write": ("write", _strings),
    "system_info": ("systemInfo", _strings),
    "network": ("network", _strings),
}

_FIELDS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "version": ("version", _version),
    "platform": ("platform", _platform),
    "workspace": ("workspace", _path),
    "project": ("project", _path),
    "allow_read": ("allowRead", _grants),
    "allow_write": ("allowWrite", _grants),
    "network": ("network", _hosts),
    "deny_network": ("denyNetwork", _strings),
    "system_info": ("systemInfo", _strings),
    "unix_sockets": ("unixSockets", _sockets),
    "local_binding": ("localBinding", _ports),
    "mach_lookup": ("machLookup", _strings),
    "pty": ("pty", _flag),
    "git_config": ("gitConfig", _flag),
    "weaker_when_nested": ("weakerWhenNested", _flag),
    "weaker_network_isolation": ("weakerNetworkIsolation", _flag),
    "hermetic": ("hermetic", _flag),
    "ignore": ("ignore", _ignore),
}
