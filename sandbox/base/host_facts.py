"""The facts of a machine that planning may know, as values handed in; nothing here asks the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    Known = TypeVar("Known")


class Kind(Enum):
    """The kind of file a name stands for, a link not followed."""

    DIRECTORY = "directory"
    FILE = "file"
    LINK = "link"
    OTHER = "other"  # sockets, devices, pipes


class Listing(NamedTuple):
    """The entries of one directory, in no order.

    Attributes:
        path: the directory.
        names: every entry.
        directories: those that are directories themselves.
        closed: whether the directory could not be listed, or not be found again.
    """

    path: str
    names: Sequence[str] = ()
    directories: Sequence[str] = ()
    closed: bool = False


class Files(Protocol):
    """The host's file system as far as a plan needs it; names are absolute, no link is followed."""

    def kind(self, path: str) -> Kind | None:
        """The kind of the name itself, `None` when there is none or it cannot be looked at."""

    def readlink(self, path: str) -> str:
        """The text of a link."""

    def entries(self, path: str) -> tuple[str, ...]:
        """Sorted names in a directory, without `.` and `..`; empty when it cannot be listed."""

    def below(self, directory: str, enters: Callable[[str], bool]) -> Iterator[Listing]:
        """The listing of a directory and of every one below it that `enters` lets in, through no link."""

    def read(self, path: str, limit: int) -> bytes:
        """The first `limit` bytes of a plain file that is no link; empty when it cannot be read."""


def remembered(files: Files, key: tuple[str | None, ...], work: Callable[[], Known]) -> Known:
    """The result of `work`, kept for each key where the file system never changes.

    A `Files` that shows one moment says so by having a dict `kept`; with others the work is done each time.
    """
    kept: dict[tuple[str | None, ...], Known] | None = getattr(files, "kept", None)
    if kept is None:
        return work()
    found = kept.get(key)
    if found is None:
        found = kept[key] = work()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The facts planning depends on besides files.

    Attributes:
        platform: `linux` or `macos`.
        home: the user's home directory, canonical; `~` stands for it.
        other_homes: further homes with credentials this user may read, canonical: the user's own in the list of users
            where `HOME` says another, and for root every login user's.
        temp_root: the directory that holds every task's temporary directory, canonical.
        protected: canonical paths a write grant must never hold: the running interpreter, its
            environment, this package.
        secrets: canonical paths of the system's secrets that this user may read, as root does.
    """

    platform: str
    home: str
    temp_root: str
    protected: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    other_homes: tuple[str, ...] = ()

    @property
    def homes(self) -> tuple[str, ...]:
        """Every home in which credentials are looked for, the user's first."""
        return (self.home, *self.other_homes)
