"""The server of granted names, asked as the kernel asks, over a real directory and without a mount."""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import FuseRequest, Op
from sandbox.linux.mask.mask_tree import MaskTree, SeenRequest
from sandbox.linux.mask.served.file_operations import SlowCall
from sandbox.linux.mask.served.inodes import FIRST, InodeTable, LastSeenAt
from sandbox.linux.mask.served.passthrough_server import PassthroughServer
from sandbox.planning.operations import Bind, Cover, Name, Names, Operation, Origin
from sandbox.planning.served_and_staged_names import GrantedNames

if TYPE_CHECKING:
    from pathlib import Path

O = Origin(reason="test")  # noqa: E741  one letter keeps the plans below readable


class Asked:
    """A server and the requests a test makes of it."""

    def __init__(self, base: Path) -> None:
        self.root = base / "ws"
        self.staging = base / "staging"
        for directory in ("lib", "gen/sub", "gen/dark"):
            (self.root / directory).mkdir(parents=True)
        self.staging.mkdir()
        for name in ("lib/a", "hidden", "gen/sub/m.py", "gen/t.txt", "gen/dark/t.txt"):
            (self.root / name).write_text(name)
        self.root_path = str(self.root)
        operations: tuple[Operation, ...] = (
            Cover(path=self.root_path, origin=O),
            Bind(path=self.root_path + "/lib", directory=True, origin=O),
            Name(path=self.root_path + "/dist", origin=O),
            Name(path=self.root_path + "/out", origin=O),
            Names(path=self.root_path + "/gen", pattern=self.root_path + "/gen/**/*.py", origin=O),
        )
        self.tree = MaskTree(operations, remember_missing=lambda _path: True)
        self.server = PassthroughServer(self.tree, GrantedNames(operations), str(self.staging))
        node = self.tree.node(self.root_path)
        assert node is not None
        self.node = node

    def ask(
        self, op: int, node: int, *names: str, fields: tuple[int, ...] = (), data: bytes = b""
    ) -> bytes | SeenRequest | SlowCall:
        request = FuseRequest(op, 9, node, 0, 0, 77, fields, names, data)
        answer = self.server.answer(request, now=5, owner=(1000, 100))
        assert answer is not None
        return bytes(answer) if isinstance(answer, memoryview) else answer

    def fails(self, op: int, node: int, *names: str, fields: tuple[int, ...] = ()) -> int:
        answer = self.ask(op, node, *names, fields=fields)
        raw = answer.reply if isinstance(answer, SeenRequest) else answer
        assert isinstance(raw, bytes)
        return -int(struct.unpack_from("<IiQ", raw)[1])

    def entry(self, op: int, node: int, *names: str, fields: tuple[int, ...] = ()) -> int:
        answer = self.ask(op, node, *names, fields=fields)
        assert isinstance(answer, bytes), answer
        assert struct.unpack_from("<IiQ", answer)[1:] == (0, 9)
        return int(struct.unpack_from("<Q", answer, 16)[0])

    def create(self, node: int, name: str) -> tuple[int, int]:
        answer = self.ask(Op.CREATE, node, name, fields=(os.O_WRONLY | os.O_CREAT, stat.S_IFREG | 0o644, 0o22, 0))
        assert isinstance(answer, bytes)
        return int(struct.unpack_from("<Q", answer, 16)[0]), int(
            struct.unpack_from("<Q", answer, 16 + fuse_protocol.ENTRY_SIZE)[0]
        )


def _entries(reply: bytes) -> list[tuple[int, str]]:
    """The entries of a READDIR reply: the offset after each, and its name."""
    entries, at = [], struct.calcsize("<IiQ")
    while at < len(reply):
        _, offset, length, _ = struct.unpack_from("<QQII", reply, at)
        entries.append((offset, reply[at + 24 : at + 24 + length].decode()))
        at += (24 + length + 7) // 8 * 8
    return entries


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_a_granted_name_that_is_missing_is_no_look_at_something_hidden(asked: Asked) -> None:
    assert asked.entry(Op.LOOKUP, asked.node, "dist") == 0


