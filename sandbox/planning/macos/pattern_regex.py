r"""Grants, aliases and protected names as the regular expressions seatbelt matches paths with. Pure.

Only syntax that every dialect agrees on is used: literals with a backslash before a special character, `[...]` and
`[^...]`, `*`, `?`, `+` after a group, alternation, `^` and `$`. There is no `.` (does it match a newline?), no count
and no class by name. Seatbelt compares paths that have no link left.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.request.protected_names import (
    CARRIERS,
    CLAUDE,
    CLAUDE_SETTINGS,
    DIRECTORIES,
    ELSEWHERE,
    FILES,
    HOOKS,
    NO_REPOSITORY,
    POLICY,
    SETTINGS,
    folded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The end of an expression that covers a path and everything below it.
BELOW = "(/|$)"
#: One component of any name, and any number of such.
_ONE = "/[^/]+"
_ANY = "(/[^/]+)*"
_SOME = "(/[^/]+)+"

_SPECIAL = re.compile(r"[.*+?()\[\]{}|^$\\]")
_TOKEN = re.compile(r"\\[\\*?\[\]{},]|.", re.DOTALL)
_GIT, _MODULES, _WORKTREES = ".git", "modules", "worktrees"

#: Letters that fold to several, as file systems without case compare them (Unicode's CaseFolding.txt, status F).
_LIGATURES = {
    "ff": "\ufb00",
    "fi": "\ufb01",
    "fl": "\ufb02",
    "ffi": "\ufb03",
    "ffl": "\ufb04",
    "st": "\ufb05\ufb06",
    "ss": "\u00df\u1e9e",
}
#: Other characters that are an ASCII letter once they are normalized and folded.
_DOUBLES = {"k": "\u212a", "s": "\u017f"}
_LONGEST_RUN = 5


def literal(text: str) -> str:
    """An expression that matches exactly this text."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def components(grant: str) -> tuple[str, ...]:
    """A pattern cut at its slashes; a slash at the end is not kept."""
    return tuple(paths.parts(grant))


@functools.lru_cache(maxsize=1024)
def expression(grant: str) -> str:
    """An expression for the paths a pattern matches, and everything below.

    The expression of a pattern of directories matches only paths below them.
    """
    return f"^{_steps(components(grant))}" + ("/" if grant.endswith("/") else BELOW)


def itself(grant: str) -> str:
    """An expression for the paths a pattern matches, without what is below."""
    return f"^{_steps(components(grant))}$"


def ways(grant: str) -> Iterator[str]:
    """The directories a pattern leads through below its head, the nearest first."""
    every = components(grant)
    start = len(paths.parts(globs.literal_base(grant)))
    for end in range(start + 1, len(every)):
        yield f"^{_steps(every[:end])}$"


def _steps(every: Iterable[str]) -> str:
    return "".join(_ANY if part == "**" else f"/{_component(part)}" for part in every)


@functools.lru_cache(maxsize=4096)
def _component(component: str) -> str:
    if not globs.has_wildcard(component):
        return literal(globs.unescape(component))
    found: list[str] = []
    rest = component
    while rest:
        if rest[0] == "*":
            rest = rest.lstrip("*")
            found.append("[^/]*")
        elif rest[0] == "?":
            rest = rest[1:]
            found.append("[^/]")
        elif rest[0] == "[" and (end := _class_end(rest)):
            found.append(_characters(rest[:end]))
            rest = rest[end:]
        else:
            token = _TOKEN.match(rest)
            text = token[0] if token else rest[0]
            rest = rest[len(text) :]
            found.append(literal(globs.unescape(text) if len(text) > 1 else text))
    return "".join(found)


def _class_end(text: str) -> int:
    """The end of a bracket expression at the start of `text`; 0 where the bracket is an ordinary one."""
    at = 2 if text[1:2] in {"!", "^"} else 1
    at += text[at : at + 1] == "]"
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text.startswith("[:", at) and (end := text.find(":]", at)) != -1:
            at = end + 2
            continue
        if text[at] == "]":
            return at + 1
        at += 1
    return 0


