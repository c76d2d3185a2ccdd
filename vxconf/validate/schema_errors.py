"""The findings of the schema: one for each mistake, in the words of the file's format.

jsonschema finds the fields at fault; none of its messages is used. It takes long to load, and only a file that failed
the generated validator needs it.
"""

from __future__ import annotations

import shlex
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from jsonschema import Draft7Validator

from vxconf.diagnostics.diagnostic import dotted, quoted
from vxconf.document.document import NotFinite
from vxconf.schema import schema_files
from vxconf.validate.finding import Finding
from vxconf.validate.unknown_keys import is_misspelling, unknown_key_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.exceptions import ValidationError

    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Format

_SHOWN = 80
#: The least number that a message does not print.
_LARGE = 10**15
_MOST_PORTS = 65535


def schema_findings(
    data: object, form: Format, name: schema_files.Name, root: schema_files.Schema | None = None
) -> Iterator[Finding]:
    """Every mistake the schema finds, in no order.

    Args:
        data: the document's data.
        form: the document's format, whose words the messages use.
        name: the schema's name.
        root: another schema to judge by; by default the one of that name.
    """
    words = _Words(form)
    root = root or schema_files.load(name)
    for error in Draft7Validator(root).iter_errors(data):
        yield from words.explain(error, tuple(error.absolute_path), root, name)


