"""Document to diagnostics: the schema, then the rules across fields, in the file's order.

A healthy file costs the precompiled validator and the rules; positions and explanations are made for
what is wrong alone. Validation changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vxconf.diagnostics.diagnostic import in_order
from vxconf.document.parse import deep_path, too_deep
from vxconf.schema import _validator, _validator_workspace
from vxconf.validate.rules import RULES, view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.document.document import Document
    from vxconf.schema.schema_files import Name
    from vxconf.validate.finding import Finding
    from vxconf.validate.rules import FileView


def validate(
    document: Document, rules: tuple[Callable[[FileView], Iterator[Finding]], ...] = RULES
) -> tuple[Diagnostic, ...]:
    """Every mistake of a task file, in file order; empty for a valid one."""
    findings: list[Finding] = []
    if not _passes(_validator.validate, document.data):
        deep = _too_deep(document)
        if deep is not None:
            return (deep,)
        findings = _complaints(document, "vx")
    judged = {finding.path for finding in findings}
    seen = view(document.data, escapes="\\" in document.text)
    findings += [finding for rule in rules for finding in rule(seen) if finding.path not in judged]
    return in_order(finding.diagnose(document) for finding in findings)


def validate_workspace(document: Document) -> tuple[Diagnostic, ...]:
    """Every mistake of a `.vx/workspace.toml`, in file order; empty for a valid one."""
    if _passes(_validator_workspace.validate, document.data):
        return ()
    deep = _too_deep(document)
    if deep is not None:
        return (deep,)
    return in_order(finding.diagnose(document) for finding in _complaints(document, "workspace"))


def _passes(check: Callable[[object], object], data: object) -> bool:
    try:
        check(data)
    except _validator.Invalid:
        return False
    return True


def _too_deep(document: Document) -> Diagnostic | None:
    path = deep_path(document.data)
    if path is None:
        return None
    from vxconf.document.spans import locate

    place = locate(document, path)
    return too_deep(document.file, place._replace(end_line=place.line, end_column=place.column + 1))


def _complaints(document: Document, name: Name) -> list[Finding]:
    from vxconf.validate.schema_errors import complain

    data = _failing_tasks(document.data) if name == "vx" else document.data
    return list(complain(data, document.format, name))


def _failing_tasks(data: Any) -> Any:
    """The same data without the tasks that pass: jsonschema is slow, and most of a large file is fine."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return data
    failing = {key: task for key, task in tasks.items() if not _passes(_validator.validate, {"tasks": {key: task}})}
    return data | {"tasks": failing}
