"""How bad it is; apart from the table, which only a file with a mistake needs."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """`error` refuses the file or the task; `warning` does not, unless the user asks for that."""

    ERROR = "error"
    WARNING = "warning"
