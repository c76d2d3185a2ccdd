"""`vxconf init`: writes a commented starter `vx.toml` into the working directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vxconf.cli.console import FOUND, OK, err, out
from vxconf.workspace.root import CONFIG_NAMES

if TYPE_CHECKING:
    from vxconf.cli.arguments import Arguments

_NAME = CONFIG_NAMES[0]

#: The text of the starter file; a test holds that it is valid.
STARTER = """#:schema vx.schema.json
# Editors read the schema from the file of that name: `vxconf schema > vx.schema.json` writes it.

# The tasks of this directory. `vxconf check` validates the file, `vxconf explain build` says what each
# line of it opens, `vxconf run build` runs the task behind its walls.

[tasks.build.exec]
command = "echo built > dist/out.txt"

# What the command may touch in the workspace; leave the table out and the task runs without a sandbox.
# Paths are relative to this directory; `~/` and absolute ones work too. A trailing slash is a directory
# and everything in it; `*`, `**`, `?` and `[a-z]` are patterns.
[tasks.build.exec.sandbox.allow]
read = ["."]
write = ["dist/"]

# Denials that are expected and should not fail the task.
# [tasks.build.exec.sandbox.ignore]
# read = [".env"]
"""


def main(_arguments: Arguments) -> int:
    """Writes the starter file; the status is 1 when the directory has a task file already."""
    taken = next((name for name in CONFIG_NAMES if os.path.lexists(name)), None)
    if taken is not None:
        err(f"error: {taken} is already here and is left as it is\n")
        return FOUND
    try:
        # O_EXCL: a file or link that was made in the meantime is not written to
        descriptor = os.open(_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as fault:
        err(f"error: {_NAME} cannot be written: {(fault.strerror or str(fault)).lower()}\n")
        return FOUND
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(STARTER)
    out(f"wrote {_NAME}\n")
    return OK
