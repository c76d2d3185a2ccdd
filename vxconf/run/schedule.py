"""The order in which an invocation runs its tasks: each task comes after the tasks it refers to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class NamedTask(Protocol):
    """A task to schedule."""

    @property
    def id(self) -> str:
        """The task's reference, which no other task has."""


T = TypeVar("T", bound=NamedTask)


class Cycle(Exception):
    """Tasks that wait for each other.

    Attributes:
        ids: the tasks, each before the one it waits for; the first is also the last.
    """

    def __init__(self, ids: tuple[str, ...]) -> None:
        super().__init__(f"{' -> '.join(ids)} is a cycle")
        self.ids = ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[T]):
    """One task with the tasks before it.

    Attributes:
        task: the task.
        after: the ids of the steps it waits for, in the order the task names them.
        asked: whether the user asked for the task, rather than another task that needs it.
    """

    task: T
    after: tuple[str, ...]
    asked: bool


def schedule(asked: Iterable[T], references: Callable[[T], Iterable[T]]) -> tuple[Step[T], ...]:
    """The steps of an invocation: the tasks asked for and all they lead to, each once and after those it refers to.

    Args:
        asked: the tasks asked for, in the order to run them where no reference decides.
        references: gives the tasks a task refers to.

    Raises:
        Cycle: some tasks wait for each other.
    """
    chosen = tuple(asked)
    names = {task.id for task in chosen}
    done: dict[str, Step[T]] = {}
    # a chain of references can be deeper than the interpreter's stack, so the open tasks are kept in a list
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
