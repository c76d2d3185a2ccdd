"""The validation of a document: the schema first, then the rules across fields; diagnostics come in file order.

A healthy file takes the generated validator and the rules. Explanations and places are made for mistakes alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics.diagnostic import in_order
from vxconf.document.parse import deep_path, too_deep
from vxconf.schema import _generated_validator, _generated_workspace_validator
from vxconf.validate.rules import RULES
from vxconf.validate.rules.well_typed_view import file_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.document.document import Document
    from vxconf.schema.schema_files import Name
    from vxconf.validate.finding import Finding
    from vxconf.validate.rules.well_typed_view import FileView


def validate(
    document: Document, rules: tuple[Callable[[FileView], Iterator[Finding]], ...] = RULES
) -> tuple[Diagnostic, ...]:
    """Every mistake of a task file, in file order; empty for a valid one."""
    findings: list[Finding] = []
    if not _passes(_generated_validator.validate, document.data):
        deep = _too_deep(document)
        if deep is not None:
            return (deep,)
        findings = _schema_findings(document, "vx")
    judged = {finding.path for finding in findings}
    seen = file_view(document.data, escapes="\\" in document.text)
    findings += [finding for rule in rules for finding in rule(seen) if finding.path not in judged]
    return in_order(finding.to_diagnostic(document) for finding in findings)


def validate_workspace(document: Document) -> tuple[Diagnostic, ...]:
    """Every mistake of a `.vx/workspace.toml`, in file order; empty for a valid one."""
    if _passes(_generated_workspace_validator.validate, document.data):
        return ()
    deep = _too_deep(document)
    if deep is not None:
        return (deep,)
    return in_order(finding.to_diagnostic(document) for finding in _schema_findings(document, "workspace"))


def _passes(check: Callable[[object], object], data: object) -> bool:
    try:
        check(data)
    except _generated_validator.Invalid:
        return False
    return True


def _too_deep(document: Document) -> Diagnostic | None:
    path = deep_path(document.data)
    if path is None:
        return None
    from vxconf.document.spans import locate

    place = locate(document, path)
    return too_deep(document.file, place._replace(end_line=place.line, end_column=place.column + 1))


def _schema_findings(document: Document, name: Name) -> list[Finding]:
    from vxconf.validate.schema_errors import schema_findings

    data = _failing_tasks(document.data) if name == "vx" else document.data
    return list(schema_findings(data, document.format, name))


def _failing_tasks(data: Any) -> Any:
    """The data with the failing tasks alone: jsonschema is slow, and most tasks of a large file pass."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return data
    failing = {
        key: task for key, task in tasks.items() if not _passes(_generated_validator.validate, {"tasks": {key: task}})
    }
    return data | {"tasks": failing}
