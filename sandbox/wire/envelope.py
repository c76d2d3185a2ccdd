"""The envelope of JSON for another machine: the kind of the value, and the version of its form. Pure."""

from __future__ import annotations

import json
from typing import Any

from sandbox.contract import refusal_codes
from sandbox.contract.config import VERSION
from sandbox.contract.errors import Refusal, RequestRefused


def dump(kind: str, value: dict[str, Any]) -> str:
    """One line of JSON, with sorted keys."""
    return json.dumps({"kind": kind, "version": VERSION, "value": value}, sort_keys=True, separators=(",", ":"))


def load(text: str, kind: str) -> dict[str, Any]:
    """The value in an envelope.

    Raises:
        RequestRefused: the text is no envelope of that kind and of this version.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise malformed("", f"the {kind} is not JSON") from None
    if not isinstance(data, dict) or set(data) != {"kind", "version", "value"} or data["kind"] != kind:
        raise malformed("kind", f"the text is not a {kind} written for another machine")
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise malformed("version", f'"version" is not {VERSION}, the version this program reads')
    value = data["value"]
    if not isinstance(value, dict):
        raise malformed("value", '"value" is not an object')
    return value


def malformed(field: str, message: str) -> RequestRefused:
    """The refusal of a text that is not as this program writes it."""
    hint = "write it with sandbox.wire.portable, of the same version"
    return RequestRefused((Refusal(message, field=field, code=refusal_codes.MALFORMED, hint=hint),))
