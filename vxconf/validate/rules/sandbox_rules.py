"""Rules on the sandbox block that need no file system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sandbox.base.host_patterns import PatternRefused, check_pattern
from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.validate.finding import Finding
from vxconf.validate.rules.well_typed_view import CACHE_LISTS, GRANTS, SANDBOX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_patterns import Pattern
    from sandbox.contract.config import Platform
    from vxconf.validate.rules.well_typed_view import FileView

_NETWORK: tuple[tuple[Literal["allow", "deny"], bool], ...] = (("allow", True), ("deny", False))
_SYSTEM_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_SHOWN = 80

#: The fields that do nothing on a platform, and the platform.
_INERT: tuple[tuple[tuple[str, ...], Platform], ...] = (
    (("allow", "systemInfo"), "linux"),
    (("allow", "machLookup"), "linux"),
    (("weakerNetworkIsolation",), "linux"),
    (("weakerWhenNested",), "macos"),
)
_SYSTEM_NAMES: dict[Platform, str] = {"linux": "Linux", "macos": "macOS"}


def host_pattern(file: FileView) -> Iterator[Finding]:
    """Every entry of a `network` list is a host pattern (VX103)."""
    for task in file.sandboxed:
        for side, allow in _NETWORK:
            for path, entry in task.strings(*SANDBOX, side, "network"):
                try:
                    check_pattern(entry, allow=allow)
                except PatternRefused as refused:
                    message = f"{side}.network {quoted(entry[:_SHOWN])} is not a host pattern"
                    remedy = refused.hint or refused.message
                    yield Finding(code="VX103", path=path, message=message, help=remedy)


def allowed_and_denied(file: FileView) -> Iterator[Finding]:
    """An entry of `allow.network` is not denied as a whole (VX409)."""
    for task in file.sandboxed:
        denied = {p for _, entry in task.strings(*SANDBOX, "deny", "network") if (p := _pattern(entry, allow=False))}
        if not denied:
            continue
        for path, entry in task.strings(*SANDBOX, "allow", "network"):
            pattern = _pattern(entry, allow=True)
            if pattern and (pattern in denied or any(p.wildcard and not p.host and p.port is None for p in denied)):
                yield Finding(
                    code="VX409",
                    path=path,
                    message=f"allow.network {quoted(entry)} does nothing: deny.network refuses it first",
                    help="remove one of the two",
                )


def _pattern(entry: str, *, allow: bool) -> Pattern | None:
    try:
        return check_pattern(entry, allow=allow)
    except PatternRefused:
        return None


def unbalanced_pattern(file: FileView) -> Iterator[Finding]:
    """A bracket or brace that a pattern opens is closed (VX211)."""
    lists = (*GRANTS, (*SANDBOX, "ignore", "read"), (*SANDBOX, "ignore", "write"), *CACHE_LISTS)
    for task in file.tasks:
        for keys in lists:
            for path, entry in task.strings(*keys):
                opened = unclosed(entry) if "[" in entry or "{" in entry else None
                if opened is not None:
                    yield Finding(
                        code="VX211",
                        path=path,
                        message=f"{dotted((*task.path, *keys))} {quoted(entry[:_SHOWN])} never closes its {opened}",
                        help=f"close it, or write \\{opened} if it is meant literally",
                    )


def unclosed(grant: str) -> str | None:
    """The opening bracket or brace of a pattern that is never closed, `None` when all are closed."""
    opened = 0
    index = 0
    while index < len(grant):
        char = grant[index]
        if char == "\\":
            index += 1
        elif char == "[":
            # a ] right behind the [ (or its negation) is a member of the class
            first = index + (2 if grant[index + 1 : index + 2] in {"!", "^"} else 1)
            end = grant.find("]", first + 1)
            if end < 0:
                return "["
            index = end
        elif char == "{":
            opened += 1
        elif char == "}" and opened:
            opened -= 1
        index += 1
    return "{" if opened else None


def taken_back(file: FileView) -> Iterator[Finding]:
    """No grant begins with `!`: it would take nothing back (VX215)."""
    for task in file.sandboxed:
        for keys in GRANTS:
            for path, entry in task.strings(*keys):
                if entry[0] == "!":
                    yield Finding(
                        code="VX215",
                        path=path,
                        message=f"allow.{keys[-1]} {quoted(entry[:_SHOWN])} takes nothing back: a list only grants",
                        help=f"list what is granted alone, or write {quoted('./' + entry[:_SHOWN])} for such a name",
                    )


def write_to_everything(file: FileView) -> Iterator[Finding]:
    """No write grant is the whole file system or all of home (VX305)."""
    for task in file.sandboxed:
        for path, entry in task.strings(*SANDBOX, "allow", "write"):
            if entry[0] not in "/~":
                continue
            named = _whole(entry)
            if named == "~" or (named == "" and entry.startswith("/")):
                what = "home" if named else "the whole file system"
                yield Finding(
                    code="VX305",
                    path=path,
                    message=f"allow.write {quoted(entry)} grants {what}",
                    help='grant the directory the task needs, such as "~/.cache/tool/"'
                    if named
                    else "grant a directory",
                )


def _whole(entry: str) -> str:
    """The directory that a grant covers as a whole: `~` for `~/**`, an empty string for `/`."""
    parts = entry.split("/")
    while len(parts) > 1 and parts[-1] in {"", ".", "*", "**"}:
        parts.pop()
    return "/".join(parts) if any(parts) else ""


def system_name(file: FileView) -> Iterator[Finding]:
    """A name of `systemInfo` or `machLookup` holds letters, digits, `.`, `_` and `-` (VX213)."""
    for task in file.sandboxed:
        for field in ("systemInfo", "machLookup"):
            for path, name in task.strings(*SANDBOX, "allow", field):
                if not _SYSTEM_NAME.issuperset(name):
                    yield Finding(
                        code="VX213",
                        path=path,
                        message=f"allow.{field} {quoted(name[:_SHOWN])} is not a name macOS knows",
                        help="a name holds letters, digits, '.', '_' and '-'",
                    )


def socket_path(file: FileView) -> Iterator[Finding]:
    """An entry of `unixSockets` is the exact path of a socket (VX214)."""
    for task in file.sandboxed:
        for path, entry in task.strings(*SANDBOX, "allow", "unixSockets"):
            if "\0" in entry:
                continue
            if ".." in entry.split("/"):
                remedy = "write where the socket really is"
            elif any(char in "\"'\\*?" or not char.isprintable() for char in entry):
                remedy = "a socket's path holds no quote, backslash, pattern or control character"
            else:
                continue
            message = f"allow.unixSockets {quoted(entry[:_SHOWN])} is not the exact path of a socket"
            yield Finding(code="VX214", path=path, message=message, help=remedy)


def no_effect(file: FileView) -> Iterator[Finding]:
    """A grant that does nothing on a platform gets a warning there (VX401)."""
    for task in file.sandboxed:
        for keys, platform in _INERT:
            value = task.value(*SANDBOX, *keys)
            if value is None or value is False or value == []:
                continue
            yield Finding(
                code="VX401",
                path=(*task.path, *SANDBOX, *keys),
                message=f"{'.'.join(keys)} does nothing on {_SYSTEM_NAMES[platform]}",
                help=f"keep it for {_SYSTEM_NAMES['macos' if platform == 'linux' else 'linux']}, or remove it",
                at_key=True,
                platform=platform,
            )


def weaker(file: FileView) -> Iterator[Finding]:
    """A task that accepts a weaker sandbox gets a warning (VX413)."""
    for task in file.sandboxed:
        if task.value(*SANDBOX, "weakerWhenNested") is True:
            yield Finding(
                code="VX413",
                path=(*task.path, *SANDBOX, "weakerWhenNested"),
                message="weakerWhenNested lets the task see the processes outside where no full sandbox can be built",
                help="leave it out where the container can have an unmasked /proc",
                at_key=True,
                platform="linux",
            )
