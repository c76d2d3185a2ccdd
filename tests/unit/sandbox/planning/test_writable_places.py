"""The places beneath which a task may change something."""

from __future__ import annotations

from sandbox.planning.operations import Bind, Cover, Held, Name, Names, Origin, ReadOnlyRoot, Seal, Way
from sandbox.planning.writable_places import WritablePlace, writable_places

_WHY = Origin(reason="a test")
_PLAN = (
    ReadOnlyRoot(path="/", origin=_WHY),
    Cover(path="/ws", origin=_WHY),
    Way(path="/ws/p", origin=_WHY),
    Cover(path="/ws/p/nested", origin=_WHY),
    Bind(path="/ws/p/src", origin=_WHY, directory=True),
    Bind(path="/ws/p/dist", origin=_WHY, directory=True, writable=True),
    Bind(path="/ws/p/one.txt", origin=_WHY, directory=False, writable=True),
    Seal(path="/ws/p/dist/secret", origin=_WHY),
)


def test_only_what_is_granted_is_writable() -> None:
    assert writable_places(_PLAN, masked=False, answered=True) == (
        WritablePlace("/dev", "everything"),
        WritablePlace("/ws/p/dist", "everything"),
        WritablePlace("/ws/p/one.txt", "contents"),
    )


def test_names_in_a_cover_are_the_mask_s_to_answer_for_and_contents_beneath_it_are_not() -> None:
    found = writable_places(_PLAN, masked=True, answered=True)
    assert [place for place in found if place.path.startswith("/ws/p/nested") or place.path == "/ws"] == [
        WritablePlace("/ws", "names")
    ]


def test_a_granted_name_opens_the_directory_it_is_made_in() -> None:
    plan = (
        Name(path="/ws/p/out.txt", origin=_WHY),
        Name(path="/ws/p/other.txt", origin=_WHY),
        Names(path="/ws/gen", origin=_WHY, pattern="/ws/gen/*/x"),
    )
    assert writable_places(plan, masked=False, answered=False)[1:] == (
        WritablePlace("/ws/p", "everything"),
        WritablePlace("/ws/gen", "everything"),
    )


def test_where_the_warden_opens_nothing_is_written_beneath_a_directory_of_granted_names() -> None:
    plan = (Name(path="/ws/p/out.txt", origin=_WHY), Names(path="/ws/gen", origin=_WHY, pattern="/ws/gen/*/x"))
    assert writable_places(plan, masked=False, answered=True)[1:] == (
        WritablePlace("/ws/p", "names"),
        WritablePlace("/ws/gen", "names"),
    )


def test_a_held_directory_is_writable_while_it_is_the_host_s() -> None:
    plan = (Held(path="/ws/p", origin=_WHY, directory=True, writable=True),)
    assert writable_places(plan, masked=False, answered=False)[1:] == (WritablePlace("/ws/p", "everything"),)
