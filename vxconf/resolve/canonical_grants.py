"""The paths of one entry of a block, absolute and canonical: `~` and links are followed here. Pure.

Braces are expanded first, then `~` and the project directory, then links. A directory ends in `/`; a pattern stays a
pattern. Two faults are found here, since a canonical path no longer shows them: a grant spelled inside the project that
a link leads outside, and a link that leads into a place that is kept closed or to a policy file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import Refusal
from sandbox.request import credential_stores
from sandbox.request.protected_names import leads_to_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandbox.base.host_facts import Files

LEAVES_PROJECT = "VX301"


class GrantPaths:
    """Makes the paths of entries absolute and canonical.

    Args:
        workspace: the canonical root directory of the workspace.
        project: the canonical directory of the task's project, which relative grants start from.
        home: the canonical home directory, which `~` stands for.
        other_homes: further homes with credential stores, canonical.
        files: the file system whose links are followed.

    Attributes:
        links: the links that grants were spelled through so far, each as its canonical path and its text.
    """

    def __init__(
        self, *, workspace: str, project: str, home: str, files: Files, other_homes: tuple[str, ...] = ()
    ) -> None:
        self.workspace, self.project = workspace, project
        self._home, self._files = home, files
        self._homes = (home, *other_homes)
        self.links: dict[str, str] = {}

    def read(self, text: str) -> Iterable[str]:
        """The grants that a read entry stands for.

        Raises:
            Refusal: `VX301`, or too many alternatives.
        """
        for grant in globs.expand_braces(text):
            anchored = self._anchored(grant)
            path = _literal_part(anchored)
            self._hold_closed(text, path)
            self._note_links(path)
            yield self._grant(anchored, lambda _real, kind: kind is Kind.DIRECTORY)

    def write(self, text: str) -> Iterable[str]:
        """The grants that a write entry stands for.

        Raises:
            Refusal: `VX301`, or too many alternatives.
        """
        for grant in globs.expand_braces(text):
            anchored = self._anchored(grant)
            path = _literal_part(anchored)
            self._hold_inside("write", text, grant, path)
            self._hold_from_policy(text, path)
            self._note_links(path)
            yield self._grant(anchored, self._is_outside_directory)

    def ignored(self, text: str) -> Iterable[str]:
        """The paths that an entry of `ignore` stands for."""
        # an ignored path is compared with denials and opens nothing: no kind decides about its trailing slash
        for grant in globs.expand_braces(text):
            yield self._grant(self._anchored(grant), lambda _real, _kind: False)

    def socket(self, text: str) -> Iterable[str]:
        """The socket that an entry of `unixSockets` names.

        Raises:
            Refusal: `VX301`.
        """
        # the rules (VX214) leave no pattern here
        anchored = self._anchored(text)
        self._hold_inside("unixSockets", text, "", _literal_part(anchored))
        yield paths.canonical(globs.unescape(anchored), self._files)

    def _is_outside_directory(self, real: str, kind: Kind | None) -> bool:
        """Whether a write grant is a directory whatever its spelling; inside the project it is a name."""
        return kind is Kind.DIRECTORY and not paths.at_or_under(real, self.project)

    def _anchored(self, grant: str) -> str:
        """A grant made absolute: `~` is the home directory, and any other begins in the project."""
        if grant == "~" or grant.startswith("~/"):
            return globs.escape(self._home) + grant[1:]
        if grant.startswith("/"):
            return grant
        return paths.join(globs.escape(self.project), grant)

    def _grant(self, anchored: str, is_directory: Callable[[str, Kind | None], bool]) -> str:
        grant = globs.collapse(anchored)
        files = self._files
        if globs.has_wildcard(grant):
            base, rest = _at_first_wildcard(grant)
            return paths.join(globs.escape(paths.canonical(base, files)), rest)
        path = globs.unescape(grant)
        real = paths.canonical(path, files)
        if real != "/" and (_ends_as_directory(path) or is_directory(real, files.kind(real))):
            return globs.escape(real) + "/"
        return globs.escape(real)

    def _note_links(self, path: str) -> None:
        found = paths.links_on(path, self._files)
        if found:
            self.links.update(found)

    def _hold_inside(self, field: str, text: str, grant: str, path: str) -> None:
        """Refuses an entry that is spelled inside the project and that a link leads outside.

        An absolute entry, and one that begins with `~`, may lead anywhere.

        Raises:
            Refusal: `VX301`.
        """
        if grant == "~" or grant.startswith(("/", "~/")):
            return
        project = self.project
        real = paths.canonical(path, self._files)
        if real == path:  # no link is on the way
            return
        if paths.at_or_under(paths.normal(path), project) and not paths.at_or_under(real, project):
            place = globs.escape(real) + ("/" if field == "write" else "")
            raise Refusal(
                f'allow.{field} "{text}" leads through a link out of the project, to {real}',
                code=LEAVES_PROJECT,
                hint=f'grant the place itself, "{place}", or take the link away',
            )

    def _hold_closed(self, text: str, path: str) -> None:
        """Refuses a read grant that a link leads into a place which only a grant of its own name opens.

        Raises:
            Refusal: `VX301`.
        """
        if paths.canonical(path, self._files) == path:  # no link is on the way
            return
        path = paths.normal(path)
        real = paths.canonical(path, self._files)
        closed = credential_stores.led_into(path, real, homes=self._homes, workspace=self.workspace, files=self._files)
        if closed:
            raise _led_into("read", text, closed, real)

    def _hold_from_policy(self, text: str, path: str) -> None:
        """Refuses a write grant that a link leads to a file that says what tasks are granted.

        Raises:
            Refusal: `VX301`.
        """
        real = paths.canonical(path, self._files)
        if leads_to_policy(paths.normal(path), real):
            raise _led_into("write", text, real, real)


def _led_into(field: str, text: str, closed: str, real: str) -> Refusal:
    return Refusal(
        f'allow.{field} "{text}" leads through a link into {closed}',
        code=LEAVES_PROJECT,
        hint=f'grant the place itself, "{globs.escape(real)}", or take the link away',
    )


def _ends_as_directory(path: str) -> bool:
    return path.endswith(("/", "/.", "/.."))


def _literal_part(grant: str) -> str:
    """The unescaped path of a literal grant, or the directory before a pattern's first wildcard; no slash behind it."""
    collapsed = globs.collapse(grant)
    path = _at_first_wildcard(collapsed)[0] if globs.has_wildcard(collapsed) else globs.unescape(collapsed)
    return path.rstrip("/") or "/"


def _at_first_wildcard(grant: str) -> tuple[str, str]:
    """The unescaped directory before a pattern's first wildcard, and the pattern from there on."""
    components = grant.split("/")
    index = next(i for i, component in enumerate(components) if globs.has_wildcard(component))
    rest = [part for part in components[index:-1] if part not in {"", "."}]
    return globs.unescape("/".join(components[:index])) or "/", "/".join((*rest, components[-1]))
