"""EFFECT: the names a task sees in directories in which granted names may stand, where no mask serves them.

Such a directory is one of the read-only file system that shows a plan's covers. The warden holds that file system
writable. For each name the task is to see it puts an empty place there and has the file of the host, or the staged
one, mounted on it. Outside the task's mount namespace a rename of a place takes its mount along, and a removal takes
the mount away (`detach_mounts` in fs/namespace.c). So a name appears, moves and goes in one step.

Everything else of the host is absent, whatever the host makes there meanwhile and whatever the task does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.linux.kernel import kernel_calls
from sandbox.linux.mask.served.inodes import magic_link
from sandbox.linux.mask.served.staging_directories import StagedNames
from sandbox.linux.mask.served.ways_to_matches import WaysToMatches
from sandbox.linux.names import places
from sandbox.linux.names.mounter import Showing
from sandbox.linux.names.spots import Mixed, NameKind, NameSpot, Shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.linux.names.mounter import Mounter
    from sandbox.planning.served_and_staged_names import GrantedNames
    from sandbox.request.protected_names import ProtectedNames

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# the host may replace a file between the look and the mount
_TRIES = 3
_EXCHANGE = 2


class ShownNames:
    """The names one task sees in directories in which granted names may stand.

    Args:
        tree: a writable descriptor of the file system that shows the plan's covers.
        directories: the paths of the plan's covers, and of the ways in them.
        area: an empty directory of this run, for names beside granted ones (`StagedNames`).
        executed: names that other programs execute; those that exist stay as they are.
    """

    def __init__(
        self,
        tree: int,
        directories: Iterable[str],
        granted: GrantedNames,
        *,
        area: str,
        mounter: Mounter,
        executed: ProtectedNames,
    ) -> None:
        self.executed = executed
        self.granted = granted
        self._area = area
        self.staging = StagedNames(area)
        self.ways = WaysToMatches(granted, lambda fd: fd)
        self._kept = executed.kept
        self._mounter = mounter
        self._root = os.open("/", _DIRECTORY)
        self._scratch: list[int] = []
        self._count = 0
        self._mixed: dict[str, Mixed] = {}
        for path in directories:
            if granted.stages(path) or granted.leads(path) or granted.literal(path):
                cover = kernel_calls.open_beneath(tree, path.strip("/"), _DIRECTORY)
                self._mixed[path] = Mixed(path, cover, frozenset(places.names(cover)))
        self._fixed = frozenset(self._mixed)
        self._hosts = {path: self._opened(path) for path in self._fixed}

    def end_call(self) -> None:
        """Close what was opened for a call that is answered."""
        while self._scratch:
            os.close(self._scratch.pop())

    def mixed(self, path: str) -> Mixed | None:
        """The directory at a path, if granted names may stand in it."""
        return self._mixed.get(path)

    def made(self, path: str) -> bool:
        """Whether the task made what it sees at a path beside granted names, or a directory above it."""
        if self._area and paths.at_or_under(path, self._area):  # a file without a name
            return True
        for place in (path, *paths.parents(path)):
            mixed = self._mixed.get(paths.parent(place))
            shown = None if mixed is None else mixed.names.get(paths.name(place))
            if shown is not None and shown.kind is NameKind.STAGED:
                return True
        return False

    def is_seen(self, path: str) -> bool:
        """Whether the task sees something at a path that granted names have part in."""
        try:
            spot = self.spot(path)
        finally:
            self.end_call()
        return spot is not None and spot.exists

    def is_way(self, path: str) -> bool:
        """Whether the task sees a directory at a path since it leads to granted names."""
        return path in self._mixed

    def holds_kept(self, path: str) -> bool:
        """Whether a name other programs execute is kept at a path or below it."""
        return path in self._kept or self.executed.holds(path)

    # -- where a name is -----------------------------------------------------------------------------------------

    def spot(self, path: str) -> NameSpot | None:
        """The spot of a path with no link left; `None` where granted names have no part in it.

        What the task sees on the way there is brought up to date first.
        """
        top = next((self._mixed[above] for above in paths.parents(path) if above in self._fixed), None)
        if top is None or path == "/":
            return None
        mixed, parts = top, list(paths.parts(path)[len(paths.parts(top.path)) :])
        while True:
            name = parts.pop(0)
            here = paths.join(mixed.path, name)
            shown = self.refresh(mixed, name)
            if not parts:
                return self._spot(mixed, name, shown)
            if shown is None or not shown.directory or name in mixed.placed:
                return None
            if shown.kind is not NameKind.WAY:
                return self._below(mixed, shown, here, parts)
            mixed = self._mixed[here]

    def _spot(self, mixed: Mixed, name: str, shown: Shown | None) -> NameSpot:
        path = paths.join(mixed.path, name)
        if name in mixed.placed:
            return NameSpot(NameKind.PLACED, -1, name, path, mixed, "", exists=True)
        if shown is not None:
            return NameSpot(shown.kind, self._holder(mixed, shown.kind), name, path, mixed, "", exists=True)
        if self.granted.granted(path):
            return NameSpot(NameKind.HOST, self.host(mixed.path), name, path, mixed, "", exists=False)
        return NameSpot(NameKind.NOTHING, -1, name, path, mixed, "", exists=False)

    def _below(self, mixed: Mixed, shown: Shown, top: str, parts: list[str]) -> NameSpot | None:
        """The spot of a name somewhere below a granted or staged directory."""
        *between, name = parts
        try:
            holder = kernel_calls.open_beneath(
                self._holder(mixed, shown.kind), "/".join((paths.name(top), *between)), _DIRECTORY
            )
        except OSError:
            return None
        self._scratch.append(holder)
        path = paths.join(top, "/".join(parts))
        return NameSpot(shown.kind, holder, name, path, None, top, exists=places.looked_at(holder, name) is not None)

    def new_spot(self, spot: NameSpot) -> NameSpot | None:
        """The spot where a new name is made: its own, or the staging area; `None` where nothing may be made."""
        if spot.kind in (NameKind.HOST, NameKind.STAGED):
            return spot if spot.fd >= 0 else None
        mixed = spot.mixed
        if spot.kind is NameKind.NOTHING and mixed is not None and self.staging and self.granted.stages(mixed.path):
            return spot._replace(kind=NameKind.STAGED, fd=self.staging.area(mixed.path, make=True))
        return None

    def host(self, path: str) -> int:
        """A descriptor of a directory on the host, valid until the call is answered; -1 where the host has none."""
        fd = self._opened(path)
        if fd >= 0:
            self._scratch.append(fd)
            return fd
        return self._hosts.get(path, -1)

    def _opened(self, path: str) -> int:
        try:
            return kernel_calls.open_beneath(self._root, path.strip("/"), _DIRECTORY)
        except OSError:
            return -1

    def _holder(self, mixed: Mixed, kind: NameKind) -> int:
        return self.staging.area(mixed.path, make=False) if kind is NameKind.STAGED else self.host(mixed.path)

    # -- what the task sees --------------------------------------------------------------------------------------

    def refresh_all(self, mixed: Mixed) -> None:
        """Bring a whole directory up to date, before it is listed."""
        names = {*self.granted.literal(mixed.path), *mixed.names}
        host = self.host(mixed.path) if self.granted.leads(mixed.path) else -1
        if host >= 0:
            names.update(places.names(host))
        for name in sorted(names):
            self.refresh(mixed, name)

    def show_everything(self) -> None:
        """Show what is there at the start."""
        for path in sorted(self._fixed, key=len):
            self.refresh_all(self._mixed[path])
        self.end_call()

    def refresh_at(self, path: str) -> None:
        """Bring the name at a path up to date, where granted names may stand in its directory.

        Raises:
            OSError: it cannot be shown.
        """
        mixed = self._mixed.get(os.path.dirname(path))
        if mixed is not None:
            try:
                self.refresh(mixed, paths.name(path))
            finally:
                self.end_call()

    def refresh(self, mixed: Mixed, name: str) -> Shown | None:
        """Bring one name up to date; what the task sees there now.

        Raises:
            OSError: it cannot be shown.
        """
        if name in mixed.placed:
            return None
        for _ in range(_TRIES):
            shown, wanted = mixed.names.get(name), self._wanted(mixed, name)
            if shown == wanted:
                return shown
            if wanted is None:
                self._hide(mixed, name)
                return None
            # a directory that leads to matches is shown by what is in it, whichever directory the host has there
            if shown is not None and shown.kind is wanted.kind is NameKind.WAY:
                mixed.names[name] = wanted
                return wanted
            fd = self._show(mixed, name, wanted)
            if fd is not None:
                os.close(fd)
                return wanted
        return mixed.names.get(name)

    def _wanted(self, mixed: Mixed, name: str) -> Shown | None:
        """The file the task is to see at a name."""
        path = paths.join(mixed.path, name)
        if self.granted.granted(path):
            found, kind = places.looked_at(self.host(mixed.path), name), NameKind.HOST
        elif (found := places.looked_at(self.staging.area(mixed.path, make=False), name)) is not None:
            kind = NameKind.STAGED
        elif self.granted.leads(path) and (host := self.host(mixed.path)) >= 0 and self.ways.shown(host, name, path):
            found, kind = places.looked_at(host, name), NameKind.WAY
        if found is None:
            return None
        return Shown(kind, places.identity(found), stat.S_ISDIR(found.st_mode))

    def show_new(self, spot: NameSpot, made: int) -> int:
        """Show a file that was just made; a descriptor of it in the task's own mount.

        Args:
            spot: where it is.
            made: a descriptor of it.

        Raises:
            OSError: it cannot be shown.
        """
        wanted = Shown(spot.kind, places.identity(os.fstat(made)), directory=False)
        fd = None if spot.mixed is None else self._show(spot.mixed, spot.name, wanted)
        if fd is None or fd < 0:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return fd

    def _show(self, mixed: Mixed, name: str, wanted: Shown) -> int | None:
        """Show a name; a descriptor of what is mounted (a copy of the place for what is not), `None` to look again."""
        place = self._free_place()
        path = paths.join(mixed.path, name)
        holder = self._holder(mixed, wanted.kind)
        fd = -1
        try:
            if wanted.kind is NameKind.WAY:
                os.mkdir(place, 0o755, dir_fd=mixed.cover)
                fd = os.open(place, _DIRECTORY, dir_fd=mixed.cover)
            elif (text := places.link(holder, name)) is not None:
                places.make_link(mixed.cover, place, text, os.stat(name, dir_fd=holder, follow_symlinks=False))
                fd = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=mixed.cover)
            else:
                places.make(mixed.cover, place, directory=wanted.directory)
                kept = tuple(self._kept_below(path)) if wanted.directory else ()
                fd = self._mounter.show(Showing(os.readlink(magic_link(holder)), name, mixed.path, place, kept))
                places.insist(fd, wanted.key)
            self._put(mixed, place, name, wanted)
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            places.remove(mixed.cover, place)
            if error.errno in (errno.ESTALE, errno.ENOENT, errno.ENOTDIR):
                return None
            raise
        if wanted.kind is NameKind.WAY:
            self._mixed[path] = Mixed(path, os.dup(fd), frozenset())
            self.refresh_all(self._mixed[path])
        return fd

    def _kept_below(self, path: str) -> list[str]:
        return sorted(one[len(path) + 1 :] for one in self._kept if paths.under(one, path))

    def _put(self, mixed: Mixed, place: str, name: str, wanted: Shown) -> None:
        shown = mixed.names.get(name)
        if shown is not None and (shown.directory or wanted.directory):
            self._hide(mixed, name)
        if name in mixed.names:
            places.replace(mixed.cover, place, mixed.cover, name)
        else:
            os.rename(place, name, src_dir_fd=mixed.cover, dst_dir_fd=mixed.cover)
        mixed.names[name] = wanted

    def _free_place(self) -> str:
        self._count += 1
        return f".vx-{os.getpid()}-{self._count}"

    def _hide(self, mixed: Mixed, name: str) -> None:
        shown = mixed.names.pop(name, None)
        if shown is None:
            return
        below = self._mixed.pop(paths.join(mixed.path, name), None) if shown.kind is NameKind.WAY else None
        if below is not None:
            for one in tuple(below.names):
                self._hide(below, one)
            os.close(below.cover)
        # a removal takes the mount away first, and whoever looks between the two would find the empty place
        place = self._free_place()
        with contextlib.suppress(FileNotFoundError):
            os.rename(name, place, src_dir_fd=mixed.cover, dst_dir_fd=mixed.cover)
        places.remove(mixed.cover, place)

    def moved(self, source: NameSpot, target: NameSpot, flags: int) -> None:
        """Show a rename that was made on the host, or between the host and the staging area."""
        old, new = source.mixed, target.mixed
        if old is not None and new is not None and source.name in old.names:
            # a failure leaves both to be looked at anew
            with contextlib.suppress(OSError):
                self._move(old, source, new, target, flags & _EXCHANGE)
        for mixed, name in ((new, target.name), (old, source.name)):
            if mixed is not None:
                self.refresh(mixed, name)

    def _move(self, old: Mixed, source: NameSpot, new: Mixed, target: NameSpot, exchange: int) -> None:
        if exchange:
            kernel_calls.rename(old.cover, source.name, new.cover, target.name, exchange)
        elif target.name in new.names:
            places.replace(old.cover, source.name, new.cover, target.name)
        else:
            os.rename(source.name, target.name, src_dir_fd=old.cover, dst_dir_fd=new.cover)
        moved, replaced = old.names.pop(source.name), new.names.pop(target.name, None)
        moved.kind = target.kind
        new.names[target.name] = moved
        if exchange and replaced is not None:
            replaced.kind = source.kind
            old.names[source.name] = replaced

    def close(self) -> tuple[str, ...]:
        """Remove the ways the task made and left empty; the names left in staging, as the task saw their paths."""
        self._mounter.close()
        self.ways.close()
        return self.staging.leftovers()
