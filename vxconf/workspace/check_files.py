"""The diagnostics of a workspace and its projects: every text and every block judged against the file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from vxconf.diagnostics.diagnostic import Diagnostic, Severity, in_order
from vxconf.validate.finding import Finding
from vxconf.validate.validate import validate_workspace
from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.load_file import START, file_diagnostic, read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract.config import Platform
    from vxconf.document.document import Document
    from vxconf.resolve.task_model import SandboxModel, TaskModel
    from vxconf.workspace.project import EnclosingWorkspace, Project, Task

#: The platforms that `--platform all` stands for.
PLATFORMS: tuple[Platform, ...] = ("linux", "macos")
#: The warnings about entries that name nothing.
_NAMES_NOTHING = frozenset({"VX403", "VX407", "VX420", "VX421"})


def check_workspace(workspace: EnclosingWorkspace, platforms: Iterable[Platform] = PLATFORMS) -> tuple[Diagnostic, ...]:
    """Every diagnostic of a workspace: its own, then file by file."""
    found = list(workspace.problems)
    try:
        projects = workspace.projects
    except TooManyDirectories:
        return tuple(found)
    for project in projects:
        found += check_project(project, platforms)
    return tuple(found)


def check_project(project: Project, platforms: Iterable[Platform] = PLATFORMS) -> tuple[Diagnostic, ...]:
    """Every diagnostic of one project's file, in file order."""
    loaded = project.loaded
    if loaded is None:
        return ()
    found = [d for d in loaded.diagnostics if d.platform is None or d.platform in platforms]
    if loaded.document is not None and not project.workspace.chosen_by.problem:
        # a field that the text alone refuses is not refused again for the file system
        refused = {diagnostic.path for diagnostic in found if diagnostic.is_error}
        # an entry that is not understood names nothing for that very reason
        literal = {diagnostic.path for diagnostic in found if diagnostic.code in {"VX418", "VX419"}}
        found += [
            diagnostic
            for diagnostic in _judged_tasks(project, loaded.document, platforms)
            if diagnostic.path not in refused and not (diagnostic.path in literal and diagnostic.code in _NAMES_NOTHING)
        ]
    return in_order(found)


def _judged_tasks(project: Project, document: Document, platforms: Iterable[Platform]) -> Iterator[Diagnostic]:
    """The diagnostics of a project's tasks that need the file system or the workspace."""
    # blocks without a diagnostic, as they are written: tasks of one project often have the same block
    healthy: set[str] = set()
    for task in project.tasks:
        if task.model is None:
            continue
        yield from task.project.workspace.unknown_references(task)
        if task.model.cache is not None and "linux" in platforms:
            yield from _cache(task, task.model, document)
        block = task.model.exec.sandbox if task.model.exec is not None else None
        if block is None:
            continue
        written = "" if task.has_mistakes else repr(document.data["tasks"][task.name]["exec"]["sandbox"])
        if written in healthy:
            continue
        found = list(_block(task, block, document, platforms))
        if written and not found:
            healthy.add(written)
        yield from found


def workspace_diagnostics(workspace: EnclosingWorkspace) -> tuple[Diagnostic, ...]:
    """The faults of the workspace as a whole: its root, its own file, its size."""
    root, members = workspace.chosen_by, workspace.index.members
    file = workspace.name_of(root.marker)
    if root.problem:
        remedy = "put the projects in a directory of their own, with .vx/workspace.toml in it"
        return (file_diagnostic("VX310", file, root.problem, remedy),)
    if root.rule == "workspace.toml":
        broken = _workspace_file(workspace, file)
        if broken:
            return broken
    if members.problem:
        return (file_diagnostic(members.code, file, members.problem, members.help),)
    try:
        workspace.index.all()
    except TooManyDirectories as fault:
        message = f"{fault.directory} holds more directories than can be searched for projects"
        return (file_diagnostic("VX310", file, message, "mark a smaller workspace with .vx/workspace.toml"),)
    return tuple(
        Diagnostic(
            code="VX423",
            severity=Severity.WARNING,
            file=workspace.name_of(one.path),
            place=START,
            path="",
            message="the file is named almost like a task file, and is not read",
            help=one.remedy,
        )
        for one in workspace.index.misnamed
    )


def _block(task: Task, block: SandboxModel, document: Document, platforms: Iterable[Platform]) -> Iterator[Diagnostic]:
    # grants are judged alike on every platform, so one stands for all
    for platform in ("linux",) if "linux" in platforms else platforms:
        try:
            judged = task.judged(platform)
        except TooManyDirectories:
            return
        if judged is None:
            return
        yield from judged.refusals
        if _has_grants(block) and platform == "linux":
            from vxconf.lint.grant_warnings import warnings_of_grants

            workspace = task.project.workspace
            yield from warnings_of_grants(
                block,
                judged,
                document,
                files=workspace.files,
                stores=workspace.credential_stores,
                is_made=lambda path: _is_made(task.project.workspace, path),
            )
        if _has_endpoints(block):
            from vxconf.lint import network_warnings

            yield from network_warnings.warnings_of_network(block, judged, document, files=task.project.workspace.files)
    if block.network is True and listed_hosts(task.project.workspace) == ():
        yield Finding(
            code="VX402",
            path=(*block.path, "allow", "network"),
            message="allow.network is true, and no task of the workspace lists a host",
            help="list the hosts the task needs",
        ).to_diagnostic(document)


def _cache(task: Task, model: TaskModel, document: Document) -> Iterator[Diagnostic]:
    """The warnings about a task's cache; none about one with mistakes, whose grants or inputs may be among them."""
    if task.has_mistakes or model.cache is None:
        return
    from vxconf.lint.cache_warnings import CacheSetting, warnings_of_cache

    workspace = task.project.workspace
    where = CacheSetting(
        workspace=workspace.root,
        project=task.project.directory,
        files=workspace.files,
        is_made=lambda path: _is_made(workspace, path),
        is_keyed=lambda path: any(
            paths.at_or_under(path, one) for one in workspace.upstream_of(task).keyed or () if one != workspace.root
        ),
    )
    try:
        for finding in warnings_of_cache(model, task.judged("linux"), where):
            yield finding.to_diagnostic(document)
    except TooManyDirectories:
        return


def _is_made(workspace: EnclosingWorkspace, path: str) -> bool:
    """Whether a task of the project that holds a path may write the path, or names it as an output."""
    directory = workspace.index.enclosing(path)
    if directory is None:
        return False
    places, above = workspace.project_at(directory).made
    return path in above or path in places or any(holder in places for holder in paths.parents(path))


def _has_grants(block: SandboxModel) -> bool:
    return bool(block.read or block.write)


def _has_endpoints(block: SandboxModel) -> bool:
    return bool(block.network or block.deny_network or block.unix_sockets)


def listed_hosts(workspace: EnclosingWorkspace) -> tuple[str, ...] | None:
    """The entries of every `allow.network` list of a workspace, each once; `None` when it is too large to search."""
    try:
        tasks = workspace.tasks
    except TooManyDirectories:
        return None
    blocks = (task.model.exec.sandbox for task in tasks if task.model is not None and task.model.exec is not None)
    lists = (block.network for block in blocks if block is not None)
    return tuple(
        dict.fromkeys(entry.text for hosts in lists if hosts is not None and hosts is not True for entry in hosts)
    )


def _workspace_file(workspace: EnclosingWorkspace, file: str) -> tuple[Diagnostic, ...]:
    document, problems = read_document(workspace.chosen_by.marker, file=file)
    return problems if document is None else validate_workspace(document)
