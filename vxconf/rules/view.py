"""A document as the rules look at it: what has the right type is there, what has not is left to the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.diagnostics import FieldPath

SANDBOX = ("exec", "sandbox")
CACHE_LISTS = (
    ("cache", "inputs", "files"),
    ("cache", "inputs", "workspaceFiles"),
    ("cache", "outputs", "files"),
)
GRANTS = ((*SANDBOX, "allow", "read"), (*SANDBOX, "allow", "write"))


# plain classes: making a dataclass takes a millisecond of every start
class TaskView:
    """One task; every way in gives nothing where a value has another type than the schema wants."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        self.data = data

    @property
    def path(self) -> FieldPath:
        """Where the task is in the document."""
        return ("tasks", self.name)

    def value(self, *keys: str) -> Any:
        """The value below the task, `None` when there is none."""
        value: Any = self.data
        for key in keys:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def table(self, *keys: str) -> dict[str, Any]:
        """The table below the task."""
        value = self.value(*keys)
        return value if isinstance(value, dict) else {}

    def strings(self, *keys: str) -> Iterator[tuple[FieldPath, str]]:
        """The non-empty strings of a list below the task, with their paths."""
        value = self.value(*keys)
        if isinstance(value, list):
            for index, entry in enumerate(value):
                if isinstance(entry, str) and entry:
                    yield (*self.path, *keys, index), entry

    def text(self, *keys: str) -> str | None:
        """A string below the task."""
        value = self.value(*keys)
        return value if isinstance(value, str) else None

    def has(self, *keys: str) -> bool:
        """Whether there is anything but `null` there."""
        return self.value(*keys) is not None


class FileView:
    """The tasks of one file, in its order."""

    __slots__ = ("names", "tasks")

    def __init__(self, tasks: tuple[TaskView, ...], names: frozenset[str]) -> None:
        self.tasks = tasks
        self.names = names


def view(data: object) -> FileView:
    """The view of a parsed document, whatever it holds."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return FileView((), frozenset())
    return FileView(
        tuple(TaskView(name, task) for name, task in tasks.items() if isinstance(task, dict)), frozenset(tasks)
    )
