"""What every bench may be told: how much to do, and whether only to show that it works."""

from __future__ import annotations

import argparse


def arguments(description: str | None, counted: str, default: int) -> tuple[int, bool]:
    """The number given for `counted`, and whether it is to do next to nothing (`--few`)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(counted, type=int, nargs="?", default=default, help=f"{default} unless told")
    parser.add_argument("--few", action="store_true", help="do next to nothing, to see whether this bench still works")
    given = parser.parse_args()
    return getattr(given, counted), given.few
