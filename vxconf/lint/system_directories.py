"""Directories of the system, of which a grant opens what belongs to every program and user of the machine. Pure."""

from __future__ import annotations

from typing import NamedTuple

from sandbox.base import globs, paths

#: Clauses for people about what lies in each directory.
_HELD = {
    "/": "every file of this machine",
    "/boot": "what this machine starts with",
    "/dev": "the devices of this machine",
    "/etc": "the settings of this machine, and secrets of its services",
    "/home": "the files of every user",
    "/opt": "programs installed for every user",
    "/proc": "the processes and settings of the kernel",
    "/root": "the files of root",
    "/run": "the sockets and secrets of running services",
    "/srv": "the data of services",
    "/sys": "the devices and settings of the kernel",
    "/tmp": "the temporary files of every user",  # noqa: S108  a name to compare with
    "/usr": "the programs of this machine",
    "/usr/local": "programs installed for every user",
    "/var": "the state of every service and user of this machine",
    "/var/lib": "the state of every service of this machine",
    "/var/log": "the logs of every service of this machine",
    "/var/run": "the sockets and secrets of running services",
    "/var/spool": "the queues of every service of this machine",
    "/var/tmp": "the temporary files of every user",  # noqa: S108  likewise
}
#: Directories in which no task has anything to write, however deep.
_SYSTEMS_OWN = ("/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr", "/var/run", "/var/spool")
#: Directories of users in those.
_USERS_OWN = ("/dev/shm", "/usr/local", "/usr/src")  # noqa: S108  likewise
#: Patterns that leave nothing of a directory out.
_EVERYTHING = frozenset({"*", "**", "**/*", "*/**", "**/**"})


class OpenedDirectory(NamedTuple):
    """A directory of the system that a grant opens.

    Attributes:
        path: the directory.
        held: what lies in there, as a clause for people.
        whole: whether all of it is opened.
    """

    path: str
    held: str
    whole: bool


def opened_directory(grant: str, workspace: str, *, writes: bool) -> OpenedDirectory | None:
    """The directory of the system that a grant opens, or, where it `writes`, opens a part of; `None` for none.

    Args:
        grant: absolute and canonical.
        workspace: its root, in which nothing is the system's.
        writes: whether it is a grant to write.
    """
    path = globs.head(grant)
    if paths.at_or_under(path, workspace):
        return None
    rest = grant[len(globs.escape(path)) :].strip("/") if globs.has_wildcard(grant) else ""
    if path in _HELD and (not rest or rest in _EVERYTHING):
        return OpenedDirectory(path, _HELD[path], whole=True)
    if not writes or any(paths.at_or_under(path, place) for place in _USERS_OWN):
        return None
    place = next((one for one in _SYSTEMS_OWN if paths.at_or_under(path, one)), None)
    return None if place is None else OpenedDirectory(place, _HELD[place], whole=False)