def test_a_hidden_name_is_a_look_and_stays_hidden(asked: Asked) -> None:
    answer = asked.ask(Op.LOOKUP, asked.node, "hidden")
    assert isinstance(answer, SeenRequest)
    assert (answer.path, answer.op) == (asked.root_path + "/hidden", Op.LOOKUP)
    assert struct.unpack_from("<QQQ", answer.reply, 16) == (0, 0, 0)


def test_what_is_written_reaches_the_host_at_once(asked: Asked) -> None:
    _, handle = asked.create(asked.node, "out")
    asked.ask(Op.WRITE, FIRST, fields=(handle, 3, 4, 0, 0, 0, 0), data=b"data")
    assert (asked.root / "out").read_bytes() == b"\0\0\0data"
    asked.ask(Op.WRITE, FIRST, fields=(handle, 0, 3, 0, 0, os.O_APPEND, 0), data=b"end")
    assert (asked.root / "out").read_bytes() == b"\0\0\0dataend"
    # pages come through any handle, and where they belong
    asked.ask(Op.WRITE, FIRST, fields=(handle, 0, 3, 1, 0, os.O_APPEND, 0), data=b"new")
    assert (asked.root / "out").read_bytes() == b"newdataend"
    work = asked.ask(Op.FSYNC, FIRST, fields=(handle, 0, 0))
    assert isinstance(work, SlowCall)
    assert work.work() == b""


def test_another_name_is_staged_and_moves_into_place(asked: Asked) -> None:
    asked.create(asked.node, "tmp")
    assert not (asked.root / "tmp").exists()
    assert asked.entry(Op.LOOKUP, asked.node, "tmp") >= FIRST
    assert asked.server.close() == (asked.root_path + "/tmp",)
    assert asked.fails(Op.RENAME, asked.node, "tmp", "out", fields=(asked.node,)) == 0
    assert (asked.root / "out").exists()
    assert asked.server.close() == ()


def test_placed_names_and_directories_without_granted_names_take_nothing(asked: Asked) -> None:
    for op, fields in ((Op.UNLINK, ()), (Op.RMDIR, ())):
        assert asked.fails(op, asked.node, "lib", fields=fields) == errno.EROFS
    assert asked.fails(Op.MKDIR, asked.node, "lib", fields=(0o755, 0)) == errno.EEXIST
    assert asked.fails(Op.RENAME, asked.node, "lib", "out", fields=(asked.node,)) == errno.EROFS
    assert asked.fails(Op.UNLINK, asked.node, "hidden") == errno.ENOENT
    assert asked.fails(Op.MKDIR, fuse_protocol.ROOT, "new", fields=(0o755, 0)) == errno.EROFS
    assert (asked.root / "hidden").exists()


def test_devices_are_refused(asked: Asked) -> None:
    assert asked.fails(Op.MKNOD, asked.node, "out", fields=(stat.S_IFCHR | 0o600, 0x103, 0, 0)) == errno.EPERM


def test_only_ways_to_matches_are_shown(asked: Asked) -> None:
    gen = asked.tree.node(asked.root_path + "/gen")
    assert gen is not None
    opened = asked.ask(Op.OPENDIR, gen, fields=(0, 0))
    assert isinstance(opened, bytes)
    handle = int(struct.unpack_from("<Q", opened, 16)[0])
    listed = asked.ask(Op.READDIR, gen, fields=(handle, 0, 4096, 0, 0, 0, 0))
    assert isinstance(listed, bytes)
    assert [name for _, name in _entries(listed)] == [".", "..", "sub"]
    sub = asked.entry(Op.LOOKUP, gen, "sub")
    assert asked.entry(Op.LOOKUP, sub, "m.py") >= FIRST
    assert isinstance(asked.ask(Op.LOOKUP, gen, "dark"), SeenRequest)
    assert isinstance(asked.ask(Op.LOOKUP, gen, "t.txt"), SeenRequest)
    assert asked.fails(Op.RMDIR, gen, "sub") == errno.ENOTEMPTY
    assert asked.fails(Op.RENAME, gen, "sub", "other", fields=(gen,)) == errno.EXDEV


