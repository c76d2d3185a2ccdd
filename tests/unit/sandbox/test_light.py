"""Light dataclasses, held to what real ones do."""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
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

    @pytest.mark.parametrize("made", [0, light._FEW, light._FEW + 1])  # type: ignore[attr-defined]
    def test_however_many_were_made_before(self, made: int) -> None:
        for dataclass, field in ((dataclasses.dataclass, dataclasses.field), (light.dataclass, light.field)):
            kinds = _define(dataclass, field)
            for _ in range(made):
                kinds["Below"](path="/a")
                kinds["Open"](1)
            below = kinds["Below"](path="/a", wide=True)
            assert (below.path, below.origin, below.wide, below.names, below.twice) == ("/a", (), True, {}, "/a/a")
            assert (kinds["Open"](1, many=[2]).many, kinds["Open"](1, 3).right) == ([2], 3)
            for wrong in ({}, {"path": "/a", "more": 1}, {"path": "/a", "twice": "x"}):
                with pytest.raises(TypeError):
                    kinds["Below"](**wrong)
            for places, names in (((), {}), ((1, 2, [], 4), {}), ((1,), {"left": 2})):
                with pytest.raises(TypeError):
                    kinds["Open"](*places, **names)

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

    @light.cached_property
    def parts(self) -> list[str]:
        return self.path.split("/")


def test_without_slots_there_is_room_for_more() -> None:
    loose = Loose(path="a/b")
    assert loose.parts is loose.parts
    assert loose.parts == ["a", "b"]
    assert loose == pickle.loads(pickle.dumps(Loose(path="a/b")))  # noqa: S301  our own
    with pytest.raises(dataclasses.FrozenInstanceError):
        loose.path = "c"  # type: ignore[misc]  # what is tried


class Colour(light.Enum):
    """Values that are named."""

    RED = "red"
    DARK = "dark"

    @property
    def loud(self) -> str:
        return self.name + "!"


class Word(light.StrEnum):
    """Values that are texts, too."""

    YES = "yes"
    NO = "no"


class _RealColour(enum.Enum):
    RED = "red"
    DARK = "dark"

    @property
    def loud(self) -> str:
        return self.name + "!"


class _RealWord(enum.StrEnum):
    YES = "yes"
    NO = "no"


class TestEveryNamedValueIsAsARealOne:
    @pytest.mark.parametrize(("own", "real"), [(Colour, _RealColour), (Word, _RealWord)])
    def test_by_name_by_value_and_in_order(self, own: Any, real: Any) -> None:
        assert [(one.name, one.value) for one in own] == [(one.name, one.value) for one in real]
        assert len(own) == len(real)
        assert list(own.__members__) == list(real.__members__)
        for one in own:
            assert own(one.value) is own[one.name] is own(one) is getattr(own, one.name) is one
            assert isinstance(one, own)
        for kind in (own, real):
            with pytest.raises(ValueError, match="is not a valid"):
                kind("blue")
            with pytest.raises(ValueError, match="is not a valid"):
                kind([])
            with pytest.raises(KeyError):
                kind["BLUE"]

    @pytest.mark.parametrize(("own", "real"), [(Colour.RED, _RealColour.RED), (Word.YES, _RealWord.YES)])
    def test_as_text(self, own: Any, real: Any) -> None:
        for text in (str, repr, format):
            assert text(own) == text(real).replace(type(real).__name__, type(own).__name__)

    @pytest.mark.parametrize("one", [*Colour, *Word])
    def test_there_is_one_of_each_wherever_it_travels(self, one: Any) -> None:
        assert pickle.loads(pickle.dumps(one)) is one  # noqa: S301  our own
        assert copy.deepcopy({one: [one]}) == {one: [one]}
        assert copy.copy(one) is one

    def test_nobody_changes_them(self) -> None:
        with pytest.raises(AttributeError):
            Colour.RED = Colour.DARK  # type: ignore[misc, assignment]  # what is tried
        with pytest.raises(AttributeError):
            Colour.RED.value = "blue"  # type: ignore[misc]  # what is tried

    def test_they_differ_from_everything_else(self) -> None:
        assert Colour.RED.loud == "RED!"
        assert Colour.RED in Colour
        assert {Colour.RED, Colour.DARK, Colour("red")} == {Colour.DARK, Colour.RED}
        colours: list[object] = [*Colour, *_RealColour]
        assert len(set(colours)) == 4
        assert json.dumps({Word.YES: Word.NO}) == '{"yes": "no"}'
        assert f"{Word.YES:>5}" == "  yes"


def test_what_a_function_found_is_kept_and_in_the_end_forgotten() -> None:
    asked: list[int] = []

    @light.lru_cache(maxsize=2)
    def double(number: int) -> int:
        """Twice as many."""
        asked.append(number)
        return number * 2

    assert [double(one) for one in (1, 2, 1, 2)] == [2, 4, 2, 4]
    assert asked == [1, 2]
    assert [double(one) for one in (3, 1)] == [6, 2]
    assert asked == [1, 2, 3, 1]
    assert (double.__doc__, double.__wrapped__(5)) == ("Twice as many.", 10)