@functools.lru_cache(maxsize=512)
def _characters(bracket: str) -> str:
    """An expression for the characters a bracket expression matches, as the library that knows patterns says."""
    # behind another character, where a dot is a character like any other: `/.` is no name
    matches = globs.matcher((f"/_{bracket}",))
    named = [ord(character) for character in bracket if ord(character) > 0x7F]  # noqa: PLR2004  the end of ASCII
    known = [*range(1, 0x80), *(range(min(named), max(named) + 1) if named else ())]
    inside = [chr(code) for code in known if chr(code) != "/" and matches(f"/_{chr(code)}")]
    if matches("/_\U0010fffd"):
        outside = [chr(code) for code in known if chr(code) not in inside and chr(code) != "/"]
        return _without(outside)
    return _among(inside)


def _among(inside: list[str]) -> str:
    plain = "".join(c for c in inside if c.isalnum() or c == "_")
    rest = [literal(c) for c in inside if not (c.isalnum() or c == "_")]
    every = [*([f"[{plain}]"] if plain else []), *rest]
    # A bracket that matches nothing leaves a pattern that matches nothing.
    return f"({'|'.join(every)})" if every else "[^/][/]"


def _without(outside: list[str]) -> str:
    # `]` comes first, `-` last and a backslash twice, so that the bracket is read alike whether or not a backslash
    # escapes in it.
    first = "]" if "]" in outside else ""
    last = "-" if "-" in outside else ""
    slash = "\\\\" if "\\" in outside else ""
    rest = "".join(c for c in outside if c not in "]-\\^")
    return f"[^{first}/{rest}{slash}{'^' if '^' in outside else ''}{last}]"


def restricted(grant: str, directory: str, *, strictly: bool = False) -> tuple[str, ...]:
    """Patterns that together match what `grant` matches at or below a directory, whatever it matches above.

    Args:
        grant: the pattern.
        directory: absolute.
        strictly: leave out what the pattern matches at the directory itself.
    """
    every = components(grant)
    states = _closed({0}, every)
    for part in paths.parts(directory):
        states = _closed({after for state in states for after in _after(every, state, part)}, every)
    tail = "/" if grant.endswith("/") else ""
    found = [
        paths.join(globs.escape(directory), *every[state:]) + tail
        for state in sorted(states)
        if state < len(every) and not all(part == "**" for part in every[state:])
    ]
    if not strictly and any(all(part == "**" for part in every[state:]) for state in states):
        return (globs.escape(directory).rstrip("/") + "/",)
    return tuple(dict.fromkeys(found))


def _after(every: tuple[str, ...], state: int, part: str) -> tuple[int, ...]:
    if state == len(every):
        return ()
    if every[state] == "**":
        return (state,)
    return (state + 1,) if globs.matcher((f"/{every[state]}",))(f"/{part}") else ()


def _closed(states: set[int], every: tuple[str, ...]) -> set[int]:
    for state in sorted(states):
        at = state
        while at < len(every) and every[at] == "**":
            at += 1
            states.add(at)
    return states


def aliases(path: str) -> str:
    """Every spelling of a path, and all below it, that a volume without case takes for the same: case and Unicode."""
    return "^" + "".join(f"/{caseless(part)}" for part in paths.parts(path)) + BELOW


def has_aliases(path: str) -> bool:
    """Whether there is another spelling of a path at all."""
    return any(c.isalpha() or not c.isascii() for c in path)


@functools.lru_cache(maxsize=4096)
def caseless(name: str) -> str:
    """One component in every case and normalization."""
    text = unicodedata.normalize("NFC", name)
    found: list[str] = []
    at = 0
    while at < len(text):
        run = _run(text.lower(), at)
        if run > 1:
            found.append(_spellings(text[at : at + run].lower()))
        else:
            found.append(_character(text[at]))
        at += run
    return "".join(found)


def _run(text: str, at: int) -> int:
    end = at + 1
    while end < len(text) and end - at < _LONGEST_RUN and text[end - 1 : end + 1] in _LIGATURES:
        end += 1
    return end - at


def _spellings(run: str) -> str:
    """An expression for a run of letters, some of which may be written as one character."""
    found: list[str] = []
    for cuts in itertools.product((False, True), repeat=len(run) - 1):
        pieces, piece = [], run[0]
        for letter, cut in zip(run[1:], cuts, strict=True):
            if cut:
                pieces.append(piece)
                piece = letter
            else:
                piece += letter
        pieces.append(piece)
        if all(len(one) == 1 or one in _LIGATURES for one in pieces):
            found.append("".join(_character(one) if len(one) == 1 else _one_of(_LIGATURES[one]) for one in pieces))
    return f"({'|'.join(found)})"


