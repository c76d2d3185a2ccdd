"""The steps from a task file's name to its model: read, parse, validate, fill in defaults; every diagnostic is kept.

A task without a mistake gets its model even where another task of the file has one, and a task with mistakes gets one
of its well-formed part, so that a check sees the whole file in one pass. No task of a file with an error is run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from vxconf.diagnostics.diagnostic import Diagnostic, Place, Severity, UnreadableFile, dotted
from vxconf.document.parse import format_of, parse
from vxconf.document.read_file import ReadError, TooLarge, read_file
from vxconf.resolve.task_model import FileModel
from vxconf.resolve.task_model_from_data import fill_defaults
from vxconf.resolve.well_formed_part import well_formed_part
from vxconf.validate.validate import validate
from vxconf.workspace.root import CONFIG_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from vxconf.document.document import Document, Format

#: Files without a diagnostic, by format and bytes. Files of a monorepo are often alike, and are then parsed only once.
Known = dict[tuple["Format | None", bytes], "LoadedFile"]
#: The most bytes of a file that is kept in `Known`, and the most files.
_ALIKE, _KNOWN = 1 << 16, 4096

#: The place of a diagnostic about a file as a whole.
START = Place(1, 1, 1, 1)


class LoadedFile(NamedTuple):
    """One task file.

    Attributes:
        path: the absolute path.
        file: the name the file is reported under.
        text: the characters that could be read, for excerpts.
        document: the parsed file; `None` when the text does not parse.
        model: the tasks; of one with mistakes the well-formed part.
        broken: the names of the tasks with mistakes, in file order.
        diagnostics: the faults of the text, in file order.
    """

    path: str
    file: str
    text: str
    document: Document | None
    model: FileModel
    broken: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def hides_tasks(self) -> bool:
        """Whether the file may have tasks that cannot be seen: a fault of it lies outside of any one task."""
        return any(one.is_error and not one.path.startswith("tasks.") for one in self.diagnostics)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The names of every task of the file, the broken ones too."""
        return tuple(task.name for task in self.model.tasks)


def load_file(path: str, *, file: str, known: Known | None = None) -> LoadedFile:
    """The task file at a path; never raises on what the file holds.

    Args:
        path: the absolute path.
        file: the name to report the file under.
        known: the files loaded before; a file without a diagnostic is added.
    """
    try:
        raw = read_file(path)
    except ReadError as fault:
        return file_without_tasks(path, _unread(fault, file))
    return load_text(raw, path=path, file=file, known=known)


def read_document(path: str, *, file: str) -> tuple[Document | None, tuple[Diagnostic, ...]]:
    """The document of any file and no diagnostic, or `None` and the reasons why it does not parse."""
    try:
        return parse(read_file(path), file=file), ()
    except ReadError as fault:
        return None, (_unread(fault, file),)
    except UnreadableFile as fault:
        return None, fault.diagnostics


def _unread(fault: ReadError, file: str) -> Diagnostic:
    code = "VX002" if isinstance(fault, TooLarge) else "VX001"
    return file_diagnostic(code, file, f"the file {fault.message}", fault.help)


def load_text(raw: bytes, *, path: str, file: str, known: Known | None = None) -> LoadedFile:
    """The task file with this content; the other arguments are those of `load_file`."""
    key = (format_of(file), raw)
    alike = known.get(key) if known is not None else None
    if alike is not None and alike.document is not None:
        return alike._replace(path=path, file=file, document=alike.document.renamed(file))
    try:
        document = parse(raw, file=file)
    except UnreadableFile as fault:
        # bytes that are not UTF-8 show as U+FFFD in the excerpt
        return file_without_tasks(path, *fault.diagnostics, text=raw.decode("utf-8-sig", "replace"))
    diagnostics = validate(document)
    model, broken = _models(document, diagnostics)
    loaded = LoadedFile(
        path=path,
        file=file,
        text=document.text,
        document=document,
        model=model,
        broken=broken,
        diagnostics=diagnostics,
    )
    # a diagnostic holds the file's name, so only a file without one can stand for another
    if known is not None and not diagnostics and not broken and len(raw) <= _ALIKE and len(known) < _KNOWN:
        known[key] = loaded
    return loaded


def file_without_tasks(path: str, *diagnostics: Diagnostic, text: str = "") -> LoadedFile:
    """A file that gives no tasks, with the reasons."""
    return LoadedFile(
        path=path,
        file=diagnostics[0].file,
        text=text,
        document=None,
        model=FileModel(),
        broken=(),
        diagnostics=diagnostics,
    )


def file_diagnostic(code: str, file: str, message: str, remedy: str) -> Diagnostic:
    """A diagnostic about a file as a whole."""
    return Diagnostic(code=code, severity=Severity.ERROR, file=file, place=START, path="", message=message, help=remedy)


def config_file(directory: str, name_of: Callable[[str], str]) -> str | Diagnostic | None:
    """The absolute path of a directory's task file; `None` when it has none, a refusal when it has two.

    Args:
        directory: the absolute path of the directory.
        name_of: gives the name of an absolute path in reports.
    """
    found = [name for name in CONFIG_NAMES if os.path.lexists(f"{directory}/{name}")]
    if len(found) > 1:
        return file_diagnostic(
            "VX311",
            name_of(os.path.join(directory, found[-1])),
            f"the directory has both {found[0]} and {found[1]}",
            "keep one of them and move the tasks of the other into it",
        )
    return os.path.join(directory, found[0]) if found else None


def _models(document: Document, diagnostics: tuple[Diagnostic, ...]) -> tuple[FileModel, tuple[str, ...]]:
    data = document.data
    # a broken rule across fields (VX2xx) leaves the shape whole, and the task can still be judged
    errors = [diagnostic.path for diagnostic in diagnostics if diagnostic.code.startswith("VX1")]
    if not errors:
        return fill_defaults(data), ()
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return FileModel(), ()
    broken = _broken(tasks, errors)
    mistakes = frozenset(errors)
    whole: dict[str, Any] = {
        "tasks": {
            name: well_formed_part(name, task, mistakes) if name in broken else task for name, task in tasks.items()
        }
    }
    if isinstance(data.get("name"), str):
        whole["name"] = data["name"]
    return fill_defaults(whole), tuple(name for name in tasks if name in broken)


def _broken(tasks: dict[str, Any], errors: list[str]) -> set[str]:
    """The names of the tasks that errors at these dotted paths lie in."""
    # a fault of `tasks` itself or of the whole file may concern every task
    if not {"", "tasks"}.isdisjoint(errors):
        return set(tasks)
    spelled = {dotted(("tasks", name)): name for name in tasks}
    return {name for path in errors if (name := _task_of(path, spelled)) is not None}


def _task_of(path: str, spelled: dict[str, str]) -> str | None:
    """The task that holds a dotted path, `None` when no task does."""
    if path in spelled:
        return spelled[path]
    ends = (index for index, char in enumerate(path) if char in ".[")
    return next((spelled[path[:end]] for end in ends if path[:end] in spelled), None)
