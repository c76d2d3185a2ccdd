"""Text of ours for people: what a terminal or GitHub's runner would obey in it is escaped. Pure."""

from __future__ import annotations

RED, YELLOW, BLUE, BOLD, OFF = "\x1b[31m", "\x1b[33m", "\x1b[34m", "\x1b[1m", "\x1b[0m"

# GitHub's runner obeys a line that begins with the first, blanks aside, and the second anywhere (actions/runner,
# ActionCommand)
_COMMAND, _OLD_COMMAND = "::", "##["


def printable(string: str) -> str:
    """The text with every character escaped that a terminal would obey, and every command of GitHub's runner."""
    if not string.isprintable():
        string = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in string
        )
    if _COMMAND in string and string.lstrip().startswith(_COMMAND):
        string = string.replace(":", "\\x3a", 1)
    return string.replace(_OLD_COMMAND, "##\\x5b") if _OLD_COMMAND in string else string


def harmless(text: str) -> str:
    """Lines without a colour, each as `printable` has it."""
    if text.replace("\n", "").isprintable() and _COMMAND not in text and _OLD_COMMAND not in text:
        return text
    return "\n".join(map(printable, text.split("\n")))