def _one_of(characters: Iterable[str]) -> str:
    every = [literal(one) for one in characters]
    return every[0] if len(every) == 1 else f"({'|'.join(every)})"


@functools.cache
def _folding_to() -> dict[str, tuple[str, ...]]:
    """The characters that fold to each text of several characters, such as three sigmas. Takes tens of milliseconds."""
    found: dict[str, list[str]] = {}
    for code in range(0x80, 0x1_0000):
        character = chr(code)
        if character.isalpha():
            found.setdefault(character.casefold(), []).append(character)
    return {fold: tuple(every) for fold, every in found.items() if len(every) > 1}


def _character(character: str) -> str:
    lower = character.lower()
    if character.isascii():
        if not character.isalpha():
            return literal(character)
        if lower in _DOUBLES:
            return _one_of((lower, lower.upper(), _DOUBLES[lower]))
        return f"[{lower}{lower.upper()}]"
    cases = {
        *_folding_to().get(character.casefold(), ()),
        character,
        lower,
        character.upper(),
        character.title(),
        character.casefold(),
        lower.title(),
    }
    forms = {unicodedata.normalize(form, one) for one in cases for form in ("NFC", "NFD")} | cases
    ascii_ = sorted(one for one in forms if one.isascii())
    written = [*sorted(one for one in forms if not one.isascii())]
    expressions = [literal(one) for one in written] + [
        "".join(map(_character, one)) for one in {a.lower() for a in ascii_}
    ]
    return expressions[0] if len(expressions) == 1 else f"({'|'.join(expressions)})"


def executed(root: str, *, git_config: bool) -> tuple[str, ...]:
    """Expressions for the protected names below a writable place, and everything in them."""
    entries = f"({'|'.join(caseless(name) for name in _entries(git_config=git_config))})"
    # Where settings may be written, so may the file of a linked checkout that says where they are.
    free = {ELSEWHERE} if git_config else set()
    linked = f"({'|'.join(caseless(name) for name in _entries(git_config=git_config) if name not in free)})"
    git = caseless(_GIT)
    inside = (
        f"{entries}",
        f"{caseless(_WORKTREES)}{_ONE}/{linked}",
        f"{caseless(_MODULES)}{_SOME}/{entries}",
    )
    named = [caseless(name) for name in sorted(FILES)]
    named += ["/".join(map(caseless, parts)) for parts in (*DIRECTORIES, *POLICY)]
    named += [f"{git}/{rest}" for rest in inside]
    named.append(f"{caseless(CLAUDE)}/{_claude_settings()}")
    head = "^" + literal(root)
    found = [f"{head}{_ANY}/({'|'.join(named)}){BELOW}"]
    found += [f"{head}{rest}{BELOW}" for rest in _from_inside(root, inside, entries, linked)]
    return tuple(found)


def _claude_settings() -> str:
    return "[^/]*".join(map(caseless, CLAUDE_SETTINGS))


def _entries(*, git_config: bool) -> tuple[str, ...]:
    return (HOOKS, ELSEWHERE, *(() if git_config else sorted(SETTINGS)))


def _from_inside(root: str, inside: tuple[str, ...], entries: str, linked: str) -> Iterator[str]:
    """The ends of a protected name below a place that is in the middle of the name."""
    parts = [folded(part) for part in paths.parts(root)]
    inner = [_claude_settings()] if parts[-1:] == [CLAUDE] else []
    inner += [caseless(rest[0]) for first, *rest in (*DIRECTORIES, *POLICY) if rest and parts[-1:] == [first]]
    if inner:
        yield f"/({'|'.join(inner)})"
    for at, part in enumerate(parts):
        if part != _GIT:
            continue
        rest = parts[at + 1 :]
        if not rest:
            yield f"/({'|'.join(inside)})"
        elif rest[0] == _WORKTREES:
            if len(rest) <= 2:  # noqa: PLR2004  worktrees/NAME
                yield f"{_ONE}/{linked}" if len(rest) == 1 else f"/{linked}"
        elif rest[0] == _MODULES and NO_REPOSITORY.isdisjoint(rest[1:]):
            yield f"{_SOME if len(rest) == 1 else _ANY}/{entries}"


def carriers(root: str) -> str:
    """An expression for directories below a writable place that would bring protected names along if renamed."""
    return f"^{literal(root)}{_ANY}/({'|'.join(map(caseless, sorted(CARRIERS)))})$"
