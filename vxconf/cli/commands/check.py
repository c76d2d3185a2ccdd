"""`vxconf check`: prints every diagnostic of the given files; nothing is run or created."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import TYPE_CHECKING

from sandbox.machine.ask_facts import home_directory
from vxconf.cli.console import FOUND, OK, UsageError, err, is_coloured, out
from vxconf.diagnostics.diagnostic import Diagnostic, Place, Severity
from vxconf.workspace.check_files import PLATFORMS, check_project
from vxconf.workspace.find_projects import TooManyDirectories
from vxconf.workspace.load_file import file_diagnostic, load_file, load_text
from vxconf.workspace.project import Project
from vxconf.workspace.root import CONFIG_NAMES, RootFinder, has_config
from vxconf.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.config import Platform
    from vxconf.cli.arguments import Arguments
    from vxconf.workspace.load_file import LoadedFile


def main(arguments: Arguments) -> int:
    """Checks files and prints their diagnostics; the status is 1 when there is an error."""
    named = arguments["platform"]
    checker = CheckCommand(tuple(platform for platform in PLATFORMS if named in {"all", platform}))
    paths = arguments["paths"]
    if isinstance(arguments["stdin_filename"], str):
        checker.standard_input(arguments["stdin_filename"], _standard_input())
    elif isinstance(paths, list) and paths:
        for path in paths:
            checker.path(path)
    else:
        checker.path(".", whole=True)
    checker.finish()
    found = [_strict(diagnostic) for diagnostic in checker.found] if arguments["strict"] else checker.found
    errors = sum(diagnostic.is_error for diagnostic in found)
    _print(str(arguments["format"]), found, checker, errors)
    return FOUND if errors else OK


#: A diagnostic as plain values, which `marshal` takes, in the order of its fields.
_Plain = tuple[str, str, str, tuple[int, int, int, int], str, str, str, "Platform | None"]
#: The result for a task file: its name, its text where there are diagnostics, the diagnostics.
_Result = tuple[str, str, tuple[_Plain, ...]]


class CheckCommand:
    """One invocation of `check`: files are added, then judged all at once by `finish`.

    Attributes:
        found: the diagnostics, file by file.
        sources: the text of each file with a diagnostic, by the file's name.
        files: how many task files were checked.
        workspaces: the workspaces of the files, by root.
    """

    def __init__(self, platforms: tuple[Platform, ...], *, processes: int | None = None) -> None:
        """Takes the platforms to judge for.

        Args:
            platforms: the platforms.
            processes: how many processes judge; by default as many as pay.
        """
        self._platforms = platforms
        self._processes = processes
        self._cwd = os.getcwd()
        self._below = self._cwd + "/"
        self._finder = RootFinder(home_directory())
        self._seen: set[str] = set()
        # the directories of the projects whose task files were named, by the root of their workspace
        self._named: dict[str, set[str]] = {}
        # diagnostics of workspaces, and projects to judge with the path the user gave for their file, in output order
        self._order: list[Diagnostic | tuple[Project, str | None]] = []
        self.found: list[Diagnostic] = []
        self.sources: dict[str, str] = {}
        self.files = 0
        self.workspaces: dict[str, Workspace] = {}

    def path(self, path: str, *, whole: bool = False) -> None:
        """Adds a file, the projects below a directory, or with `whole` all of the workspace that holds a directory."""
        # a directory named like a task file, without a task file in it, is reported as an unreadable file
        if os.path.isdir(path) and (os.path.basename(path) not in CONFIG_NAMES or has_config(path)):
            self._directory(os.path.realpath(path), whole=whole)
        elif os.path.basename(path) == "workspace.toml" and os.path.basename(os.path.dirname(path)) == ".vx":
            # the workspace's own diagnostics are about this file
            self._workspace(os.path.dirname(os.path.dirname(os.path.realpath(path))))
        else:
            self._file(path)

    def standard_input(self, path: str, raw: bytes) -> None:
        """Adds bytes that are checked as if they were the file at a path."""
        project = self._project_of(path)
        if project is not None:
            absolute = os.path.join(project.directory, os.path.basename(path))
            project.loaded = load_text(raw, path=absolute, file=os.path.normpath(path))
            self._order.append((project, None))

    def finish(self) -> None:
        """Judges everything that was added, and fills the attributes."""
        projects = [one for one in self._order if isinstance(one, tuple)]
        if len(projects) > 1:
            from vxconf.cli.workers import map_in_processes  # one project needs no other process

            results = iter(map_in_processes(projects, self._judged, processes=self._processes))
        else:
            results = map(self._judged, projects)
        for one in self._order:
            if isinstance(one, Diagnostic):
                self.found.append(one)
                continue
            result = next(results)
            if result is not None:
                self.files += 1
                file, text, found = result
                if found:
                    self.found += map(_diagnostic, found)
                    self.sources[file] = text
        self._add_broken_elsewhere()

    def _add_broken_elsewhere(self) -> None:
        """Adds what the named files may have broken in others: a commit hook is given the changed files alone."""
        told = set(self.found)
        for root, directories in self._named.items():
            from vxconf.workspace.unknown_references import references_broken_elsewhere

            for project, diagnostic in references_broken_elsewhere(self.workspaces[root], directories):
                if diagnostic not in told and project.loaded is not None:
                    self.found.append(diagnostic)
                    self.sources[diagnostic.file] = project.loaded.text

    def _judged(self, named: tuple[Project, str | None]) -> _Result | None:
        project, path = named
        loaded = project.loaded if path is None else self._loaded(project, path)
        if loaded is None:
            return None
        found = check_project(project, self._platforms)
        return loaded.file, loaded.text if found else "", tuple(map(_plain, found))

    def _loaded(self, project: Project, path: str) -> LoadedFile | None:
        """The file at a path, loaded as its project's task file."""
        name, file = os.path.basename(path), os.path.normpath(path)
        absolute = os.path.join(project.directory, name)
        loaded = project.loaded if name in CONFIG_NAMES else None
        if loaded is None or (loaded.path != absolute and not os.path.lexists(absolute)):
            # a file of another name is judged as if it were its directory's task file
            loaded = project.loaded = load_file(absolute, file=file)
        if loaded is not None and loaded.document is not None and loaded.document.file != file:
            # the file is reported under the name the user gave
            project.loaded = loaded._replace(document=loaded.document.renamed(file))
        return project.loaded

    def _file(self, path: str) -> None:
        project = self._project_of(path)
        if project is not None:
            self._order.append((project, path))
            if os.path.basename(path) in CONFIG_NAMES:
                self._named.setdefault(project.workspace.root, set()).add(project.directory)

    def _directory(self, directory: str, *, whole: bool) -> None:
        workspace = self._workspace(directory)
        start = workspace.root if whole else directory
        try:
            below = workspace.index.below(start)
        except TooManyDirectories:
            # the workspace's own diagnostics have it where the start is the root
            if workspace.root != start:
                self._too_many(workspace, start)
            return
        for project in (start, *below):
            # a project may be the root of another workspace
            self._order.append((self._workspace(project).project_at(project), None))

    def _project_of(self, path: str) -> Project | None:
        """A new project for a file, `None` when the file was added before."""
        directory = os.path.realpath(os.path.dirname(path) or ".")
        absolute = os.path.join(directory, os.path.basename(path))
        if absolute in self._seen:
            return None
        self._seen.add(absolute)
        # the workspace's own project of the directory keeps the directory's task file
        return Project(self._workspace(directory), directory)

    def _workspace(self, directory: str) -> Workspace:
        root = self._finder.find(directory)
        workspace = self.workspaces.get(root.path)
        if workspace is None:
            workspace = self.workspaces[root.path] = Workspace(root, here=directory, name_of=self._name)
            self._report(workspace)
        return workspace

    def _report(self, workspace: Workspace) -> None:
        for diagnostic in workspace.problems:
            self._order.append(diagnostic)
            marker = workspace.chosen_by.marker
            if os.path.isfile(marker):
                self.sources[diagnostic.file] = load_file(marker, file=diagnostic.file).text

    def _too_many(self, workspace: Workspace, start: str) -> None:
        message = f"{start} holds more directories than can be searched for projects"
        self._order.append(file_diagnostic("VX310", workspace.name_of(start), message, "name the files to check"))

    def _name(self, path: str) -> str:
        # most files are below, and a slice is faster than relpath; both paths are canonical
        return path[len(self._below) :] if path.startswith(self._below) else os.path.relpath(path, self._cwd)


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe the text into it, or name the file alone")
    try:
        return sys.stdin.buffer.read()
    except OSError as fault:
        raise UsageError(f"standard input cannot be read: {(fault.strerror or str(fault)).lower()}") from None


