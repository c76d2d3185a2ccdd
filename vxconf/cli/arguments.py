"""The table of the command line: the arguments of each command, with defaults and help.

Plain command lines are parsed by this table alone, and typer's commands are built from it, so the two cannot differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Option(NamedTuple):
    """One option.

    Attributes:
        name: the name with its dashes.
        help: the sentence in the help.
        value: the name of the value in the help; empty for a flag.
        choices: the values the option takes; any when empty.
        default: the value without the option; an empty string for none.
        number: whether the value is a number.
        own_key: the key in `Arguments`, where it differs from the name.
    """

    name: str
    help: str
    value: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""
    number: bool = False
    own_key: str = ""

    @property
    def key(self) -> str:
        """The option's key in `Arguments`."""
        return self.own_key or self.name.lstrip("-").replace("-", "_")


class Positional(NamedTuple):
    """The arguments without a dash.

    Attributes:
        name: the name in the help.
        help: the sentence in the help.
        many: whether there may be several.
        required: whether there has to be one.
    """

    name: str
    help: str
    many: bool = False
    required: bool = True

    @property
    def key(self) -> str:
        """The key in `Arguments`."""
        return self.name.lower()


class Command(NamedTuple):
    """One command.

    Attributes:
        name: the command's name.
        help: the sentence in the help.
        positionals: the arguments without a dash.
        options: the options, without `-C`, which every command has.
        passes_on: whether the words behind `--` belong to the task's command; they are `args` in `Arguments`.
    """

    name: str
    help: str
    positionals: tuple[Positional, ...] = ()
    options: tuple[Option, ...] = ()
    passes_on: bool = False


#: The given arguments by key: strings, booleans, numbers, lists for `many`; `None` for an argument not given.
Arguments = dict[str, "str | bool | float | list[str] | None"]


DIRECTORY = Option("-C", "Go to this directory first.", "DIR")
_PLATFORM = Option("--platform", "The platform to judge for.", "NAME", ("linux", "macos", "all"), "all")
_TEXT_OR_JSON = Option("--format", "How to print.", "NAME", ("text", "json"), "text")
_TASK = Positional("TASK", "build, apps/shop#build or @acme/shop#build.")

COMMANDS: tuple[Command, ...] = (
    Command(
        "check",
        "Validate task files, and resolve every sandbox block against the file system.",
        (Positional("PATHS", "Files or directories; the whole workspace when there are none.", True, False),),
        (
            Option("--format", "How to print.", "NAME", ("text", "json", "sarif", "github"), "text"),
            _PLATFORM,
            Option("--strict", "Treat warnings as errors."),
            Option("--stdin-filename", "Check standard input as if it were this file.", "NAME"),
        ),
    ),
    Command(
        "explain",
        "Say what each grant of a task becomes, what else it opens, and what is implied.",
        (_TASK,),
        (
            _PLATFORM,
            _TEXT_OR_JSON,
            Option("--why", "Answer for one path or host only.", "PATH|HOST[:PORT]"),
            Option("--mechanism", "Print the literal operations too."),
        ),
    ),
    Command(
        "resolve",
        "Print a task's resolved sandbox config as canonical JSON.",
        (_TASK,),
        (Option("--platform", "The platform to resolve for.", "NAME", ("linux", "macos"), ""),),
    ),
    Command(
        "run",
        "Run one task's command in its sandbox, or several and what they need first; what follows -- is the command's.",
        (
            Positional(
                "TASK", "build, apps/shop#build or @acme/shop#build; several run once what they need has.", True, False
            ),
        ),
        (
            _TEXT_OR_JSON,
            Option("--all", "Run every task of the workspace, or those of these names in every project."),
            Option(
                "-j",
                "How many run at once; as many as there are processors when several are run.",
                "N",
                number=True,
                own_key="jobs",
            ),
            Option("--fix", "Write the suggested grants into the file; hosts and ports only after a yes."),
            Option("--verbose", "Print every violation by itself, with its system call and error."),
            Option("--fix-network", "As --fix, and hosts and loopback ports without asking."),
            Option("--timeout", "Seconds the command may take.", "S", number=True),
            Option(
                "--observer", "Who watches the command.", "NAME", ("auto", "mask", "notify", "strace", "none"), "auto"
            ),
        ),
        passes_on=True,
    ),
    Command("doctor", "Say what this machine can do, and what to do about the rest.", (), (_TEXT_OR_JSON,)),
    Command(
        "schema",
        "Print the JSON Schema of the task file.",
        (),
        (Option("--resolved", "That of a resolved config instead."),),
    ),
    Command("init", "Write a commented starter vx.toml."),
)


class PlainLine(NamedTuple):
    """A command line whose words are plain and complete.

    Attributes:
        command: the command's name.
        arguments: its arguments.
    """

    command: str
    arguments: Arguments


def plain_line(words: list[str]) -> PlainLine | None:
    """The command and the arguments of a plain command line; `None` where typer has to look.

    Typer has to look at help, completion, abbreviations and mistakes.

    Args:
        words: the command line without the program's name.
    """
    before: list[str] = []
    rest = list(words)
    while len(rest) > 1 and rest[0] == DIRECTORY.name:
        before.append(rest[1])
        del rest[:2]
    named = next((one for one in COMMANDS if rest[:1] == [one.name]), None)
    found = _parse(named, rest[1:]) if named is not None else None
    if named is None or found is None:
        return None
    own = found[DIRECTORY.key]
    found[DIRECTORY.key] = [*before, *([own] if isinstance(own, str) else [])]
    return PlainLine(named.name, found)


def _parse(one: Command, words: list[str]) -> Arguments | None:
    found: Arguments = {option.key: _default(option) for option in (*one.options, DIRECTORY)}
    options = {option.name: option for option in (*one.options, DIRECTORY)}
    rest: list[str] = []
    behind: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            behind = list(waiting)
        elif not word.startswith("-") or word == "-":
            rest.append(word)
        else:
            given = _given(word, waiting, options)
            if given is None:
                return None
            found |= given
    if one.passes_on:
        found["args"] = behind
    else:
        rest += behind
    placed = _placed(one, rest)
    return None if placed is None else found | placed


def _default(option: Option) -> str | bool | None:
    return (option.default or None) if option.value else False


def _placed(one: Command, rest: list[str]) -> Arguments | None:
    """The arguments without a dash; `None` for too few or too many of them."""
    if not one.positionals:
        return None if rest else {}
    (positional,) = one.positionals
    if positional.many:
        return {positional.key: rest}
    return {positional.key: rest[0]} if len(rest) == 1 else None


def _given(word: str, waiting: Iterator[str], options: dict[str, Option]) -> Arguments | None:
    """The argument of an option that begins with a word; `None` for one that is not plain."""
    name, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
    option = options.get(name)
    if option is None:
        return None
    if not option.value:
        return {option.key: True} if not mark else None
    if not mark:
        value = next(waiting, "")
    if not value or (option.choices and value not in option.choices):
        return None
    if not option.number:
        return {option.key: value}
    try:
        return {option.key: float(value)}
    except ValueError:
        return None
