from __future__ import annotations

import stat
import struct

import pytest

from sandbox.linux.kernel import fuse_protocol
from sandbox.linux.kernel.fuse_protocol import FuseRequest, Op
from sandbox.linux.mask.mask_tree import ENOSYS, MaskTree, SeenRequest
from sandbox.planning.operations import Bind, Cover, Empty, Link, Make, Name, Operation, Origin, ReadOnlyRoot, Seal, Way

O = Origin(reason="test")  # noqa: E741  one letter keeps the plans below readable
PLAN: tuple[Operation, ...] = (
    Make(path="/ws/apps/shop/out", origin=O),
    ReadOnlyRoot(path="/", origin=O),
    Cover(path="/ws", origin=O),
    Way(path="/ws/apps/shop", origin=O),
    Bind(path="/ws/apps/shop/lib", origin=O, directory=True),
    Bind(path="/ws/apps/shop/notes.md", origin=O, directory=False),
    Link(path="/ws/apps/shop/cfg", origin=O, target="lib/cfg"),
    Empty(path="/home/mel/.ssh", origin=O),
    Seal(path="/home/mel/.netrc", origin=O),
)
OWNER = (1000, 100)
NOW = 1_700_000_000_000_000_000


def tree() -> MaskTree:
    return MaskTree(PLAN, remember_missing=lambda path: not path.startswith("/ws/apps/shop"))


def ask(mask: MaskTree, op: int, path: str, *names: str, fields: tuple[int, ...] = ()) -> bytes | SeenRequest | None:
    node = mask.node(path)
    assert node is not None, path
    return mask.answer(FuseRequest(op, 5, node, 0, 0, 4100, fields, names), now=NOW, owner=OWNER)


def errno(answer: bytes | SeenRequest | None) -> int:
    raw = answer.reply if isinstance(answer, SeenRequest) else answer
    assert raw is not None
    code: int = struct.unpack_from("<IiQ", raw)[1]
    return -code


def attributes(answer: bytes | SeenRequest | None) -> tuple[int, ...]:
    assert isinstance(answer, bytes)
    fields: tuple[int, ...] = struct.unpack_from("<6Q10I", answer, 16 + 16)
    return fields


def test_a_placed_name_is_found_with_its_kind() -> None:
    mask = tree()
    expected = {
        "apps": (stat.S_IFDIR | 0o777, "/ws"),
        "shop": (stat.S_IFDIR | 0o777, "/ws/apps"),
        "lib": (stat.S_IFDIR | 0o777, "/ws/apps/shop"),
        "notes.md": (stat.S_IFREG | 0o444, "/ws/apps/shop"),
        "cfg": (stat.S_IFLNK | 0o777, "/ws/apps/shop"),
        ".ssh": (stat.S_IFDIR | 0o555, "/home/mel"),
        ".netrc": (stat.S_IFREG, "/home/mel"),
    }
    for name, (mode, parent) in expected.items():
        answer = ask(mask, Op.LOOKUP, parent, name)
        assert isinstance(answer, bytes)
        node = struct.unpack_from("<Q", answer, 16)[0]
        assert node == mask.node(f"{parent}/{name}")
        fields = struct.unpack_from("<6Q10I", answer, 16 + 40)
        assert fields[9] == mode
        assert fields[11:13] == OWNER


def test_what_is_only_made_on_the_host_is_not_in_the_tree() -> None:
    assert tree().node("/ws/apps/shop/out") is None


def test_a_look_at_a_hidden_name_is_handed_over_with_a_negative_answer() -> None:
    answer = ask(tree(), Op.LOOKUP, "/ws/apps/shop", "secret.txt")
    assert isinstance(answer, SeenRequest)
    assert (answer.path, answer.op, errno(answer)) == ("/ws/apps/shop/secret.txt", Op.LOOKUP, 0)
    assert struct.unpack_from("<QQQ", answer.reply, 16) == (0, 0, 0)


