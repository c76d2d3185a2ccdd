r"""A macOS plan as the text `sandbox-exec -p` reads. Pure.

The profile's language is embedded in TinyScheme. Its strings have a backslash before a quote or a backslash, `\n` and
the like for a line's end, and everything else as it is, so that any path can be spelled. The system's compiler of
profiles has a limit that other projects have met: "data object length N exceeds maximum (65535)" (NixOS/nix#4119). The
limit counts bytes, not rules.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.contract.errors import Refusal, RequestRefused
from sandbox.contract.refusal_codes import TOO_MUCH
from sandbox.planning.macos.pattern_regex import BELOW, literal
from sandbox.planning.macos.profile_rules import At, Below, Expression, Matching, Plain, Rule
from sandbox.planning.operations import Origin, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.planning.macos.macos_path_reach import MacPlan
    from sandbox.planning.macos.profile_rules import Filter

#: The most bytes of paths and expressions one profile may hold: the compiler's own limit, less what it adds.
LIMIT = 56_000
#: The bytes of an entry besides its text.
_ENTRY = 8
#: The most paths of one rule in one directory that stay apart where the profile is too long; more become one
#: expression.
_FEW = 4

_TOGETHER = Origin(reason="several grants and reasons in one, for the profile would be too long")

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# A tag has only characters that need no escape.
_TAG = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def text(plan: MacPlan, *, tag: str = "vx") -> str:
    """The whole profile.

    Args:
        plan: the rules.
        tag: what the log says of every denial; letters, digits, - and _.

    Raises:
        RequestRefused: it would be more than the system's compiler takes.
    """
    if not _TAG.issuperset(tag):
        raise ValueError(tag)
    rules = plan.rules
    if weight(rules) > LIMIT:
        rules = tuple(map(collapsed, _together(rules)))
    if (found := weight(rules)) > LIMIT:
        raise RequestRefused(
            (
                Refusal(
                    f"the profile would hold {found} bytes of paths, and the compiler of macOS takes {LIMIT}",
                    field="allowRead",
                    code=TOO_MUCH,
                    hint="grant the directories that hold them instead, each with a trailing slash",
                ),
            )
        )
    lines = ["(version 1)", f"(deny default {_message(tag)})"]
    reason = ""
    for rule in rules:
        if (why := rule.origin.reason or rule.origin.field) != reason:
            reason = why
            lines += ["", f"; {shown(why)}"]
        lines += _rule(rule, tag)
    if plan.pending:
        lines += ["", f"; {plan.pending}"]
    return "\n".join(lines) + "\n"


def written(rule: Rule) -> str:
    """One rule on one line, without the message for the log."""
    return " ".join(line.strip() for line in _rule(rule, ""))


def quoted(value: str) -> str:
    """A string as the profile's language spells it."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in value) + '"'


def regex(value: str) -> str:
    r"""A regular expression as a literal; one in which a quote or a line's end stands as a string instead.

    In `#"..."`, which ends at the first quote, a backslash is the expression's own.
    """
    if any(character in value for character in '"\n\r\t'):
        return quoted(value)
    return f'#"{value}"'


def weight(rules: Iterable[Rule]) -> int:
    """The bytes the compiler has to keep, as far as they can be told from here."""
    return sum(_ENTRY + len(_bytes(one)) for rule in rules for one in rule.filters)


def _bytes(one: Filter) -> bytes:
    match one:
        case At(path=path) | Below(path=path):
            said = path
        case Matching():
            said = one.expression + one.directories
        case Expression(text=expression):
            said = expression
        case _:
            said = one.describe()
    return said.encode("utf-8", "surrogateescape")


def _together(rules: Iterable[Rule]) -> Iterator[Rule]:
    """The same rules, with neighbours that do alike joined, whatever the reason of each."""
    for (action, operations), alike in itertools.groupby(rules, key=lambda rule: (rule.action, rule.operations)):
        every = list(alike)
        if len(every) == 1 or not all(rule.filters for rule in every):
            yield from every
            continue
        filters = tuple(dict.fromkeys(itertools.chain.from_iterable(rule.filters for rule in every)))
        yield Rule(action=action, operations=operations, filters=filters, origin=_TOGETHER)


def collapsed(rule: Rule) -> Rule:
    """The same rule with its many paths of one directory in one expression, which spells the directory once."""
    kept: list[Filter] = []
    alike: dict[tuple[type[Filter], str], list[str]] = {}
    for one in rule.filters:
        few = isinstance(one, At) and one.only_directories
        if isinstance(one, (At, Below)) and one.path != "/" and not few:
            alike.setdefault((type(one), paths.parent(one.path)), []).append(paths.name(one.path))
        else:
            kept.append(one)
    for (kind, directory), names in alike.items():
        if len(names) <= _FEW:
            kept += (
                At(path=paths.join(directory, n)) if kind is At else Below(path=paths.join(directory, n)) for n in names
            )
            continue
        head = "" if directory == "/" else literal(directory)
        every = "|".join(map(literal, names))
        about = f"{len(names)} names in {directory}"
        kept.append(Expression(text=f"^{head}/({every}){BELOW if kind is Below else '$'}", about=about))
    return Rule(action=rule.action, operations=rule.operations, filters=tuple(kept), origin=rule.origin)


def _rule(rule: Rule, tag: str) -> Iterator[str]:
    filters = list(itertools.chain.from_iterable(map(_filter, rule.filters)))
    if rule.action == "deny" and tag:
        filters.append(_message(tag))
    head = f"({rule.action} {' '.join(rule.operations)}"
    if len(filters) <= 1:
        yield " ".join((head, *filters)) + ")"
        return
    yield head
    yield from (f"  {one}" for one in filters[:-1])
    yield f"  {filters[-1]})"


def _message(tag: str) -> str:
    return f"(with message {quoted(tag)})"


def _filter(one: Filter) -> tuple[str, ...]:
    match one:
        case At(path=path, only_directories=True):
            return (f"(require-all (literal {quoted(path)}) (vnode-type DIRECTORY))",)
        case At(path=path):
            return (f"(literal {quoted(path)})",)
        case Below(path=path):
            return (f"(subpath {quoted(path)})",)
        case Matching():
            whole = f"(regex {regex(one.expression)})"
            return (whole, _directories(one.directories)) if one.directories else (whole,)
        case Expression(text=expression, only_directories=only):
            return (_directories(expression) if only else f"(regex {regex(expression)})",)
        case Plain():
            return (_plain(one),)
        case _:
            raise TypeError(one)


def _directories(expression: str) -> str:
    return f"(require-all (regex {regex(expression)}) (vnode-type DIRECTORY))"


def _plain(one: Plain) -> str:
    name, *rest = one.words
    return f"({' '.join((str(name), *map(_word, rest)))})"


def _word(word: str | Plain) -> str:
    if isinstance(word, Plain):
        return _plain(word)
    if word.startswith("'"):
        return word[1:]
    return regex(word) if word.startswith("^") else quoted(word)
