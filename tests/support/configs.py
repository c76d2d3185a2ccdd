"""The golden corpus of task files: every file under fixtures/configs, and what is said of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vxconf.diagnostics.diagnostic import UnreadableFile
from vxconf.document.parse import parse
from vxconf.validate.validate import validate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.document.document import Document

CONFIGS = Path(__file__).resolve().parents[2] / "fixtures" / "configs"
INVALID = sorted(p for p in (CONFIGS / "invalid").iterdir() if not p.name.endswith(".errors.txt"))
VALID = sorted((CONFIGS / "valid").iterdir())
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def expectation(path: Path) -> Path:
    """The golden file beside a config."""
    return path.with_name(f"{path.name}.errors.txt")


def diagnose(path: Path) -> tuple[Diagnostic, ...]:
    """What is said of a file, by the name it has in the corpus."""
    return judge(path.read_bytes(), path.name)


def judge(raw: bytes, file: str = "vx.toml") -> tuple[Diagnostic, ...]:
    """What is said of these bytes."""
    try:
        return validate(parse(raw, file=file))
    except UnreadableFile as unreadable:
        return unreadable.diagnostics


def documents() -> list[Document]:
    """Every file of the corpus that parses."""
    found = []
    for path in (*INVALID, *VALID):
        try:
            found.append(parse(path.read_bytes(), file=path.name))
        except UnreadableFile:
            continue
    return found


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """One problem as `check` prints it, without the line of the source."""
    lines = []
    for d in diagnostics:
        only = f" ({d.platform})" if d.platform else ""
        place = f"{d.place.line}:{d.place.column}-{d.place.end_line}:{d.place.end_column}"
        lines.append(f"{place}: {d.severity.value} {d.code}: {d.message}{only}\n")
        lines.append(f"    at {d.path}\n" if d.path else "")
        lines.append(f"    = help: {d.help}\n" if d.help else "")
    return "".join(lines)
