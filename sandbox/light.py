"""Dataclasses that cost next to nothing until they are used: for what a start-up path declares and hardly fills.

`dataclasses.dataclass` compiles six functions for each class, and forty classes were half of a whole `vxconf check`.
Here all but `__init__` are shared, and that one is compiled when a first value is made. To a type checker these are
dataclasses, and `dataclasses.fields`, `replace` and `asdict` take them as such.
"""

from __future__ import annotations

__all__ = ["dataclass", "default", "field", "replace"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace

    def default(kind: type, name: str) -> object:
        """The value of a field where none is given."""
else:
    _MISSING = object()
    _FIELDS = "__dataclass_fields__"

    class field:  # noqa: N801  to those who use it a function
        """As `dataclasses.field`, of which it knows what is used here."""

        __slots__ = ("compare", "default", "default_factory", "init", "repr")

        def __init__(self, **given: object) -> None:
            self.default = given.pop("default", _MISSING)
            self.default_factory = given.pop("default_factory", _MISSING)
            self.init, self.repr, self.compare = (given.pop(name, True) for name in ("init", "repr", "compare"))
            if given:
                raise TypeError(f"a field knows nothing of {', '.join(given)}")

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

        __slots__ = ("compared", "fields", "kw_only", "owner", "shown", "told")

        def __init__(self, fields: dict[str, field], kw_only: frozenset[str]) -> None:
            self.fields, self.kw_only = fields, kw_only
            self.compared = tuple(name for name, one in fields.items() if one.compare)
            self.shown = tuple(name for name, one in fields.items() if one.repr)
            self.owner = object
            self.told = None

        def __get__(self, _value: object, _owner: type | None = None) -> dict[str, object]:
            if self.told is None:
                self.told = self._as_dataclass()
            return self.told

        def _as_dataclass(self) -> dict[str, object]:
            import dataclasses  # noqa: PLC0415  what all this is there to do without

            described = []
            for name, one in self.fields.items():
                given = {key: getattr(one, key) for key in ("init", "repr", "compare")}
                given |= {key: getattr(one, key) for key in _DEFAULTS if getattr(one, key) is not _MISSING}
                described.append((name, object, dataclasses.field(**given, kw_only=name in self.kw_only)))
            return dataclasses.make_dataclass(self.owner.__name__, described).__dict__[_FIELDS]

    _DEFAULTS = ("default", "default_factory")

    def _of(value: object) -> _Fields:
        return next(vars(one)[_FIELDS] for one in type(value).__mro__ if _FIELDS in vars(one))

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
        for name in own:
            given = space.pop(name, _MISSING)
            fields[name] = given if isinstance(given, field) else field(default=given)
        if kw_only:
            only.update(own)
        space.pop("__dict__", None)
        space.pop("__weakref__", None)
        told = space[_FIELDS] = _Fields(fields, frozenset(only))
        space.setdefault("__match_args__", tuple(name for name, one in fields.items() if one.init and name not in only))
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

    def _first(self: object, /, *values: object, **named: object) -> None:
        """The `__init__` of a class until a value of it is made."""
        owner = next(one for one in type(self).__mro__ if vars(one).get("__init__") is _first)
        owner.__init__ = _compiled(owner, vars(owner)[_FIELDS])
        owner.__init__(self, *values, **named)

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

    def _setter(name: str) -> object:
        return lambda self, value: object.__setattr__(self, name, value)

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
        from dataclasses import FrozenInstanceError  # noqa: PLC0415  somebody made a mistake

        return FrozenInstanceError(f"cannot assign to field {name!r}")

    def _set(_self: object, name: str, _value: object) -> None:
        raise _frozen(name)

    def _delete(_self: object, name: str) -> None:
        raise _frozen(name)

    def _state(self: object) -> list[object]:
        return [getattr(self, name) for name in _of(self).fields]

    def _restore(self: object, state: list[object]) -> None:
        for name, value in zip(_of(self).fields, state, strict=True):
            object.__setattr__(self, name, value)
