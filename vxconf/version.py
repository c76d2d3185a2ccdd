"""The version of both packages; `pyproject.toml` says the same, which a test holds."""

from __future__ import annotations

VERSION = "0.1.0"