def test_the_kernel_remembers_a_hidden_name_only_where_it_may() -> None:
    answer = ask(tree(), Op.LOOKUP, "/ws", "root-note.txt")
    assert isinstance(answer, SeenRequest)
    assert struct.unpack_from("<QQQ", answer.reply, 16) == (0, 0, 3600)


def test_a_listing_shows_what_is_placed_and_nothing_else() -> None:
    answer = ask(tree(), Op.READDIR, "/ws/apps/shop", fields=(0, 0, 4096, 0, 0, 0, 0))
    assert isinstance(answer, bytes)
    names, at = [], 16
    while at < len(answer):
        _, _, length, kind = struct.unpack_from("<QQII", answer, at)
        names.append((answer[at + 24 : at + 24 + length].decode(), kind))
        at += 24 + -(-length // 8) * 8
    assert names == [(".", 4), ("..", 4), ("cfg", 10), ("lib", 4), ("notes.md", 8)]


def test_a_listing_with_attributes_tells_of_each_entry_but_the_dots_and_fits_the_size_asked_for() -> None:
    mask = tree()
    whole = ask(mask, Op.READDIRPLUS, "/ws/apps/shop", fields=(0, 0, 4096, 0, 0, 0, 0))
    assert isinstance(whole, bytes)
    found, at = [], 16
    while at < len(whole):
        (node,) = struct.unpack_from("<Q", whole, at)
        at += fuse_protocol.ENTRY_SIZE
        inode, offset, length, _ = struct.unpack_from("<QQII", whole, at)
        found.append((node, inode, offset, whole[at + 24 : at + 24 + length].decode()))
        at += (24 + length + 7) // 8 * 8
    nodes = {name: mask.node(f"/ws/apps/shop/{name}") for name in ("cfg", "lib", "notes.md")}
    assert [(node, name) for node, _, _, name in found] == [(0, "."), (0, ".."), *((nodes[n], n) for n in nodes)]
    assert [inode for _, inode, _, _ in found[2:]] == list(nodes.values())
    # reading goes on where an entry says, with as many entries as fit
    size = fuse_protocol.ENTRY_SIZE + 32
    rest = ask(mask, Op.READDIRPLUS, "/ws/apps/shop", fields=(0, 3, size, 0, 0, 0, 0))
    assert isinstance(rest, bytes)
    assert (len(rest), rest[16:]) == (16 + size, whole[-2 * size : -size])


@pytest.mark.parametrize(
    ("op", "names", "fields", "path"),
    [
        (Op.MKDIR, ("gen",), (0o755, 0), "/ws/apps/shop/gen"),
        (Op.CREATE, ("new",), (0o101, 0o644, 0, 0), "/ws/apps/shop/new"),
        (Op.UNLINK, ("cfg",), (), "/ws/apps/shop/cfg"),
        (Op.RMDIR, ("lib",), (), "/ws/apps/shop/lib"),
        (Op.RENAME2, ("lib", "lib2"), (1, 0, 0), "/ws/apps/shop/lib"),
        (Op.SYMLINK, ("l", "/etc"), (), "/ws/apps/shop/l"),
        (Op.LINK, ("l",), (4,), "/ws/apps/shop/l"),
        (Op.SETATTR, (), (0,) * 16, "/ws/apps/shop"),
        (Op.SETXATTR, ("user.x",), (1, 0), "/ws/apps/shop"),
    ],
)
def test_every_write_is_refused_and_named(op: int, names: tuple[str, ...], fields: tuple[int, ...], path: str) -> None:
    answer = ask(tree(), op, "/ws/apps/shop", *names, fields=fields)
    assert isinstance(answer, SeenRequest)
    assert (answer.path, answer.op, errno(answer)) == (path, op, 30)


def test_a_sealed_file_cannot_be_opened_nor_claims_to_be() -> None:
    mask = tree()
    for flags in (0, 1, 2):
        assert errno(ask(mask, Op.OPEN, "/home/mel/.netrc", fields=(flags, 0))) == 13
    assert errno(ask(mask, Op.ACCESS, "/home/mel/.netrc", fields=(4, 0))) == 13
    assert errno(ask(mask, Op.ACCESS, "/home/mel/.netrc", fields=(0, 0))) == 0


def test_a_directory_may_be_entered_and_not_written() -> None:
    mask = tree()
    assert errno(ask(mask, Op.ACCESS, "/ws/apps", fields=(1, 0))) == 0
    assert errno(ask(mask, Op.ACCESS, "/ws/apps", fields=(2, 0))) == 30


def test_a_link_tells_its_target_and_nothing_else_does() -> None:
    mask = tree()
    answer = ask(mask, Op.READLINK, "/ws/apps/shop/cfg")
    assert isinstance(answer, bytes)
    assert answer[16:] == b"lib/cfg"
    assert attributes(ask(mask, Op.GETATTR, "/ws/apps/shop/cfg", fields=(0, 0, 0)))[1] == len("lib/cfg")
    assert errno(ask(mask, Op.READLINK, "/ws/apps")) == 22


def test_a_mount_point_reads_as_an_empty_file_and_refuses_writers() -> None:
    mask = tree()
    assert errno(ask(mask, Op.OPEN, "/ws/apps/shop/notes.md", fields=(0, 0))) == 0
    assert errno(ask(mask, Op.OPEN, "/ws/apps/shop/notes.md", fields=(0o1001, 0))) == 30
    assert ask(mask, Op.READ, "/ws/apps/shop/notes.md", fields=(0, 0, 4096, 0, 0, 0, 0)) == fuse_protocol.reply(5)


def test_messages_without_an_answer_and_operations_of_a_later_kernel() -> None:
    mask = tree()
    assert ask(mask, Op.FORGET, "/", fields=(1,)) is None
    assert ask(mask, Op.INTERRUPT, "/", fields=(1,)) is None
    assert errno(ask(mask, 99, "/")) == 38
    assert errno(ask(mask, Op.GETXATTR, "/", "security.capability", fields=(0, 0))) == 38
    assert errno(ask(mask, Op.DESTROY, "/")) == 0


def test_a_node_never_given_out_does_not_exist() -> None:
    mask = tree()
    for node in (0, 10_000):
        request = FuseRequest(Op.GETATTR, 5, node, 0, 0, 0, (0, 0, 0))
        assert errno(mask.answer(request, now=NOW, owner=OWNER)) == 2


def test_the_handshake() -> None:
    mask = tree()
    answer = ask(mask, Op.INIT, "/", fields=(7, 38, 0, 0xFFFFFFFF))
    assert isinstance(answer, bytes)
    assert len(answer) == 16 + 64
    assert errno(ask(mask, Op.INIT, "/", fields=(6, 0, 0, 0))) == 71


def test_nothing_can_be_placed_below_a_file() -> None:
    below = (Bind(path="/ws/a", origin=O, directory=False), Bind(path="/ws/a/b", origin=O, directory=True))
    with pytest.raises(ValueError, match="/ws/a/b is placed below /ws/a"):
        MaskTree(below, remember_missing=lambda _: False)
    with pytest.raises(ValueError, match="/ws/a has something placed in it"):
        MaskTree(below[::-1], remember_missing=lambda _: False)


def test_a_later_operation_hides_an_earlier_one_at_the_same_place() -> None:
    mask = MaskTree(
        (Link(path="/a", origin=O, target="/b"), Bind(path="/a", origin=O, directory=True)),
        remember_missing=lambda _: False,
    )
    assert errno(ask(mask, Op.READLINK, "/a")) == 22


def test_directories_are_opened_without_asking_where_nothing_in_them_changes() -> None:
    assert errno(ask(tree(), Op.OPENDIR, "/ws", fields=(0, 0))) == ENOSYS
    served = MaskTree((Cover(path="/ws", origin=O), Name(path="/ws/out", origin=O)), remember_missing=lambda _: True)
    assert errno(ask(served, Op.OPENDIR, "/ws", fields=(0, 0))) == 0
