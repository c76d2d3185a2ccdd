"""Which tasks an invocation runs, and in which order: what a task refers to comes before it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class NamedTask(Protocol):
    """What is scheduled."""

    @property
    def id(self) -> str:
        """Unlike any other's."""


T = TypeVar("T", bound=NamedTask)


class Cycle(Exception):
    """Tasks that wait for each other.

    Attributes:
        ids: each before what it waits for; the first stands at the end again.
    """

    def __init__(self, ids: tuple[str, ...]) -> None:
        super().__init__(f"{' -> '.join(ids)} is a cycle")
        self.ids = ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[T]):
    """One task, and what has to be done before.

    Attributes:
        after: the ids of the steps it waits for, in the order it names them.
        asked: whether it was asked for, and not only needed.
    """

    task: T
    after: tuple[str, ...]
    asked: bool


def schedule(asked: Iterable[T], references: Callable[[T], Iterable[T]]) -> tuple[Step[T], ...]:
    """Every task asked for and all they lead to, each after what it refers to, each once.

    Args:
        asked: in the order they are to be run where nothing else decides it.
        references: what a task refers to.

    Raises:
        Cycle: some wait for each other.
    """
    chosen = tuple(asked)
    names = {task.id for task in chosen}
    done: dict[str, Step[T]] = {}
    # deep chains are longer than the interpreter's own stack: what is open is kept here
    for first in chosen:
        way: list[tuple[T, list[T]]] = []
        _enter(first, references, way, done)
        while way:
            task, waiting = way[-1]
            if waiting:
                _enter(waiting.pop(0), references, way, done)
                continue
            way.pop()
            after = tuple(dict.fromkeys(other.id for other in references(task)))
            done[task.id] = Step(task=task, after=after, asked=task.id in names)
    return tuple(done.values())


def _enter(
    task: T, references: Callable[[T], Iterable[T]], way: list[tuple[T, list[T]]], done: dict[str, Step[T]]
) -> None:
    if task.id in done:
        return
    ids = [open_task.id for open_task, _ in way]
    if task.id in ids:
        raise Cycle((*ids[ids.index(task.id) :], task.id))
    way.append((task, list(references(task))))
