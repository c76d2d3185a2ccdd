"""EFFECT: carries out one command of the table, in the directory its `-C` names."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from vxconf.cli.console import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vxconf.cli.arguments import Arguments


def dispatch(name: str, arguments: Arguments) -> int:
    """Carries out a command; its exit status."""
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
