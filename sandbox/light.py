"""Dataclasses that cost next to nothing until they are used: for what a start-up path declares and hardly fills.

`dataclasses.dataclass` compiles six functions for each class, and forty classes were half of a whole `vxconf check`.
Here all but `__init__` are shared, and that one is compiled once so many values were made that it pays. To a type
checker these are dataclasses, and `dataclasses.fields`, `replace` and `asdict` take them as such.

So it is with `Enum`, `StrEnum`, `cached_property` and `lru_cache`: what the modules of these names, and those they
load, take of every start is more than all of the check of a small file.
"""

from __future__ import annotations

__all__ = ["Enum", "StrEnum", "cached_property", "dataclass", "default", "field", "lru_cache", "replace"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
    from enum import Enum, StrEnum
    from functools import cached_property, lru_cache

    def default(kind: type, name: str) -> object:
        """The value of a field where none is given."""
else:
    _MISSING = object()
    _FIELDS = "__dataclass_fields__"
    #: Values of a class that are made before its `__init__` is compiled.
    _FEW = 40

    class field:  # noqa: N801  to those who use it a function
        """As `dataclasses.field`, of which it knows what is used here."""

        __slots__ = ("compare", "default", "default_factory", "init", "repr")

        def __init__(self, **given: object) -> None:
            self.default = self.default_factory = _MISSING
            self.init = self.repr = self.compare = True
            for name, value in given.items():
                if name not in field.__slots__:
                    raise TypeError(f"a field knows nothing of {name}")
                setattr(self, name, value)

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> object:
        """As `dataclasses.dataclass`."""

        def make(plain: type) -> type:
            return _made(plain, frozen=frozen, slots=slots, kw_only=kw_only)

        return make if cls is None else make(cls)

    def replace(value: object, /, **changes: object) -> object:
        """As `dataclasses.replace`."""
        for name, one in _of(value).fields.items():
            if one.init and name not in changes:
                changes[name] = getattr(value, name)
        return type(value)(**changes)

    def default(kind: type, name: str) -> object:
        """The value of a field where none is given."""
        return vars(kind)[_FIELDS].fields[name].default

    class _Fields:
        """The fields of a class, inherited ones first; as its attribute it is what `dataclasses` would have there."""

        __slots__ = ("compared", "fields", "kw_only", "made", "owner", "positions", "shown", "told")

        def __init__(self, fields: dict[str, field], kw_only: frozenset[str]) -> None:
            self.fields, self.kw_only = fields, kw_only
            self.owner = object
            self.told = None
            self.made = 0

        def __getattr__(self, name: str) -> object:
            """What is not filled until somebody asks: most classes are never compared, shown or given positions."""
            if name not in _ASKED:
                raise AttributeError(name)
            chosen = tuple(key for key, one in self.fields.items() if _ASKED[name](self, key, one))
            setattr(self, name, chosen)
            return chosen

        def __get__(self, _value: object, _owner: type | None = None) -> dict[str, object]:
            if self.told is None:
                self.told = self._as_dataclass()
            return self.told

        def _as_dataclass(self) -> dict[str, object]:
            import dataclasses

            described = []
            for name, one in self.fields.items():
                given = {key: getattr(one, key) for key in ("init", "repr", "compare")}
                given |= {key: getattr(one, key) for key in _DEFAULTS if getattr(one, key) is not _MISSING}
                described.append((name, object, dataclasses.field(**given, kw_only=name in self.kw_only)))
            return dataclasses.make_dataclass(self.owner.__name__, described).__dict__[_FIELDS]

    _ASKED = {
        "compared": lambda _told, _name, one: one.compare,
        "shown": lambda _told, _name, one: one.repr,
        "positions": lambda told, name, one: one.init and name not in told.kw_only,
    }
    _DEFAULTS = ("default", "default_factory")
    _REQUIRED = field()

    def _of(value: object) -> _Fields:
        own = vars(type(value)).get(_FIELDS)
        return own or next(vars(one)[_FIELDS] for one in type(value).__mro__ if _FIELDS in vars(one))

    def _made(plain: type, *, frozen: bool, slots: bool, kw_only: bool) -> type:
        space = dict(vars(plain))
        own = [name for name, kind in space.get("__annotations__", {}).items() if not kind.startswith("ClassVar")]
        fields, only = {}, set()
        for base in reversed(plain.__mro__[1:]):
            if _FIELDS in vars(base):
                fields.update(vars(base)[_FIELDS].fields)
                only |= vars(base)[_FIELDS].kw_only
        if slots:
            space["__slots__"] = tuple(name for name in own if name not in fields)
        fields.update((name, _described(space.pop(name, _REQUIRED))) for name in own)
        if kw_only:
            only.update(own)
        space.pop("__dict__", None)
        space.pop("__weakref__", None)
        told = space[_FIELDS] = _Fields(fields, frozenset(only))
        space.setdefault("__match_args__", told.positions if len(only) < len(fields) else ())
        shared = {"__init__": _first, "__repr__": _repr, "__eq__": _eq}
        if frozen:
            shared |= {"__hash__": _hash, "__setattr__": _set, "__delattr__": _delete}
        if frozen and slots:
            shared |= {"__getstate__": _state, "__setstate__": _restore}
        for name, function in shared.items():
            space.setdefault(name, function)
        if not frozen:
            space.setdefault("__hash__", None)
        made = type(plain)(plain.__name__, plain.__bases__, space)
        made.__qualname__ = plain.__qualname__
        told.owner = made
        return made

    def _described(given: object) -> field:
        return given if isinstance(given, field) else field(default=given)

    def _first(self: object, /, *values: object, **named: object) -> None:
        """The `__init__` of a class until it pays to compile one."""
        owner = next(one for one in type(self).__mro__ if vars(one).get("__init__") is _first)
        told = vars(owner)[_FIELDS]
        told.made += 1
        if told.made > _FEW or not _filled(self, told, values, named):
            # that one also says what is wrong with what was given
            owner.__init__ = _compiled(owner, told)
            owner.__init__(self, *values, **named)
        elif hasattr(owner, "__post_init__"):
            self.__post_init__()

    def _filled(self: object, told: _Fields, values: tuple[object, ...], named: dict[str, object]) -> bool:
        """Whether what was given is a value of the class; then it is in its fields."""
        given = dict(zip(told.positions, values, strict=False))
        if len(values) > len(given) or not named.keys().isdisjoint(given):
            return False
        given.update(named)
        known = 0
        for name, one in told.fields.items():
            if one.init and name in given:
                known += 1
                value = given[name]
            elif one.default_factory is not _MISSING:
                value = one.default_factory()
            elif one.default is not _MISSING:
                value = one.default
            elif one.init:
                return False
            else:
                continue
            _put(self, name, value)
        return known == len(given)

    def _compiled(owner: type, told: _Fields) -> object:
        known: dict[str, object] = {"_MISSING": _MISSING}
        plain, named, body = [], [], []
        for name, one in told.fields.items():
            slot = getattr(owner, name, None)
            known[f"_set_{name}"] = getattr(slot, "__set__", None) or _setter(name)
            value = name
            if one.default_factory is not _MISSING:
                known[f"_make_{name}"] = one.default_factory
                made = f"_make_{name}()"
                value = f"{made} if {name} is _MISSING else {name}" if one.init else made
                known[f"_default_{name}"] = _MISSING
            elif one.default is not _MISSING:
                known[f"_default_{name}"] = one.default
                value = name if one.init else f"_default_{name}"
            if one.init:
                default = f"=_default_{name}" if f"_default_{name}" in known else ""
                (named if name in told.kw_only else plain).append(name + default)
            elif value == name:
                continue
            body.append(f"_set_{name}(self, {value})")
        if hasattr(owner, "__post_init__"):
            body.append("self.__post_init__()")
        arguments = ", ".join(("self", *plain, *(("*", *named) if named else ())))
        exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), known)  # noqa: S102  as dataclasses do
        known["__init__"].__qualname__ = f"{owner.__qualname__}.__init__"
        return known["__init__"]

    _put = object.__setattr__

    def _setter(name: str) -> object:
        return lambda self, value: _put(self, name, value)

    def _values(self: object) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in _of(self).compared)

    def _repr(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _of(self).shown)
        return f"{type(self).__qualname__}({shown})"

    def _eq(self: object, other: object) -> bool:
        return _values(self) == _values(other) if type(self) is type(other) else NotImplemented

    def _hash(self: object) -> int:
        return hash(_values(self))

    def _frozen(name: str) -> AttributeError:
        from dataclasses import FrozenInstanceError

        return FrozenInstanceError(f"cannot assign to field {name!r}")

    def _set(_self: object, name: str, _value: object) -> None:
        raise _frozen(name)

    def _delete(_self: object, name: str) -> None:
        raise _frozen(name)

    def _state(self: object) -> list[object]:
        return [getattr(self, name) for name in _of(self).fields]

    def _restore(self: object, state: list[object]) -> None:
        for name, value in zip(_of(self).fields, state, strict=True):
            _put(self, name, value)

    class _Members(type):
        """The class of a class whose values are all named in it."""

        def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, object]) -> None:
            super().__init__(name, bases, space)
            cls.__members__ = {}
            cls._of_value = {}
            for key, value in space.items():
                if not key.startswith("_") and not hasattr(value, "__get__"):
                    member = cls._of_value.get(value)
                    if member is None:
                        member = cls._of_value[value] = cls.__new__(cls, value)
                        _put(member, "name", key)
                        _put(member, "value", value)
                    cls.__members__[key] = member
                    type.__setattr__(cls, key, member)

        def __call__(cls, value: object) -> object:
            try:
                return value if type(value) is cls else cls._of_value[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

        def __iter__(cls) -> object:
            return iter(cls._of_value.values())

        def __len__(cls) -> int:
            return len(cls._of_value)

        def __contains__(cls, value: object) -> bool:
            return type(value) is cls or value in cls._of_value

        def __getitem__(cls, name: str) -> object:
            return cls.__members__[name]

        def __setattr__(cls, name: str, value: object) -> None:
            if name in vars(cls).get("__members__", ()):
                raise AttributeError(f"cannot reassign member {name!r}")
            super().__setattr__(name, value)

    class Enum(metaclass=_Members):
        """As `enum.Enum`, whose values are plain and given in the class."""

        __slots__ = ("name", "value")

        def __new__(cls, _value: object) -> object:
            return object.__new__(cls)

        def __repr__(self) -> str:
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __str__(self) -> str:
            return f"{type(self).__name__}.{self.name}"

        def __setattr__(self, name: str, _value: object) -> None:
            raise AttributeError(f"{self!r} has no {name!r} to set")

        def __reduce__(self) -> tuple[type, tuple[object]]:
            return type(self), (self.value,)

    class StrEnum(str, metaclass=_Members):
        """As `enum.StrEnum`, whose values are given in the class."""

        __slots__ = ("name", "value")

        __new__ = str.__new__
        __repr__, __setattr__, __reduce__ = Enum.__repr__, Enum.__setattr__, Enum.__reduce__
        __str__, __format__, __hash__ = str.__str__, str.__format__, str.__hash__

    class cached_property:  # noqa: N801  to those who use it a function
        """As `functools.cached_property`."""

        def __init__(self, function: object) -> None:
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, _owner: type, name: str) -> None:
            self.name = name

        def __get__(self, value: object, _owner: type | None = None) -> object:
            if value is None:
                return self
            found = vars(value)[self.name] = self.function(value)
            return found

    def lru_cache(maxsize: int) -> object:
        """As `functools.lru_cache`, but that it forgets all at once when it is full; for places alone."""

        def make(function: object) -> object:
            known: dict[tuple[object, ...], object] = {}

            def remembered(*given: object) -> object:
                try:
                    return known[given]
                except KeyError:
                    if len(known) >= maxsize:
                        known.clear()
                    found = known[given] = function(*given)
                    return found

            remembered.__doc__, remembered.__wrapped__ = function.__doc__, function
            remembered.__name__, remembered.__qualname__ = function.__name__, function.__qualname__
            remembered.__module__ = function.__module__
            return remembered

        return make
