"""A document as the rules look at it: what has the right type is there, what has not is left to the schema."""

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


# plain classes: making a dataclass takes a millisecond of every start
class TaskView:
    """One task; every way in gives nothing where a value has another type than the schema wants."""

    __slots__ = ("_all", "_strings", "data", "name")

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        self.data = data
        self._all: dict[tuple[str, ...], Any] = {(): data}
        self._strings: dict[tuple[str, ...], tuple[tuple[FieldPath, str], ...]] = {}
        todo: list[tuple[str, ...]] = [()]
        # every value by its keys: the rules ask for most of what there may be, and little of it is there
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
        """Where the task is in the document."""
        return ("tasks", self.name)

    def value(self, *keys: str) -> Any:
        """The value below the task, `None` when there is none."""
        return self._all.get(keys)

    def table(self, *keys: str) -> dict[str, Any]:
        """The table below the task."""
        value = self.value(*keys)
        return value if isinstance(value, dict) else {}

    def strings(self, *keys: str) -> tuple[tuple[FieldPath, str], ...]:
        """The non-empty strings of a list below the task, with their paths."""
        return self._strings.get(keys, ())

    def _entries(self, keys: tuple[str, ...], value: list[Any]) -> tuple[tuple[FieldPath, str], ...]:
        at = (*self.path, *keys)
        return tuple(((*at, i), entry) for i, entry in enumerate(value) if isinstance(entry, str) and entry)

    def text(self, *keys: str) -> str | None:
        """A string below the task."""
        value = self.value(*keys)
        return value if isinstance(value, str) else None

    def has(self, *keys: str) -> bool:
        """Whether there is anything but `null` there."""
        return self.value(*keys) is not None


class FileView:
    """The tasks of one file, in its order.

    Attributes:
        sandboxed: the tasks with a block.
        escapes: whether any string can hold a character that has to be escaped, such as NUL.
    """

    __slots__ = ("escapes", "names", "sandboxed", "tasks")

    def __init__(self, tasks: tuple[TaskView, ...], names: frozenset[str], *, escapes: bool) -> None:
        self.escapes = escapes
        self.tasks = tasks
        self.sandboxed = tuple(task for task in tasks if isinstance(task.value(*SANDBOX), dict))
        self.names = names


def file_view(data: object, *, escapes: bool = True) -> FileView:
    """The view of a parsed document, whatever it holds; `escapes` as in `FileView`."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return FileView((), frozenset(), escapes=escapes)
    views = tuple(TaskView(name, task) for name, task in tasks.items() if isinstance(task, dict))
    return FileView(views, frozenset(tasks), escapes=escapes)
