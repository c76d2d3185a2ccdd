"""The outputs that a task which passed did not make: its result would be kept without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs
from sandbox.contract.errors import Refusal
from sandbox.machine.ask_facts import HostFiles
from vxconf.diagnostics.diagnostic import quoted
from vxconf.diagnostics.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vxconf.workspace.project import Task


def unmade_outputs_text(task: Task) -> str:
    """A line for each output pattern of a task that begins at a place where nothing is; empty where all are made."""
    return "".join(f"{printable(line)}\n" for line in _lines(task))


def _lines(task: Task) -> Iterator[str]:
    files = HostFiles()
    for entry in task.output_files:
        if entry.startswith("!"):
            continue
        try:
            spelled = globs.expand_braces(entry)
        except Refusal:
            continue
        heads = [globs.head(f"{globs.escape(task.project.directory)}/{one}") for one in spelled]
        if all(files.kind(head) is None for head in heads):
            yield f"{task.id}: cache.outputs.files {quoted(entry)} took no file: the task did not make it"
