"""A task file from its name to its model: read, parsed, validated, normalized; every problem kept.

A task without a mistake gets its model even when another one of the file has one, so that a check
sees the whole file in one pass. A file with any error runs nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from vxconf.diagnostics.diagnostic import Diagnostic, Place, Severity, UnreadableFile, dotted
from vxconf.document.parse import format_of, parse
from vxconf.document.read_file import ReadError, TooLarge, read_file
from vxconf.resolve.normalize import normalize
from vxconf.resolve.task_model import FileModel
from vxconf.validate.validate import validate
from vxconf.workspace.root import CONFIG_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from vxconf.document.document import Document, Format

#: Files without a mistake by their bytes: those of a monorepo are often alike, and then judged as texts only once.
Known = dict[tuple["Format | None", bytes], "LoadedFile"]
#: Bytes of a file, and files, worth keeping so.
_ALIKE, _KNOWN = 1 << 16, 4096

#: The place of what is said about a file as a whole.
START = Place(1, 1, 1, 1)


class LoadedFile(NamedTuple):
    """One task file.

    Attributes:
        path: absolute.
        file: the name it is reported under.
        text: what could be read of it, for excerpts.
        document: `None` when the file is no document at all.
        model: the tasks without a mistake.
        broken: the names of the other tasks, in file order.
        diagnostics: what is wrong with the text, in file order.
    """

    path: str
    file: str
    text: str
    document: Document | None
    model: FileModel
    broken: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def refused(self) -> bool:
        """Whether the file as a whole is refused."""
        return any(diagnostic.is_error for diagnostic in self.diagnostics)

    @property
    def hides_tasks(self) -> bool:
        """Whether it may have tasks nobody can see: what is wrong with it is wrong outside of any one task."""
        return any(one.is_error and not one.path.startswith("tasks.") for one in self.diagnostics)

    @property
    def task_names(self) -> tuple[str, ...]:
        """Every task the file has, a broken one too."""
        return (*(task.name for task in self.model.tasks), *self.broken)


def load_file(path: str, *, file: str, known: Known | None = None) -> LoadedFile:
    """The file of that name; never raises on what is in it.

    Args:
        path: absolute.
        file: the name to report it under.
        known: files loaded before, to which this one is added.
    """
    try:
        raw = read_file(path)
    except ReadError as fault:
        return file_without_tasks(path, _unread(fault, file))
    return load_text(raw, path=path, file=file, known=known)


def read_document(path: str, *, file: str) -> tuple[Document | None, tuple[Diagnostic, ...]]:
    """The document of any file, or why there is none."""
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
    """The file these bytes are the content of; `known` as in `load_file`."""
    key = (format_of(file), raw)
    alike = known.get(key) if known is not None else None
    if alike is not None and alike.document is not None:
        return alike._replace(path=path, file=file, document=alike.document.renamed(file))
    try:
        document = parse(raw, file=file)
    except UnreadableFile as fault:
        # the excerpt of a file that is not UTF-8 shows a mark where the bytes are not
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
    # what is said of a file names it
    if known is not None and not diagnostics and not broken and len(raw) <= _ALIKE and len(known) < _KNOWN:
        known[key] = loaded
    return loaded


def file_without_tasks(path: str, *diagnostics: Diagnostic, text: str = "") -> LoadedFile:
    """A file that gives no tasks, and why."""
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
    """The task file of a directory, `None` when it has none, a refusal when it has two.

    Args:
        directory: absolute.
        name_of: how a file is named in reports.
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
    # a rule across fields that is broken leaves the shape whole: the task can still be judged on the host
    errors = [diagnostic.path for diagnostic in diagnostics if diagnostic.code.startswith("VX1")]
    if not errors:
        return normalize(data), ()
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        return FileModel(), ()
    spelled = {dotted(("tasks", name)): name for name in tasks}
    broken = {name for path in errors if (name := _task_of(path, spelled)) is not None}
    # a fault of `tasks` itself, or of nothing in particular, says nothing about a single task
    whole = any(path in {"", "tasks"} for path in errors)
    healthy = {} if whole else {name: task for name, task in tasks.items() if name not in broken}
    name = data.get("name")
    model = normalize({"tasks": healthy} | ({"name": name} if isinstance(name, str) else {}))
    return model, tuple(task for task in tasks if task not in healthy)


def _task_of(path: str, spelled: dict[str, str]) -> str | None:
    """The task a dotted path lies in."""
    if path in spelled:
        return spelled[path]
    ends = (index for index, char in enumerate(path) if char in ".[")
    return next((spelled[path[:end]] for end in ends if path[:end] in spelled), None)
