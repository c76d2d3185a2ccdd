from __future__ import annotations

from sandbox.linux.inside.warm_dcache import looked_up
from sandbox.planning.operations import Bind, Cover, Empty, Link, Make, Operation, Origin, ReadOnlyRoot, Seal, Way

O = Origin(reason="test")  # noqa: E741  one letter keeps the plans below readable


def bind(path: str) -> Bind:
    return Bind(path=path, origin=O, directory=False)


def test_what_is_laid_over_and_what_is_placed_in_a_cover_is_looked_up_from_above() -> None:
    plan: tuple[Operation, ...] = (
        Make(path="/ws/out", origin=O),
        ReadOnlyRoot(path="/", origin=O),
        Seal(path="/etc/shadow", origin=O),
        Seal(path="/etc/ssh/key", origin=O),
        Empty(path="/home/mel/.ssh", origin=O),
        Cover(path="/ws", origin=O),
        Way(path="/ws/app", origin=O),
        bind("/ws/app/a"),
        bind("/ws/app/b"),
    )
    assert looked_up(plan) == {
        "/": {"etc", "home", "ws"},
        "/etc": {"shadow", "ssh"},
        "/etc/ssh": {"key"},
        "/home": {"mel"},
        "/home/mel": {".ssh"},
        "/ws": {"app"},
        "/ws/app": {"a", "b"},
    }
    assert list(looked_up(plan)) == sorted(looked_up(plan))


def test_what_lies_over_the_host_s_own_directories_is_not_looked_up() -> None:
    plan: tuple[Operation, ...] = (
        Cover(path="/ws", origin=O),
        bind("/usr/lib/a"),
        bind("/wsx/b"),
        Link(path="/ws/link", origin=O, target="a"),
    )
    assert looked_up(plan) == {"/": {"ws"}}


def test_below_a_covered_root_everything_is_looked_up() -> None:
    plan: tuple[Operation, ...] = (Cover(path="/", origin=O), bind("/usr/lib/a"), bind("/usr/lib/b"))
    assert looked_up(plan) == {"/": {"usr"}, "/usr": {"lib"}, "/usr/lib": {"a", "b"}}
