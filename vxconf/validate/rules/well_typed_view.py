"""The view of a document that rules take: values of the right type alone; the schema reports the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vxconf.diagnostics.diagnostic import FieldPath

SANDBOX = ("exec", "sandbox")
CACHE_LISTS = (
    ("cache", "inputs", "files"),
    ("cache", "inputs", "workspaceFiles"),
    ("cache", "outputs", "files"),
)
GRANTS = ((*SANDBOX, "allow", "read"), (*SANDBOX, "allow", "write"))


class TaskView:
    """One task; a value of another type than the schema wants reads as absent."""

    __slots__ = ("_all", "_strings", "data", "name")

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        self.data = data
        self._all: dict[tuple[str, ...], Any] = {(): data}
        self._strings: dict[tuple[str, ...], tuple[tuple[FieldPath, str], ...]] = {}
        todo: list[tuple[str, ...]] = [()]
        # a table of all values by their keys: rules ask for many fields, and a task has few
        while todo:
            above = todo.pop()
            for key, value in self._all[above].items():
                keys = (*above, key)
                self._all[keys] = value
                if isinstance(value, dict):
                    todo.append(keys)
                elif isinstance(value, list):
                    self._strings[keys] = self._entries(keys, value)

    @property
    def path(self) -> FieldPath:
        """The task's path in the document."""
        return ("tasks", self.name)

    def value(self, *keys: str) -> Any:
        """The value at these keys below the task, `None` when there is none."""
        return self._all.get(keys)

    def table(self, *keys: str) -> dict[str, Any]:
        """The table at these keys, empty when there is none."""
        value = self.value(*keys)
        return value if isinstance(value, dict) else {}

    def strings(self, *keys: str) -> tuple[tuple[FieldPath, str], ...]:
        """The non-empty strings of the list at these keys, each with its path."""
        return self._strings.get(keys, ())

    def _entries(self, keys: tuple[str, ...], value: list[Any]) -> tuple[tuple[FieldPath, str], ...]:
        at = (*self.path, *keys)
        return tuple(((*at, i), entry) for i, entry in enumerate(value) if isinstance(entry, str) and entry)

    def text(self, *keys: str) -> str | None:
        """The string at these keys, `None` when there is none."""
        value = self.value(*keys)
        return value if isinstance(value, str) else None

    def has(self, *keys: str) -> bool:
        """Whether there is a value other than `null` at these keys."""
        return self.value(*keys) is not None


class FileView:
    """The tasks of one file, in its order.

    Attributes:
        tasks: every task that is a table.
        names: the names of all tasks.
        sandboxed: the tasks with a sandbox block.
        escapes: whether the text has a backslash; without one no string holds a control character such as NUL.
    """

    __slots__ = ("escapes", "names", "sandboxed", "tasks")

    def __init__(self, tasks: tuple[TaskView, ...], names: frozenset[str], *, escapes: bool) -> None:
        self.escapes = escapes
        self.tasks = tasks
        self.sandboxed = tuple(task for task in tasks if isinstance(task.value(*SANDBOX), dict))
        self.names = names


def file_view(data: object, *, escapes: bool = True) -> FileView:
    """The view of a document's data, whatever it holds; see `FileView` for `escapes`."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return FileView((), frozenset(), escapes=escapes)
    views = tuple(TaskView(name, task) for name, task in tasks.items() if isinstance(task, dict))
    return FileView(views, frozenset(tasks), escapes=escapes)