def test_a_way_left_empty_goes_with_the_run(asked: Asked) -> None:
    gen = asked.tree.node(asked.root_path + "/gen")
    assert gen is not None
    asked.entry(Op.MKDIR, gen, "empty", fields=(0o755, 0))
    full = asked.entry(Op.MKDIR, gen, "full", fields=(0o755, 0))
    asked.create(full, "x.py")
    assert asked.server.close() == ()
    assert sorted(os.listdir(asked.root / "gen")) == ["dark", "full", "sub", "t.txt"]


def test_the_owner_cannot_be_changed(asked: Asked) -> None:
    node, _ = asked.create(asked.node, "out")
    fields = (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1001, 0, 0)
    assert asked.fails(Op.SETATTR, node, fields=fields) == errno.EPERM
    assert asked.fails(Op.SETATTR, node, fields=(2, *fields[1:13], 1000, 0, 0)) == 0


def test_a_listing_stays_while_names_go(asked: Asked) -> None:
    (asked.root / "dist").mkdir()
    for n in range(100):
        (asked.root / "dist" / f"n{n}").touch()
    node = asked.entry(Op.LOOKUP, asked.node, "dist")
    opened = asked.ask(Op.OPENDIR, node, fields=(0, 0))
    assert isinstance(opened, bytes)
    handle = int(struct.unpack_from("<Q", opened, 16)[0])
    offset, seen = 0, []
    while True:
        answer = asked.ask(Op.READDIR, node, fields=(handle, offset, 300, 0, 0, 0, 0))
        assert isinstance(answer, bytes)
        entries = _entries(answer)
        if not entries:
            break
        for offset, name in entries:  # noqa: B007  the last one is where reading goes on
            if name not in (".", ".."):
                assert asked.fails(Op.UNLINK, node, name) == 0
                seen.append(name)
    assert len(seen) == len(set(seen)) == 100


def test_a_node_never_given_out_is_stale(asked: Asked) -> None:
    assert asked.fails(Op.GETATTR, FIRST + 1000, fields=(0, 0, 0)) == errno.ESTALE


def test_the_handshake_asks_for_no_write_back_cache(asked: Asked) -> None:
    answer = asked.ask(Op.INIT, 0, fields=(7, 39, 131072, 0xFFFFFFFF))
    assert isinstance(answer, bytes)
    flags = struct.unpack_from("<4I", answer, 16)[3]
    assert flags & fuse_protocol.InitFlag.AUTO_INVAL_DATA
    assert not flags & fuse_protocol.InitFlag.WRITEBACK_CACHE


def test_descriptors_past_the_budget_are_given_up_and_found_again(tmp_path: Path) -> None:
    for n in range(100):
        (tmp_path / str(n)).write_text(str(n))
    directory = os.open(tmp_path, os.O_PATH)
    table = InodeTable(20, lambda _node, _staged: directory)
    before = len(os.listdir("/proc/self/fd"))
    entered = [table.enter(directory, str(n), LastSeenAt(1, str(n)))[0] for n in range(100)]
    table.trim()
    assert len(os.listdir("/proc/self/fd")) - before <= 21
    assert [os.fstat(table.descriptor(node)).st_ino for node in entered] == [node.key[1] for node in entered]
    table.trim()
    # another file under the old name is not taken for it, be its number the same
    given_up = next(node for node in entered if node.fd < 0)
    (tmp_path / "new").write_text("new")
    assert given_up.place is not None
    (tmp_path / "new").rename(tmp_path / given_up.place.name)
    with pytest.raises(OSError, match=r"[Ss]tale"):
        table.descriptor(given_up)
    for node in entered:
        table.forget(node.number, 1)
    assert (len(table), len(os.listdir("/proc/self/fd"))) == (0, before)
    os.close(directory)
