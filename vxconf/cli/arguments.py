"""The one definition of the command line: what each command takes, its defaults and its help.

The fast path parses from this table and typer's commands are built from it, so that they cannot differ.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option.

    Attributes:
        name: with its dashes.
        value: what its value is called in the help; empty for a flag.
        choices: the values it takes, any when empty.
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
        """Its name in `Arguments`."""
        return self.own_key or self.name.lstrip("-").replace("-", "_")


class Positional(NamedTuple):
    """The arguments without a dash."""

    name: str
    help: str
    many: bool = False
    required: bool = True

    @property
    def key(self) -> str:
        """Its name in `Arguments`."""
        return self.name.lower()


class Command(NamedTuple):
    """One subcommand.

    Attributes:
        passes_on: whether what comes after `--` is not its own but for what it runs; `args` in `Arguments`.
    """

    name: str
    help: str
    positionals: tuple[Positional, ...] = ()
    options: tuple[Option, ...] = ()
    passes_on: bool = False


#: What a command was given, by key: strings, booleans, numbers, lists for `many`; `None` where nothing was.
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
            Option("--fix", "Write the suggested grants into the file."),
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


def command(name: str) -> Command | None:
    """The command of that name."""
    return next((one for one in COMMANDS if one.name == name), None)


def parse(one: Command, words: list[str]) -> Arguments | None:
    """A command's arguments out of plain, complete spellings; `None` for anything that is not.

    What it returns `None` for is typer's to judge: help, abbreviations, mistakes.
    """
    found: Arguments = {option.key: (option.default or None) if option.value else False for option in one.options}
    found[DIRECTORY.key] = None
    options = {option.name: option for option in (*one.options, DIRECTORY)}
    many = next((positional for positional in one.positionals if positional.many), None)
    if many is None or len(one.positionals) != 1:
        return None
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            rest += waiting
        elif not word.startswith("-") or word == "-":
            rest.append(word)
        else:
            name, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
            option = options.get(name)
            if option is None or (mark and not option.value):
                return None
            if not option.value:
                found[option.key] = True
                continue
            if not mark:
                value = next(waiting, "")
            if not value or (option.choices and value not in option.choices):
                return None
            found[option.key] = value
    found[many.key] = rest
    return found


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
