"""The codes the engine refuses with; `docs/diagnostics.md` says of each what it means and what cures it."""

from __future__ import annotations

HOST_PATTERN = "VX103"
OUT_OF_RANGE = "VX105"
WALLED = "VX302"
FILE_IN_THE_WAY = "VX303"
TOO_WIDE = "VX305"
PROTECTED = "VX306"
UNDER_DEV = "VX307"
UNUSABLE = "VX308"
MISSING_OUTSIDE = "VX309"
WORKSPACE_TOO_WIDE = "VX310"
TOO_MUCH = "VX313"
MOVED = "VX314"
MALFORMED = "VX315"
KEYED_UNREAD = "VX316"
PLATFORM = "VX509"
