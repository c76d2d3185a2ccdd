"""EFFECT: handlers of requests that list a directory.

A listing is taken when a directory is read from its start, and kept until it is read from there again. An offset in it
therefore means the same, whatever is removed meanwhile.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.mask.served import inode_attributes
from sandbox.linux.mask.served.inodes import LastSeenAt, magic_link
from sandbox.linux.mask.served.name_lookup import entries
from sandbox.linux.mask.served.open_files import OpenFile

if TYPE_CHECKING:
    from sandbox.linux.kernel.fuse_protocol import FuseRequest
    from sandbox.linux.mask.served.handler_context import HandlerContext
    from sandbox.linux.mask.served.name_lookup import Entry

_DIRECTORY = stat.S_IFDIR >> 12


def opendir(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer OPENDIR."""
    fd = -1
    if not context.names.mixed(request.node):
        node = context.node(request.node)
        fd = os.open(magic_link(context.descriptor(node)), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        context.names.table.admit(fd)
    return fuse_protocol.open_out(context.handles.add(OpenFile(fd, None)))


def _listing(context: HandlerContext, request: FuseRequest) -> list[Entry]:
    handle = context.handles.get(request.fields[0])
    if request.fields[1] == 0 or not handle.listing:
        own = parent = request.node
        if handle.fd >= 0:
            own, parent = os.fstat(handle.fd).st_ino, os.stat("..", dir_fd=handle.fd).st_ino
            found = entries(handle.fd)
        else:
            found = context.names.listing(request.node)
        handle.listing = [(own, ".", _DIRECTORY), (parent, "..", _DIRECTORY), *found]
    return handle.listing


def readdir(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer READDIR."""
    return fuse_protocol.dirents(_listing(context, request), request.fields[1], request.fields[2])


def readdirplus(context: HandlerContext, request: FuseRequest) -> bytes:
    """Answer READDIRPLUS, which looks each entry up in directories that are the host's whole."""
    listing = _listing(context, request)
    offset, size = request.fields[1:3]
    out: list[bytes] = []
    used = 0
    whole = not context.names.mixed(request.node)
    for index in range(min(offset, len(listing)), len(listing)):
        ino, name, kind = listing[index]
        record = fuse_protocol.dirent(ino, name, kind, index + 1)
        used += fuse_protocol.ENTRY_SIZE + len(record)
        if used > size:
            break
        known = _known(context, request.node, name) if whole and index > 1 else fuse_protocol.NO_ENTRY
        out += (known, record)
    return b"".join(out)


def _known(context: HandlerContext, directory: int, name: str) -> bytes:
    try:
        node, found = context.names.table.enter(context.names.host(directory), name, LastSeenAt(directory, name))
    except OSError:  # the name is gone, or no descriptor is left: a lookup follows
        return fuse_protocol.NO_ENTRY
    return inode_attributes.entry(context, node, found)