def _plain(one: Diagnostic) -> _Plain:
    place = one.place
    at = (place.line, place.column, place.end_line, place.end_column)
    return one.code, one.severity.value, one.file, at, one.path, one.message, one.help, one.platform


def _diagnostic(plain: _Plain) -> Diagnostic:
    code, severity, file, at, path, message, help_, platform = plain
    return Diagnostic(
        code=code,
        severity=Severity(severity),
        file=file,
        place=Place(*at),
        path=path,
        message=message,
        help=help_,
        platform=platform,
    )


def _strict(diagnostic: Diagnostic) -> Diagnostic:
    return dataclasses.replace(diagnostic, severity=Severity.ERROR)


def _print(form: str, found: list[Diagnostic], checker: CheckCommand, errors: int) -> None:
    warnings = len(found) - errors
    if form == "text" and not found:
        err("".join(f"{line}\n" for line in _summary(checker, errors, warnings)))
        return
    import json  # a healthy file printed as text needs neither of these

    from vxconf.diagnostics import render

    if form == "json":
        data = {
            "files": checker.files,
            "errors": errors,
            "warnings": warnings,
            "diagnostics": [render.diagnostic_as_dict(diagnostic) for diagnostic in found],
            "workspaces": [
                {"root": workspace.root, "rule": workspace.chosen_by.rule, "reason": workspace.chosen_by.reason}
                for workspace in checker.workspaces.values()
            ],
        }
        out(json.dumps(data, indent=2) + "\n")
    elif form == "sarif":
        from vxconf.diagnostics.sarif import sarif_log

        out(json.dumps(sarif_log(found, base=os.getcwd()), indent=2) + "\n")
    elif form == "github":
        out(render.github_commands(found))
    else:
        out(render.diagnostics_text(found, checker.sources, colour=is_coloured(sys.stdout)))
        err("".join(f"{line}\n" for line in _summary(checker, errors, warnings)))


def _summary(checker: CheckCommand, errors: int, warnings: int) -> Iterator[str]:
    for workspace in checker.workspaces.values():
        yield f"workspace {workspace.root}: {workspace.chosen_by.reason}"
    what = " and ".join(_count(n, noun) for n, noun in ((errors, "error"), (warnings, "warning")) if n)
    yield f"{_count(checker.files, 'file')} checked, {what or 'no problem'} found"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
