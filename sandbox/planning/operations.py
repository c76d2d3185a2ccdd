"""The operations of a Linux plan, in the order they are carried out: parents before children.

A later operation hides an earlier one at the same place. A *cover* is a directory whose content is
only what the plan places in it; everything else there does not exist for the task, whenever it was
made. Rules that hide something rest on covers alone inside the workspace and around credential
stores: a mount over a directory entry of the host would go the moment the host renames over it.
"""

from __future__ import annotations

from dataclasses import dataclass


def shown(path: str) -> str:
    """A path on one line: control characters and bytes that are no text come out as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The cause of an operation.

    Attributes:
        field: the grant, such as `allowRead[0]`; empty for an implied one.
        reason: for an implied one, a clause for people.
    """

    field: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One step of a plan; `path` is absolute and canonical."""

    path: str
    origin: Origin

    def describe(self) -> str:
        """One line for people, in the imperative."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Make(Operation):
    """Create a missing directory on the host before anything else, with its parents.

    Attributes:
        passing: whether the directory is there only to hold names, so that it goes at the end if nothing is in it.
    """

    passing: bool = False

    def describe(self) -> str:
        made = f"make directory {shown(self.path)} on the host if it is missing"
        return f"{made}, and take it back if it stays empty" if self.passing else made


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnlyRoot(Operation):
    """The whole root, read-only; every later operation is laid over it."""

    def describe(self) -> str:
        return f"show {shown(self.path)} read-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover(Operation):
    """Hide a directory's content: only paths that later operations place in it exist.

    The directory exists on the host, or is placed in a cover above it by being named here.

    Attributes:
        readable_without: set where a grant lets the whole directory be read and its entries are placed one by one: the
            names in it that stay hidden. The task may look for any other name, though none is there.
    """

    readable_without: tuple[str, ...] | None = None

    def describe(self) -> str:
        return f"cover {shown(self.path)}: only what is placed in it exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way(Operation):
    """A directory inside a cover that leads to something placed.

    Attributes:
        readable_without: as for `Cover`.
    """

    readable_without: tuple[str, ...] | None = None

    def describe(self) -> str:
        return f"show directory {shown(self.path)} with only what is placed in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh(Way):
    """The sandbox's own `/dev` or `/proc`, where a cover lies over the root."""

    def describe(self) -> str:
        return f"show the sandbox's own {shown(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Operation):
    """A symbolic link inside a cover."""

    target: str

    def describe(self) -> str:
        return f"show link {shown(self.path)} -> {shown(self.target)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(Operation):
    """The host's own file or directory; a directory with everything below it."""

    directory: bool
    writable: bool = False

    def describe(self) -> str:
        what = "directory" if self.directory else "file"
        return f"bind {what} {shown(self.path)} {'writable' if self.writable else 'read-only'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty(Operation):
    """An empty read-only directory in place of the host's.

    Attributes:
        laid_over: whether the host's directory shows through there, so that the empty one has to be mounted; otherwise
            the cover around it shows it.
    """

    laid_over: bool = False

    def describe(self) -> str:
        return f"show {shown(self.path)} as an empty read-only directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(Operation):
    """A file nobody may open (mode 000) in place of the host's.

    Attributes:
        laid_over: as for `Empty`.
    """

    laid_over: bool = False

    def describe(self) -> str:
        return f"show {shown(self.path)} as a file nobody may open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Bind):
    """The host's directory of granted names, writable since nothing serves them.

    Each other entry at the start is placed by a later operation. An entry that comes later is hidden, unless the task
    makes it. No mount keeps that: an observer answers for it at the call.

    Attributes:
        readable_without: as for `Cover`.
    """

    readable_without: tuple[str, ...] | None = None

    def describe(self) -> str:
        return f"bind directory {shown(self.path)} writable for the names granted in it, and hold what else is there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent(Operation):
    """An entry of a held directory that does not exist for the task, though it is listed there.

    Attributes:
        directory: whether the entry is laid over with an empty directory, else with a file nobody may open.
        laid_over: whether the entry is laid over at all; a link cannot be, and the observer alone answers for it.
    """

    directory: bool
    laid_over: bool = True

    def describe(self) -> str:
        over = "an empty directory" if self.directory else "a file nobody may open"
        how = f"lay {over} over" if self.laid_over else "refuse every call on"
        return f"{how} {shown(self.path)}, which does not exist for the task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Operation):
    """One name of the host, served for reading and writing: any file it is or becomes, with everything below it.

    Its directory is a cover or a way. Nothing is placed at the name or below it.
    """

    def describe(self) -> str:
        return f"serve the name {shown(self.path)} writable, whatever it becomes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names(Operation):
    """Every name a pattern matches, existing or made later, served as a `Name` is.

    `path` is the directory that is the pattern's literal head, a cover or a way. Directories below it that lead to a
    match are shown, with nothing in them but names that lead on.

    Attributes:
        pattern: absolute, in grant syntax; its head spelled as `path` is.
        without: absolute paths the pattern does not reach, nor anything below them: walls, and places that other
            operations show.
    """

    pattern: str
    without: tuple[str, ...] = ()

    def describe(self) -> str:
        return f"serve every name that matches {shown(self.pattern)} writable"
