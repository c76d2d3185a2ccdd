"""The version of both packages; a test holds that `pyproject.toml` has the same."""

from __future__ import annotations

VERSION = "0.1.0"
