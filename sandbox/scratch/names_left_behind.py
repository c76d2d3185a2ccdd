"""EFFECT: the look at what a task left once it is gone: names other programs execute, and names beside granted ones.

Nothing the task said is believed here. Each directory it could write in is walked on descriptors, at any depth, and
what is there is compared with what was there before: that is a wall by itself, however a name came to be.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.results import Violation
from sandbox.machine import walk_directories
from sandbox.machine.ask_facts import HostFiles
from sandbox.planning.operations import Bind, Names, shown
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.request.find_protected_names import FoundNames, existing, search
from sandbox.request.protected_names import CARRIERS, folded, is_policy, named_below, remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sandbox.base.host_facts import Files, Listing
    from sandbox.planning.path_reach import Plan
    from sandbox.request.protected_names import ProtectedNames
    from sandbox.scratch.quarantine import Quarantine


class _Inode(NamedTuple):
    """A file as it can be told from another of its name: a number may be given again, a change time may not."""

    device: int
    number: int
    kind: int
    changed: int
    owner: int

    @property
    def is_kept(self) -> bool:
        """Whether a task is kept from changing it, so that it is the same while its number is."""
        return self.kind in {stat.S_IFREG, stat.S_IFDIR}


class NamesBefore(NamedTuple):
    """The content of a task's write grants before it ran, as far as it is protected.

    Attributes:
        names: protected names.
        links: the texts of those that are links, over which nothing can be mounted.
        bare: see `FoundNames`.
        closed: directories that could not be looked into, and walls: what is in them is out of reach while they stay.
        beside: every entry of held directories.
    """

    names: Mapping[str, _Inode | None]
    links: Mapping[str, str]
    bare: Mapping[str, str]
    closed: Mapping[str, _Inode | None]
    beside: frozenset[str]


def before(plan: Plan, files: Files) -> NamesBefore:
    """Look at what a plan lets a task write, before it runs.

    Args:
        plan: the run's plan.
        files: those the plan was made with, which know the names already.
    """
    found = _look(plan, files, plan.executed.without)
    walls = (wall for wall in plan.executed.without if any(paths.under(wall, root) for root in plan.executed.roots))
    names = {path: _inode(path) for path in found.names if path not in plan.executed.named}
    return NamesBefore(
        names=names,
        links={path: text for path, one in names.items() if one is not None and (text := _link(path, one))},
        bare=found.bare,
        closed={path: _inode(path) for path in (*found.closed, *walls)},
        beside=_listed(plan, HostFiles()),
    )


def set_aside(plan: Plan, was: NamesBefore, *, shelf: Quarantine) -> tuple[Violation, ...]:
    """Move away every protected name that a run has brought, where the task may write.

    Call it once no process of the run lives any more. A call that made such a name was refused where somebody answers
    calls: the name is there since the task got past that, or since somebody else made it. It is kept, and its new
    place told.

    Args:
        plan: the run's plan.
        was: `before` of the run.
        shelf: where the names go.
    """
    files = HostFiles()
    walls = [path for path in plan.executed.without if path in was.closed and _inode(path) == was.closed[path]]
    found = _look(plan, files, walls)
    told = list(_each(plan, was, found, shelf))
    for directory in found.closed:
        if _is_out_of_reach(directory, was):
            continue
        inside = search(directory, _Opening(), git_config=plan.executed.git_config, enters=lambda _path: True)
        told += _each(plan, was, inside, shelf)
        for path in inside.closed:
            shut = (
                f"{path} cannot be looked into, and the task can make names in it: give its user the right to list it"
            )
            told.append(_violation(path, shut) if path in was.closed else _moved(path, "cannot be looked into", shelf))
    told += (_put_back(path, text) for path, text in was.links.items() if _inode(path) is None)
    told += (
        _moved(path, _what(path), shelf)
        for path in _in_held(plan, files, was.beside)
        if path not in was.names and os.path.lexists(path)
    )
    return tuple(told)


def unknown(plan: Plan, was: NamesBefore) -> Iterable[str]:
    """New entries of held directories that no grant covers, whoever made them."""
    for path in sorted(_listed(plan, HostFiles()) - was.beside):
        if not plan.granted.served(path) and not plan.leads(path):
            yield path


class _Opening(HostFiles):
    """The host's files, where the user's own directories that are closed to the user are opened first."""

    def below(self, directory: str, enters: Callable[[str], bool]) -> Iterator[Listing]:
        return walk_directories.below(directory, enters, opening=True)


def _look(plan: Plan, files: Files, without: Iterable[str]) -> FoundNames:
    """The protected names in everything a plan lets a task write."""
    executed = plan.executed
    each = []
    if executed.roots:
        each.append(existing(executed.roots, files, git_config=executed.git_config, without=tuple(without)))
    # A pattern stands for no protected name; these are the paths it matches all the same.
    matched = GrantedNames(plan.operations)
    closed = {*without, *executed.roots}

    def enters(path: str) -> bool:
        return path not in closed and (matched.leads(path) or matched.served(path))

    def holds(path: str) -> bool:
        inside = files.below(path, lambda _path: True)
        return plan.held != () or any(
            matched.served(paths.join(one.path, name)) for one in inside for name in one.names
        )

    for head in dict.fromkeys(one.path for one in plan.operations if isinstance(one, Names)):
        found = search(head, files, git_config=executed.git_config, enters=enters)
        names = (path for path in found.names if matched.served(path) or (matched.leads(path) and holds(path)))
        each.append(found._replace(names=tuple(names), closed=tuple(filter(matched.served, found.closed))))
    return FoundNames(
        tuple(dict.fromkeys(path for found in each for path in found.names)),
        tuple(dict.fromkeys(path for found in each for path in found.closed)),
        {directory: head for found in each for directory, head in found.bare.items()},
    )


def _each(plan: Plan, was: NamesBefore, found: FoundNames, shelf: Quarantine) -> Iterator[Violation]:
    """The violations of names that were found, each of which is moved away unless it was there."""
    executed = plan.executed
    laid_over = {one.path for one in plan.operations if isinstance(one, Bind) and not one.writable}
    for path in dict.fromkeys(_changed(executed, was, found)):
        if path in was.names and path in laid_over:
            # The task cannot replace what is laid over, and somebody's own work must not vanish.
            line = f"{path} {_what(path)}: it was replaced during the run by somebody else, and could be written since"
            yield _violation(path, line)
        else:
            yield _moved(path, _what(path), shelf, remedy(path, git_config=executed.git_config))


def _changed(executed: ProtectedNames, was: NamesBefore, found: FoundNames) -> Iterator[str]:
    for path in found.names:
        now, old = _inode(path), was.names.get(path)
        if path in executed.named or (old is not None and (now is None or _same(old, now))):
            continue
        directory = paths.parent(path)
        made_bare = directory in found.bare and directory not in was.bare
        if made_bare and not named_below(path, directory, git_config=executed.git_config):
            # Without it the directory is none, and what was there beside it stays.
            yield found.bare[directory]
        else:
            yield path


def _same(old: _Inode, now: _Inode) -> bool:
    return old[:3] == now[:3] and (old.is_kept or old == now)


def _is_out_of_reach(directory: str, was: NamesBefore) -> bool:
    """Whether a directory was closed before as it is now, so that the task made nothing in it."""
    old, now = was.closed.get(directory), _inode(directory)
    if old is None or now is None or old != now:
        return False
    return not os.access(directory, os.X_OK) or (now.owner != os.getuid() and not os.access(directory, os.W_OK))


def _link(path: str, inode: _Inode) -> str:
    try:
        return os.readlink(path) if inode.kind == stat.S_IFLNK else ""
    except OSError:
        return ""


def _put_back(path: str, text: str) -> Violation:
    """Put a link back that the task took away or replaced."""
    try:
        fd = walk_directories.open_through_no_link(paths.parent(path), flags=walk_directories.PASS, opening=True)
        try:
            os.symlink(text, paths.name(path), dir_fd=fd)
        finally:
            os.close(fd)
    except OSError as error:
        return _violation(path, f"{path} {_what(path)}: it was taken away, and cannot be put back ({error.strerror})")
    return _violation(path, f"{path} {_what(path)}: it was taken away, and was put back as a link to {text}")


def _inode(path: str) -> _Inode | None:
    try:
        fd = walk_directories.open_through_no_link(paths.parent(path), flags=walk_directories.PASS)
    except OSError:
        return None
    try:
        found = os.stat(paths.name(path), dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    finally:
        os.close(fd)
    return _Inode(found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), found.st_ctime_ns, found.st_uid)


def _moved(path: str, what: str, shelf: Quarantine, advice: str = "") -> Violation:
    fate = shelf.put(path, or_remove=True)
    return _violation(path, f"{path} {what}: it was made during the run and {fate}{advice and f'; {advice}'}")


def _violation(path: str, line: str) -> Violation:
    return Violation(kind="write", operation="create", target=path, path=path, errno="", line=shown(line))


def _what(path: str) -> str:
    if is_policy(path):
        return "says what tasks are granted"
    return (
        "makes a repository of its directory"
        if folded(paths.name(path)) == "head"
        else "is a name other programs execute"
    )


def _listed(plan: Plan, files: Files) -> frozenset[str]:
    """Every entry of held directories; asked before a run, it tells later which are new."""
    return frozenset(paths.join(directory, name) for directory in plan.held for name in files.entries(directory))


def _in_held(plan: Plan, files: Files, beside: frozenset[str]) -> Iterator[str]:
    """Protected names in held directories that were not there before; older ones are laid over."""
    executed: ProtectedNames = plan.executed
    for directory in plan.held:
        for name in files.entries(directory):
            path = paths.join(directory, name)
            if path in beside:
                continue
            if executed.reserves(path, directory):
                yield path
            elif folded(name) in CARRIERS:
                if files.kind(path) is Kind.DIRECTORY:
                    yield from existing((path,), files, git_config=executed.git_config).names
                else:
                    yield path
