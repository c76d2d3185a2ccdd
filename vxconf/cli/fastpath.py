"""The hook's way: `vxconf check …` in plain spellings, without loading typer, rich or jsonschema.

Anything unusual falls through to typer, which says what is wrong with it.
"""

from __future__ import annotations

import sys

from vxconf.cli.arguments import DIRECTORY, Arguments, command, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
else:
    ModuleType = type(sys)  # `types` would be a module to load for one name


class _Anything:
    """What stands for a name that annotations alone use, which nobody reads."""

    def __class_getitem__(cls, _: object) -> type[_Anything]:
        return cls


class _Deferred(ModuleType):
    """A module that loads once something in it is used, and not when it is imported."""

    def __getattr__(self, attribute: str) -> object:
        # an import statement asks for `__path__`: that is no use of what is in it
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = __import__(self.__name__)
        vars(self).update(vars(real))
        return getattr(real, attribute)


def defer(name: str) -> None:
    """Defers loading a module of the standard library that others import and hardly use.

    `dataclasses` imports `inspect`, an eighth of a whole check, for classes without a docstring alone.
    `importlib.util.LazyLoader` would do it in Python 3.12; in 3.11 an import statement is a use.
    """
    sys.modules.setdefault(name, _Deferred(name))


def defer_for_check() -> None:
    """Defers `re`, and `typing` until more of it is used than what type checkers read: a fifth of a whole check.

    Only for a process that checks: what reads annotations, as typer does, would read stand-ins.
    """
    defer("re")
    defer("typing")
    module = sys.modules["typing"]
    if isinstance(module, _Deferred):
        vars(module).update(dict.fromkeys(("Any", "Literal", "Never", "Protocol"), _Anything), TYPE_CHECKING=False)


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
