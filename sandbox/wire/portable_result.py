"""A result as a JSON value another machine understands, and back: plain frozen values all the way down. Pure."""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any

from sandbox.contract import results
from sandbox.wire.anchors import words_in, words_out
from sandbox.wire.envelope import malformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import RunResult
    from sandbox.wire.anchors import Anchors


def result_out(result: RunResult, places: Anchors) -> Any:
    """The JSON value; captured output is base64."""
    return _written(result, lambda text: words_out(text, places))


def result_in(data: dict[str, Any], places: Anchors) -> RunResult:
    """The result, with this machine's places in it.

    Raises:
        RequestRefused: it is no such value.
    """
    try:
        read: RunResult = _rebuilt(results.RunResult, data, lambda text: words_in(text, places))
    except (TypeError, KeyError, ValueError) as error:
        raise malformed("", f"the text is no result: {error}") from None
    return read


def _written(value: Any, text: Callable[[str], str]) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _written(getattr(value, field.name), text) for field in dataclasses.fields(value)}
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple):
        return [_written(entry, text) for entry in value]
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
