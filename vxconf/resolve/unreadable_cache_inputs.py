"""The cache inputs that a task cannot read: a key with a file that no grant reaches is a wrong key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.request import cache_key_reach
from vxconf.resolve.judge_block import refusal_diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files
    from sandbox.request.request import Request
    from vxconf.diagnostics.diagnostic import Diagnostic, FieldPath
    from vxconf.document.document import Document
    from vxconf.resolve.task_model import TaskModel


def unreadable_inputs(request: Request, task: TaskModel, document: Document, files: Files) -> tuple[Diagnostic, ...]:
    """The refusals of a task's cache inputs: one for each `workspaceFiles` entry that takes a file no grant reaches.

    Args:
        request: the whole request.
        task: the task as its file says it.
        document: the task's file, for places.
        files: the file system.
    """
    if task.cache is None:
        return ()
    entries = task.cache.input_workspace_files
    root = request.workspace_root
    back = globs.matcher(tree for entry in entries if entry.startswith("!") for tree in _trees(entry[1:], root))
    found = []
    for index, entry in enumerate(entries):
        if entry.startswith("!"):
            continue
        path: FieldPath = (*task.path, "cache", "inputs", "workspaceFiles", index)
        try:
            for name in _files(entry, root, files):
                if not back(paths.join(root, name)) and cache_key_reach.keyed_outside_grants(request, (name,), files):
                    found.append(refusal_diagnostic(_hidden(name, request), path, document))
                    break
        except Refusal as refusal:
            found.append(refusal_diagnostic(refusal, path, document))
    return tuple(found)


def _hidden(name: str, request: Request) -> Refusal:
    up = len(paths.parts(paths.relative(request.config.project, request.workspace_root)))
    spelled = "/".join([".."] * up + [globs.escape(name)])
    return Refusal(
        f"the cache key holds {name}, which no grant lets the task read",
        code=refusal_codes.KEYED_UNREAD,
        hint=f'add "{spelled}" to allow.read, or take it out of the key',
    )


def _trees(entry: str, root: str) -> Iterator[str]:
    grant = globs.collapse(paths.join(globs.escape(root), entry))
    yield grant
    if not globs.has_wildcard(grant):
        yield f"{grant.rstrip('/')}/"


def _files(entry: str, root: str, files: Files) -> Iterator[str]:
    """The files an entry takes, relative to the root; no directory below the root is entered through a link.

    Raises:
        Refusal: the entry takes too many names.
    """
    for alternative in globs.expand_braces(entry):
        grant = paths.join(globs.escape(root), alternative)
        # a pattern takes files alone; a path to a directory takes every file below it
        deep = not globs.has_wildcard(globs.collapse(grant))
        todo = [path for path in globs.expand(grant, files) if path != root or deep]
        looked = 0
        while todo:
            path = todo.pop()
            if files.kind(path) is not Kind.DIRECTORY:
                yield paths.relative(path, root)
            elif deep:
                names = files.entries(path)
                looked += len(names)
                if looked > globs.MAX_ENTRIES:
                    raise Refusal(
                        f'"{entry}" takes more than {globs.MAX_ENTRIES} names',
                        code=refusal_codes.TOO_MUCH,
                        hint="name a deeper directory",
                    )
                todo += (paths.join(path, name) for name in names)
