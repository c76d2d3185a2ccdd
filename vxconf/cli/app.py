"""The typer application, built from the table in `vxconf.cli.arguments`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vxconf.cli.arguments import COMMANDS, DIRECTORY, Arguments, Command, Option, Positional
from vxconf.cli.console import out
from vxconf.cli.dispatch import dispatch
from vxconf.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable


def carry_out(words: list[str]) -> int:
    """Parses a command line with typer, carries it out, and returns the exit status."""
    own, passed_on = _split(words)
    try:
        status = build(passed_on)(args=own, prog_name="vxconf", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return status if isinstance(status, int) else 0


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words of vxconf itself, and the words behind `--` for the task's command, which typer would mix up."""
    place = 0
    while words[place : place + 1] == [DIRECTORY.name]:
        place += 2
    named = next((one for one in COMMANDS if words[place : place + 1] == [one.name]), None)
    if named is None or not named.passes_on or "--" not in words[place:]:
        return words, []
    end = words.index("--", place)
    return words[:end], words[end + 1 :]


def build(passed_on: list[str] | None = None) -> typer.Typer:
    """The application.

    Args:
        passed_on: the words behind `--`, for the command that passes them on.
    """
    app = typer.Typer(
        help="Declare what each task of a monorepo may touch, and run it walled in.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    directory = Annotated[str | None, typer.Option("-C", metavar=DIRECTORY.value, help=DIRECTORY.help)]

    def top(context: typer.Context, C: Any = None, version: Any = False) -> None:  # noqa: N803
        if version:
            out(f"vxconf {VERSION}\n")
            raise typer.Exit
        context.obj = C

    version = Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)]
    _annotate(top, {"context": (typer.Context, None), "C": (directory, None), "version": (version, False)})
    app.callback(invoke_without_command=True)(top)
    for command in COMMANDS:
        app.command(command.name, help=command.help)(_function(command, passed_on or []))
    return app


def _function(command: Command, passed_on: list[str]) -> Callable[..., None]:
    def carry(context: typer.Context, **given: Any) -> None:
        arguments: Arguments = dict(given)
        before, own = context.obj, given.get(DIRECTORY.key)
        arguments[DIRECTORY.key] = [directory for directory in (before, own) if directory]
        if command.passes_on:
            arguments["args"] = passed_on
        raise typer.Exit(dispatch(command.name, arguments))

    parameters: dict[str, tuple[Any, Any]] = {"context": (typer.Context, None)}
    for positional in command.positionals:
        parameters[positional.key] = _argument(positional)
    for option in (*command.options, DIRECTORY):
        parameters[option.key] = _option(option)
    _annotate(carry, parameters)
    return carry


def _argument(positional: Positional) -> tuple[Any, Any]:
    info = typer.Argument(metavar=positional.name, help=positional.help)
    if positional.many:
        return Annotated[list[str] | None, info], None
    return Annotated[str, info], inspect.Parameter.empty


def _option(option: Option) -> tuple[Any, Any]:
    if not option.value:
        return Annotated[bool, typer.Option(option.name, help=option.help)], False
    kind: Any = float if option.number else Literal[option.choices] if option.choices else str
    metavar = None if option.choices else option.value
    info = typer.Option(option.name, metavar=metavar, help=option.help)
    if option.default:
        return Annotated[kind, info], option.default
    return Annotated[kind | None, info], None


def _annotate(function: Callable[..., None], parameters: dict[str, tuple[Any, Any]]) -> None:
    """Gives a function the signature that typer reads."""
    function.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=inspect.Parameter.empty if name == "context" else default,
            )
            for name, (annotation, default) in parameters.items()
        ]
    )
