"""The documentation of one diagnostic code, and the families the codes are numbered in.

VX0xx: the file and its syntax. VX1xx: the schema. VX2xx: rules across fields. VX3xx: refusals against
the file system or the workspace. VX4xx: warnings. VX5xx: resolved configs of another platform. A code is
never reused for another mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vxconf.diagnostics.diagnostic import Severity


class Stage(StrEnum):
    """The knowledge a mistake is found with: the text alone, or also the file system and the workspace."""

    TEXT = "text"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One kind of mistake.

    Attributes:
        code: the code, such as `VX101`.
        slug: a stable name for links and rule ids.
        title: a lowercase clause.
        means: a few sentences: what is wrong and why it matters.
        wrong, right: examples in TOML; empty where the mistake is not in the text.
        severity: the severity without `--strict`.
        stage: the knowledge the mistake is found with.
    """

    code: str
    slug: str
    title: str
    means: str
    wrong: str = ""
    right: str = ""
    severity: Severity = Severity.ERROR
    stage: Stage = Stage.TEXT


def sandbox(*lines: str, command: str = "make") -> str:
    """The text of a file whose one task has these lines in its sandbox block."""
    body = "\n".join(lines)
    return f'[tasks.build]\nexec.command = "{command}"\n\n[tasks.build.exec.sandbox]\n{body}\n'


def task(*lines: str) -> str:
    """The text of a file whose one task has these lines."""
    return "[tasks.build]\n" + "\n".join(lines) + "\n"