class _Words:
    """The findings in the words of one format."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._table = "table" if form == "toml" else "object"

    def explain(
        self, error: ValidationError, path: FieldPath, root: schema_files.Schema, name: schema_files.Name
    ) -> Iterator[Finding]:
        value: Any = error.instance
        rule, wanted = error.validator, error.schema
        if not isinstance(wanted, dict):
            return
        if rule == "additionalProperties":
            yield from unknown_key_findings(value, path, root, name)
        elif rule == "anyOf":
            yield from self._union(error, path, root, name)
        elif rule == "type":
            yield self._wrong_type(value, path, wanted, root)
        elif rule == "required":
            yield from self._missing(value, path, wanted)
        elif rule in {"minimum", "maximum", "exclusiveMinimum"}:
            yield self._out_of_range(value, path, wanted)
        elif rule in {"minProperties", "maxProperties"}:
            yield self._exactly_one(value, path, wanted)
        elif "propertyNames" in error.absolute_schema_path:
            yield self._bad_name(value, (*path, value), "a task's name")
        elif rule == "pattern" and value.strip():
            yield self._bad_name(value, path, dotted(path))
        else:
            yield self._empty(value, path, root)

    # --- one mistake each

    def _wrong_type(
        self, value: object, path: FieldPath, wanted: schema_files.Schema, root: schema_files.Schema
    ) -> Finding:
        list_path = path[:-1] if path and isinstance(path[-1], int) else None
        if list_path is not None:
            whole = self.wanted(schema_files.lookup(root, list_path) or {})
            message = f"{dotted(list_path)} must be {whole}, and entry [{path[-1]}] is {self.kind(value)}"
        else:
            message = f"{dotted(path) or 'the file'} must be {self.wanted(wanted)}, not {self.kind(value)}"
        return Finding(code="VX102", path=path, message=message, help=self._type_advice(value, path, wanted))

    def _type_advice(self, value: object, path: FieldPath, wanted: schema_files.Schema) -> str:
        kind = str(wanted.get("type"))
        if value is None and path[-1:] != ("command",):
            return "remove the key" if path and isinstance(path[-1], str) else "remove it"
        if kind == "object":
            return self._table_advice(path)
        if path[-1:] == ("command",) and isinstance(value, list):
            return self._command_advice(value)
        if path[-2:-1] == ("network",) and isinstance(value, int) and not isinstance(value, bool):
            return (
                _port_advice(value) if path[-3:-2] == ("allow",) else "a port alone is no host: name the host before it"
            )
        return _quotes(value, kind) or _TYPE_ADVICE.get(kind, "")

    def _command_advice(self, words: list[Any]) -> str:
        """The advice for a command that is a list of words: the same as one line for the shell."""
        if not words or not all(isinstance(word, str) for word in words):
            return "write the command as one text, as for a shell"
        line = shlex.join(words)[:_SHOWN]
        text = f"'{line}'" if self._form == "toml" and '"' in line and "'" not in line else quoted(line)
        key = "command =" if self._form == "toml" else '"command":'
        return f"write one line, which a shell reads: {key} {text}"

    def _table_advice(self, path: FieldPath) -> str:
        toml = self._form == "toml"
        if path and path[-1] == "sandbox":
            return "write sandbox = {} for the baseline" if toml else 'write "sandbox": {} for the baseline'
        return f"write [{dotted(path)}] and its keys below" if toml and path else "write it in braces"

    def _missing(self, value: dict[str, Any], path: FieldPath, wanted: schema_files.Schema) -> Iterator[Finding]:
        known = wanted.get("properties", {})
        for key in wanted["required"]:
            misspelt = any(k not in known and is_misspelling(k, key) for k in value)
            if key not in value and not misspelt:
                example = known[key]["examples"][0]
                line = f'{key} = "{example}"' if self._form == "toml" else f'"{key}": "{example}"'
                message = f"{dotted(path)} has no {key}"
                yield Finding(code="VX104", path=(*path, key), message=message, help=f"add one, such as {line}")

    def _out_of_range(self, value: float, path: FieldPath, wanted: schema_files.Schema) -> Finding:
        number = str(value) if abs(value) < _LARGE else "a number that large"
        message = f"{dotted(path)} must be {self.wanted(wanted)}, not {number}"
        remedy = "leave the key out for no limit" if "exclusiveMinimum" in wanted else "use a port from 1 to 65535"
        return Finding(code="VX105", path=path, message=message, help=remedy)

    def _exactly_one(self, value: dict[str, Any], path: FieldPath, wanted: schema_files.Schema) -> Finding:
        names = " or ".join(wanted["properties"])
        message = f"{dotted(path)} must hold exactly one of {names}"
        return Finding(code="VX109", path=path, message=message, help="remove one of the two" if value else "add one")

    def _bad_name(self, value: str, path: FieldPath, what: str) -> Finding:
        if not value.strip():
            return Finding(
                code="VX106", path=path, message=f"{what} must not be empty", help="give it a name", at_key=True
            )
        return Finding(
            code="VX108",
            path=path,
            message=f"{what} cannot be {quoted(value[:_SHOWN])}",
            help="a name holds no # and no control character, does not begin with ^, and has no blank at its ends",
            at_key=True,
        )

    def _empty(self, value: object, path: FieldPath, root: schema_files.Schema) -> Finding:
        if path and isinstance(path[-1], int):
            whole = self.wanted(schema_files.lookup(root, path[:-1]) or {})
            message = f"{dotted(path[:-1])} must be {whole}, and entry [{path[-1]}] is empty"
            return Finding(code="VX106", path=path, message=message, help="remove the entry")
        remedy = "remove the key, or list a port" if isinstance(value, list) else "remove the key, or give it a value"
        if path and path[-1] == "command":
            remedy = "write the command; a task that only groups others has no exec"
        return Finding(code="VX106", path=path, message=f"{dotted(path)} must not be empty", help=remedy)

    # --- unions: `true` or a list, a boolean or a list

    def _union(
        self, error: ValidationError, path: FieldPath, root: schema_files.Schema, name: schema_files.Name
    ) -> Iterator[Finding]:
        value, wanted = error.instance, error.schema
        assert isinstance(wanted, dict)  # noqa: S101  explain() has looked
        # a list is meant for the list branch; the errors of the other branches say nothing about it
        branch = next((i for i, sub in enumerate(wanted["anyOf"]) if sub.get("type") == "array"), None)
        if isinstance(value, list) and branch is not None:
            for inner in error.context or ():
                if inner.schema_path[0] == branch:
                    yield from self.explain(inner, tuple(inner.absolute_path), root, name)
            return
        message = f"{dotted(path)} must be {self.wanted(wanted)}, not {self.kind(value)}"
        code = "VX107" if value is False else "VX102"
        yield Finding(code=code, path=path, message=message, help=self._union_advice(value, wanted))

    def _union_advice(self, value: object, wanted: schema_files.Schema) -> str:
        ports = any(sub.get("items", {}).get("type") == "integer" for sub in wanted["anyOf"])
        if value is False or value is None:
            return "remove the key: nothing is allowed without it"
        if isinstance(value, str):
            if value.strip().lower() in {"true", "yes", "on", "*", "all", "any"}:
                return "write true without quotes"
            if value.strip().lower() in {"false", "no", "off", "none", ""}:
                return "remove the key: nothing is allowed without it"
            if not ports:
                return f"write a list: [{quoted(value[:_SHOWN])}]"
            return (
                f"write a list of numbers: [{value.strip()[:20]}]"
                if value.strip().isdecimal()
                else "write a list of ports"
            )
        if ports and isinstance(value, int):
            return f"write a list: [{value}]" if abs(value) < _LARGE else "write a list of ports"
        return "write true or a list"

    # --- types

    def kind(self, value: object) -> str:
        """The kind of a value, with its article."""
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, NotFinite):
            return value.text
        kinds = (
            (str, "a string"),
            (int | float, "a number"),
            (list, "a list"),
            (dict, f"{'a' if self._form == 'toml' else 'an'} {self._table}"),
            (datetime, "a date and time"),
            (date, "a date"),
            (time, "a time"),
        )
        return next((name for types, name in kinds if isinstance(value, types)), "something else")

    def wanted(self, node: schema_files.Schema) -> str:
        """The values a field takes, with the article."""
        if "anyOf" in node:
            return " or ".join(self.wanted(sub) for sub in node["anyOf"]).replace("true or false or", "true, false or")
        if "enum" in node:
            return " or ".join("true" if value is True else str(value) for value in node["enum"])
        match node.get("type"):
            case "array":
                kind = "a non-empty list of" if node.get("minItems") else "a list of"
                return f"{kind} {_plural(node.get('items', {}))}"
            case "integer":
                return f"a whole number from {node.get('minimum')} to {node.get('maximum')}"
            case "number":
                above, most = node.get("exclusiveMinimum"), node.get("maximum", 0)
                return f"a number of seconds above {above} and at most {most:,}"
            case "string":
                return "a non-empty string" if "minLength" in node or "pattern" in node else "a string"
            case "boolean":
                return "true or false"
        return f"{'a' if self._form == 'toml' else 'an'} {self._table}"


def _plural(items: schema_files.Schema) -> str:
    return "ports (whole numbers from 1 to 65535)" if items.get("type") == "integer" else "non-empty strings"


_TYPE_ADVICE = {
    "boolean": "write true or false",
    "integer": "a port is a whole number",
    "number": "write the seconds as a number, or leave the key out for no limit",
    "array": "write a list in brackets",
    "string": "write a text in quotes",
}


def _port_advice(port: int) -> str:
    """The advice for a port where a host belongs."""
    if not 0 < port <= _MOST_PORTS:
        return 'a host goes here, such as "localhost:8080", with a port from 1 to 65535'
    own = f"allow.localBinding = [{port}]"
    return f'a port alone is no host: write "localhost:{port}" for a server of this machine, {own} for the task\'s own'


def _quotes(value: object, kind: str) -> str:
    """The advice for a value with quotes or brackets missing or in excess, or an empty string."""
    if isinstance(value, str):
        bare = value.strip().lower()[:_SHOWN]
        if bare in {"true", "false"} if kind == "boolean" else kind in {"number", "integer"} and bare.isdecimal():
            return f"write {bare} without quotes"
        if kind == "array" and value:
            return f"write a list: [{quoted(value[:_SHOWN])}]"
    elif kind == "boolean" and value in (0, 1):
        return f"write {'true' if value else 'false'}"
    elif kind == "string" and isinstance(value, int | float) and abs(value) < _LARGE:
        return f'write it in quotes: "{str(value).lower()}"'
    return ""
