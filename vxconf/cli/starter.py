"""The file `vxconf init` writes; a test holds it valid."""

from __future__ import annotations

STARTER = """#:schema https://vxconf.dev/schema/vx.schema.json
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
