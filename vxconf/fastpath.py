"""The hook's way: `vxconf check …` in plain spellings, without loading typer, rich or jsonschema.

Anything unusual falls through to typer, which says what is wrong with it.
"""

from __future__ import annotations

from vxconf.options import DIRECTORY, Arguments, command, parse


def check_arguments(words: list[str]) -> Arguments | None:
    """The arguments of a plain `check`, `None` when typer has to look.

    Args:
        words: the command line without the program's name.
    """
    before: list[str] = []
    rest = list(words)
    while len(rest) > 1 and rest[0] == DIRECTORY.name:
        before.append(rest[1])
        del rest[:2]
    check = command("check")
    if not rest or rest[0] != "check" or check is None:
        return None
    found = parse(check, rest[1:])
    if found is not None:
        own = found[DIRECTORY.key]
        found[DIRECTORY.key] = [*before, *([own] if isinstance(own, str) else [])]
    return found
