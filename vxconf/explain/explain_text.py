"""The text form of an explanation, laid out from its JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics.diagnostic import quoted
from vxconf.diagnostics.printable import printable
from vxconf.explain.explain_macos import DIFFERENCES, NEVER_RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = dict[str, Any]

#: The most implied items of one reason that are printed; the others are counted.
_TOLD = 4


def explanation(data: JSON, *, reason: str, refusals: str, platform: str, hidden: bool = False) -> str:
    """The text of the whole explanation of one task.

    Args:
        data: the JSON value of `explain`.
        reason: the reason why the root is the workspace root, as a clause.
        refusals: the refusals as text, or an empty string.
        platform: `linux`, `macos` or `all`.
        hidden: whether mistakes hide a part of the task.
    """
    return "".join(f"{printable(line)}\n" for line in _lines(data, reason, platform, hidden=hidden)) + (
        f"\nrefused\n{refusals}" if refusals else ""
    )


def answer(data: JSON) -> str:
    """The text of an answer to `--why`, from its JSON value."""
    lines = [
        data["target"] if data.get("path", data["target"]) == data["target"] else f"{data['target']} ({data['path']})"
    ]
    for what in ("read", "write", "connect", "network"):
        if what in data:
            lines += _verdict(what, data[what])
    return "".join(f"{printable(line)}\n" for line in lines)


def _lines(data: JSON, reason: str, platform: str, *, hidden: bool) -> Iterator[str]:
    yield f"task {data['task']}"
    yield f"  workspace  {data['workspace']}: {reason}"
    command = "not known: mistakes hide it" if hidden else "none: a group"
    yield f"  command    {data['command'] if data['command'] is not None else command}"
    if not data["sandboxed"]:
        yield "  sandbox    none: the command runs with everything this user may do"
        return
    if not data["implied"]:
        yield "  sandbox    not known: it is refused before it can be told"
        return
    if hidden:
        yield "  sandbox    without what is refused below"
    if platform != "linux":
        yield f"  {NEVER_RUN}"
    yield ""
    yield "granted" if data["grants"] else "granted: nothing"
    for item in data["grants"]:
        yield f"  {item['file']}:{item['line']}  {item['path']} = {_toml(item['value'])}"
        yield from _effects(item)
    yield ""
    yield "implied"
    yield from _implied(data["implied"])
    if platform == "all":
        yield ""
        yield "what differs between the two"
        yield from (f"  {line}" for line in DIFFERENCES)
    mechanism = data.get("mechanism")
    if mechanism is not None:
        for name, lines in mechanism["linux"].items():
            yield ""
            yield f"linux {name}"
            yield from (f"  {line}" for line in lines)
        if mechanism["macos"]["profile"]:
            yield ""
            yield "macos profile"
            yield from (f"  {line}" for line in mechanism["macos"]["profile"].splitlines())


def _implied(items: list[JSON]) -> Iterator[str]:
    """The lines on implied items; of many items with one reason only the first are printed."""
    by_reason: dict[str, list[JSON]] = {}
    for item in items:
        by_reason.setdefault(item["reason"], []).append(item)
    for reason, alike in by_reason.items():
        for item in alike[:_TOLD]:
            yield f"  {item['value']}: {reason}"
            yield from _effects(item)
        if alike[_TOLD:]:
            yield f"  … and {len(alike) - _TOLD} more for the same reason; --mechanism lists every operation"


def _effects(item: JSON) -> Iterator[str]:
    yield from (f"    linux  {operation['describe']}" for operation in item["linux"])
    yield from (f"    macos  {rule['describe']}" for rule in item["macos"])
    yield from (f"    note   {note}" for note in item["notes"])


def _verdict(what: str, found: JSON) -> Iterator[str]:
    yield f"  {what:<7}  {'allowed' if found['allowed'] else 'refused'}, {_source(found['by'])}"
    if found["nearest"] is not None:
        yield f"           nearest: {_source(found['nearest'])}"


def _source(by: JSON | None) -> str:
    if by is None:
        return "by no rule"
    if "reason" in by:
        return str(by["reason"])
    return f"by {by['path']} = {_toml(by['value'])} ({by['file']}:{by['line']})"


def _toml(value: object) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()
