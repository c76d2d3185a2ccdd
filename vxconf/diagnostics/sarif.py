"""The SARIF 2.1.0 log of diagnostics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vxconf.diagnostics.codes.all_codes import CODES
from vxconf.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vxconf.diagnostics.codes.code import Code
    from vxconf.diagnostics.diagnostic import Diagnostic

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(diagnostics: Sequence[Diagnostic], *, base: str) -> dict[str, Any]:
    """The log: one run, with one result for each diagnostic.

    Args:
        diagnostics: the diagnostics in the order they are listed.
        base: the absolute directory that relative file names start from.
    """
    used = sorted({diagnostic.code for diagnostic in diagnostics})
    indexes = {code: index for index, code in enumerate(used)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "vxconf",
                        "version": VERSION,
                        "rules": [_rule(CODES[code]) for code in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"uri": _uri(base, directory=True)}},
                "results": [_result(diagnostic, indexes[diagnostic.code]) for diagnostic in diagnostics],
            }
        ],
    }


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.code,
        "name": "".join(word.capitalize() for word in code.slug.split("-")),
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.means},
        "defaultConfiguration": {"level": code.severity.value},
    }


def _result(diagnostic: Diagnostic, index: int) -> dict[str, Any]:
    place = diagnostic.place
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(diagnostic.file),
            "region": {
                "startLine": place.line,
                "startColumn": place.column,
                "endLine": place.end_line,
                "endColumn": place.end_column,
            },
        }
    }
    if diagnostic.path:
        location["logicalLocations"] = [{"fullyQualifiedName": diagnostic.path}]
    text = diagnostic.message + (f"; help: {diagnostic.help}" if diagnostic.help else "")
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": diagnostic.severity.value,
        "message": {"text": text},
        "locations": [location],
    }


def _artifact(file: str) -> dict[str, str]:
    if file.startswith("/"):
        return {"uri": _uri(file)}
    return {"uri": _escaped(file), "uriBaseId": "SRCROOT"}


def _uri(path: str, *, directory: bool = False) -> str:
    return "file://" + _escaped(path.rstrip("/") + "/" if directory else path)


def _escaped(path: str) -> str:
    # a name that is not UTF-8 is percent-encoded byte by byte
    return quote(os.fsencode(path))
