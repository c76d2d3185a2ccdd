"""`vxconf schema`: prints the JSON Schema of the task file, or of a resolved config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.cli.console import OK, out
from vxconf.schema import schema_files

if TYPE_CHECKING:
    from vxconf.cli.arguments import Arguments


def main(arguments: Arguments) -> int:
    """Prints the schema file as it is shipped."""
    out(schema_files.text("resolved" if arguments["resolved"] else "vx"))
    return OK
