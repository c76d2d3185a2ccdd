"""EFFECT: carries out one command of the table, in the directory that `-C` names."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from vxconf.cli.console import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vxconf.cli.arguments import Arguments


def dispatch(name: str, arguments: Arguments) -> int:
    """Carries out a command and returns its exit status.

    Args:
        name: the command's name.
        arguments: the command's arguments; `C` has the directories to go to, in order.

    Raises:
        UsageError: a directory cannot be entered, or the command line is wrong.
    """
    directories = arguments.get("C")
    for directory in directories if isinstance(directories, list) else ():
        try:
            os.chdir(directory)
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or str(fault)
            raise UsageError(f"-C {directory}: {reason.lower()}") from None
    try:
        os.getcwd()
    except OSError:
        raise UsageError("the working directory is gone: go to another one") from None
    main: Callable[[Arguments], int] = import_module(f"vxconf.cli.commands.{name}").main
    return main(arguments)
