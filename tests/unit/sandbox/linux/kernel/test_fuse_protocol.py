from __future__ import annotations

import struct

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import FuseRequest, InitFlag, Op


def test_replies_carry_their_length_and_the_request() -> None:
    assert struct.unpack("<IiQ", fuse_protocol.reply(7)) == (16, 0, 7)
    assert fuse_protocol.reply(7, b"abc") == struct.pack("<IiQ", 19, 0, 7) + b"abc"
    assert struct.unpack("<IiQ", fuse_protocol.error(7, 30)) == (16, -30, 7)


def test_the_handshake_takes_only_what_the_kernel_offers() -> None:
    request = FuseRequest(Op.INIT, 1, 0, 0, 0, 0, (7, 38, 131072, InitFlag.PARALLEL_DIROPS | InitFlag.BIG_WRITES))
    raw = fuse_protocol.init_out(request, want=InitFlag.PARALLEL_DIROPS | InitFlag.CACHE_SYMLINKS, max_write=1 << 20)
    assert len(raw) == 64
    major, minor, readahead, flags, _, _, max_write, gran, pages = struct.unpack_from("<4IHHIIH", raw)
    assert (major, minor, readahead, max_write, gran, pages) == (7, 31, 131072, 1 << 20, 1, 256)
    assert flags == InitFlag.PARALLEL_DIROPS


def test_sizes_are_those_of_the_kernels_structs() -> None:
    attributes = fuse_protocol.attr(2, 0o40777, owner=(3, 4), times=(1_500_000_000, 0, 2))
    assert len(attributes) == fuse_protocol.ATTR_SIZE == 88
    assert len(fuse_protocol.entry_out(2, attributes, entry_valid=1, attr_valid=2)) == fuse_protocol.ENTRY_SIZE == 128
    assert len(fuse_protocol.negative_entry(0)) == 128
    assert len(fuse_protocol.attr_out(attributes, valid=1)) == 104
    assert len(fuse_protocol.open_out()) == 16
    assert len(fuse_protocol.statfs_out()) == 80
    assert (
        len(fuse_protocol.write_out(1)) == len(fuse_protocol.xattr_size_out(1)) == len(fuse_protocol.lseek_out(1)) == 8
    )


def test_attributes_hold_what_they_were_given() -> None:
    raw = fuse_protocol.attr(
        2, 0o100644, size=1025, nlink=3, owner=(5, 6), times=(1_500_000_000, 2, 3_000_000_004), rdev=9
    )
    assert struct.unpack("<6Q10I", raw) == (
        2, 1025, 3, 1, 0, 3, 500_000_000, 2, 4, 0o100644, 3, 5, 6, 9, 4096, 0,
    )  # fmt: skip


def test_a_missing_name_has_no_node_and_the_validity_it_was_given() -> None:
    assert struct.unpack_from("<4QII", fuse_protocol.negative_entry(3600)) == (0, 0, 3600, 0, 0, 0)


def test_a_name_of_any_bytes_comes_back_as_it_was() -> None:
    message = struct.pack("<IIQQIIIHH", 44, Op.LOOKUP, 1, 1, 0, 0, 0, 0, 0) + b"\xff\xfea\0"
    (name,) = fuse_protocol.parse(message).names
    assert name == "\udcff\udcfea"
    assert fuse_protocol.readlink_out(name) == b"\xff\xfea"
