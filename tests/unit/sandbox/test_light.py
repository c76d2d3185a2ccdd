"""Light dataclasses, held to what real ones do."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from typing import Any

import pytest

from sandbox import light


def _define(dataclass: Any, field: Any) -> dict[str, Any]:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Above:
        """A base."""

        path: str
        origin: tuple[str, ...] = ()

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Below(Above):
        """One that inherits."""

        wide: bool = False
        names: dict[str, int] = field(default_factory=dict, compare=False)
        twice: str = field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", self.path * 2)

    @dataclass(slots=True)
    class Open:
        """One that may change."""

        left: int
        right: int = 2
        many: list[int] = field(default_factory=list)

    return {"Above": Above, "Below": Below, "Open": Open}


class TestEveryAnswerIsThatOfARealOne:
    real, own = _define(dataclasses.dataclass, dataclasses.field), _define(light.dataclass, light.field)

    @pytest.mark.parametrize(
        ("name", "given"),
        [
            ("Above", {"path": "/a"}),
            ("Above", {"path": "/a", "origin": ("x",)}),
            ("Below", {"path": "/a", "wide": True}),
            ("Below", {"path": "/a", "wide": False, "names": {"x": 1}}),
            ("Open", {"left": 1}),
            ("Open", {"left": 1, "many": [3]}),
        ],
    )
    def test_values(self, name: str, given: dict[str, Any]) -> None:
        real, own = self.real[name](**given), self.own[name](**given)
        assert repr(own) == repr(real)
        assert dataclasses.asdict(own) == dataclasses.asdict(real)
        assert light.replace(own) == own == self.own[name](**given)
        assert dataclasses.replace(own) == own
        assert (own == object()) is (real == object()) is False
        told = [[one.name for one in dataclasses.fields(value)] for value in (own, real)]
        assert told[0] == told[1]

    @pytest.mark.parametrize("given", [{}, {"path": "/a", "more": 1}, {"origin": ()}])
    def test_what_is_missing_or_too_much_is_refused(self, given: dict[str, Any]) -> None:
        for kind in (self.real["Above"], self.own["Above"]):
            with pytest.raises(TypeError):
                kind(**given)

    def test_positions(self) -> None:
        for kinds in (self.real, self.own):
            assert (kinds["Open"](1, 3).left, kinds["Open"](1, 3).right) == (1, 3)
            with pytest.raises(TypeError):
                kinds["Above"]("/a")
            assert kinds["Open"].__match_args__ == ("left", "right", "many")
            assert kinds["Above"].__match_args__ == ()

    def test_frozen_ones_are_hashed_and_kept(self) -> None:
        for kinds in (self.real, self.own):
            value = kinds["Below"](path="/a", wide=True, names={"x": 1})
            assert hash(value) == hash(kinds["Below"](path="/a", wide=True))
            assert value == kinds["Below"](path="/a", wide=True)
            assert value != kinds["Below"](path="/a", wide=False)
            assert value.twice == "/a/a"
            with pytest.raises(dataclasses.FrozenInstanceError):
                value.path = "/b"
            with pytest.raises(dataclasses.FrozenInstanceError):
                del value.path

    def test_others_change_and_have_no_hash(self) -> None:
        for kinds in (self.real, self.own):
            value = kinds["Open"](1)
            value.left = 5
            assert value == kinds["Open"](5)
            with pytest.raises(TypeError):
                hash(value)
            with pytest.raises(AttributeError):
                value.nothing = 1

    def test_factories_make_each_its_own(self) -> None:
        one, other = self.own["Open"](1), self.own["Open"](1)
        one.many.append(1)
        assert other.many == []


@light.dataclass(frozen=True, slots=True, kw_only=True)
class Travelling:
    """A value that is sent to another process."""

    path: str
    many: tuple[int, ...] = ()


def test_a_value_travels() -> None:
    value = Travelling(path="/a", many=(1, 2))
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301  our own


@light.dataclass(frozen=True, kw_only=True)
class Loose:
    """A value that remembers what it worked out."""

    path: str

    @functools.cached_property
    def parts(self) -> list[str]:
        return self.path.split("/")


def test_without_slots_there_is_room_for_more() -> None:
    loose = Loose(path="a/b")
    assert loose.parts is loose.parts
    assert loose.parts == ["a", "b"]
    assert loose == pickle.loads(pickle.dumps(Loose(path="a/b")))  # noqa: S301  our own
    with pytest.raises(dataclasses.FrozenInstanceError):
        loose.path = "c"  # type: ignore[misc]  # what is tried
