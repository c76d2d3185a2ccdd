r"""The syntax of a grant, and the paths a pattern matches. Pure.

Braces are expanded first. Then `*`, `?` and `[class]` match inside one component, dotfiles and directories included,
and `**` as a whole component crosses directories but never a link. A backslash takes the meaning from the next of `\ *
? [ ] { } ,`; before anything else it is an ordinary character, so that every name can be spelled. A trailing `/` means
the directory and all of it, and so do `/**` and `/**/*`.

The two libraries behind this load when a grant has a brace or a wildcard, not before: most have neither.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sandbox.base.host_facts import Files

#: The most grants that the braces of one grant may become.
MAX_ALTERNATIVES = 1000
#: The most directory entries that one pattern may look at.
MAX_ENTRIES = 250_000

# Expressions are kept as text: most grants are names, and a check of those never loads `re`.
_ESCAPED = r"\\([\\*?\[\]{},])"
_CHARACTER = r"(?s)\\[\\*?\[\]{},]|."
_WHOLE = r"(?:^|(?<=/))\*\*(?:/+\*\*)*(?:/+\*)?/*$"
_WILD = frozenset("*?[]")
_LITERAL_NEEDS = {ord(char): "\\" + char for char in "\\*?[]{}"}
_NEVER_PLAIN = frozenset("\0\\*?[]{}")


def escape(path: str) -> str:
    """The grant that names exactly this path."""
    return path if is_plain(path) else path.translate(_LITERAL_NEEDS)


def unescape(grant: str) -> str:
    """The text of a grant that is no pattern, its escapes taken away."""
    if "\\" not in grant:
        return grant
    import re

    return re.sub(_ESCAPED, r"\1", grant)


def is_plain(grant: str) -> bool:
    """Whether every character of a grant stands for itself."""
    return bool(grant) and _NEVER_PLAIN.isdisjoint(grant)


def has_wildcard(grant: str) -> bool:
    """Whether a wildcard is left unescaped in a grant whose braces are expanded."""
    # The set is asked first: most grants hold no wildcard, and a check of many files asks this of each many times.
    return not _WILD.isdisjoint(grant) and ("\\" not in grant or not _WILD.isdisjoint(_tokens(grant)))


def expand_braces(grant: str) -> tuple[str, ...]:
    r"""The grants a grant's braces stand for, in order and without repeats.

    Braces that stand for nothing, as in `a{b}`, come back escaped: they are part of a name.

    Raises:
        Refusal: there would be more than `MAX_ALTERNATIVES`.
    """
    if "{" not in grant:
        return (grant,)
    import bracex

    try:
        found = bracex.expand(grant, keep_escapes=True, limit=MAX_ALTERNATIVES)
    except bracex.ExpansionLimitException:
        raise Refusal(
            f'the braces of "{grant}" stand for more than {MAX_ALTERNATIVES} grants',
            code=refusal_codes.TOO_MUCH,
            hint="grant the directory that holds them, with a trailing slash",
        ) from None
    return tuple(dict.fromkeys(_braces_escaped(alternative) for alternative in found))


def _braces_escaped(grant: str) -> str:
    return "".join("\\" + token if token in {"{", "}"} else token for token in _tokens(grant))


def _tokens(grant: str) -> list[str]:
    """The characters of a grant, an escaped one with its backslash."""
    import re

    return re.findall(_CHARACTER, grant)


def collapse(grant: str) -> str:
    """`dir/**` and `dir/**/*` as the `dir/` they mean; a bare `**` is `./`; anything else unchanged."""
    if "*" not in grant:
        return grant
    import re

    found = re.search(_WHOLE, grant)
    return grant if found is None else grant[: found.start()] or "./"


def is_directory(grant: str) -> bool:
    """Whether a grant is spelled as a directory, everything in it included."""
    return collapse(grant).endswith("/")


def named_path(grant: str) -> str | None:
    """The one path a grant names, without escapes or a trailing slash; `None` for a pattern."""
    alternatives = expand_braces(grant)
    if len(alternatives) != 1:
        return None
    literal = collapse(alternatives[0])
    if has_wildcard(literal):
        return None
    return unescape(literal).rstrip("/") or ("/" if literal.startswith("/") else ".")


class Matcher:
    """A test for paths, made by `matcher`; it can be pickled and needs no library where it is used."""

    def __init__(
        self,
        exact: frozenset[str],
        trees: tuple[str, ...],
        wild: tuple[_Pattern, ...],
        every: tuple[_Pattern, ...],
    ) -> None:
        self.exact = exact
        self.trees = trees
        self.wild = wild
        self.every = every

    def __call__(self, path: str) -> bool:
        """Whether any of the patterns matches a path."""
        return (
            path in self.exact
            or any(path.startswith(tree) for tree in self.trees)
            or any(pattern.matches(path) for pattern in self.wild)
        )

    def leads(self, directory: str) -> tuple[bool, bool]:
        """Whether any pattern may match a name directly in `directory`, and whether one may further below."""
        answers = [pattern.leads(directory) for pattern in self.every]
        return any(here for here, _ in answers), any(deeper for _, deeper in answers)


def matcher(patterns: Iterable[str]) -> Matcher:
    """A test whether any of these patterns matches a path; both sides spelled alike, usually absolute.

    A pattern spelled as a directory matches the directory and everything in it.
    """
    exact: set[str] = set()
    trees: list[str] = []
    wild: list[_Pattern] = []
    every: list[_Pattern] = []
    for pattern in patterns:
        for grant in map(collapse, expand_braces(pattern)):
            cut = _Pattern.of(grant)
            every.append(cut)
            if has_wildcard(grant):
                wild.append(cut)
                continue
            path = unescape(grant)
            exact.add(path.rstrip("/") or "/")
            if path.endswith("/"):
                trees.append(path)
    return Matcher(frozenset(exact), tuple(trees), tuple(wild), tuple(every))


class _Pattern(NamedTuple):
    """A pattern cut into components; `**` is `None`, and so is the tree below a directory pattern."""

    absolute: bool
    components: tuple[Callable[[str], object] | None, ...]

    @classmethod
    def of(cls, grant: str) -> _Pattern:
        components = [None if part == "**" else _component(part) for part in paths.parts(grant)]
        if grant.endswith("/"):
            components.append(None)
        return cls(grant.startswith("/"), tuple(components))

    def matches(self, path: str) -> bool:
        if path.startswith("/") is not self.absolute:
            return False
        states = self._closed({0})
        for part in paths.parts(path):
            states = self._closed({next_ for state in states for next_ in self._after(state, part)})
        return len(self.components) in states

    def leads(self, directory: str) -> tuple[bool, bool]:
        """Whether a name directly in `directory` may match, and whether one further below."""
        if directory.startswith("/") is not self.absolute:
            return False, False
        states = self._closed({0})
        for part in paths.parts(directory):
            states = self._closed({next_ for state in states for next_ in self._after(state, part)})
        end = len(self.components)
        open_ = {state for state in states if state < end}
        last = {end, *(at for at in range(end) if all(part is None for part in self.components[at:]))}
        here = any((state if self.components[state] is None else state + 1) in last for state in open_)
        deeper = any(state + 1 < end or self.components[state] is None for state in open_)
        return here, deeper

    def _after(self, state: int, part: str) -> tuple[int, ...]:
        if state == len(self.components):
            return ()
        matches = self.components[state]
        if matches is None:
            return (state,)
        return (state + 1,) if matches(part) is not None else ()

    def _closed(self, states: set[int]) -> set[int]:
        # `**` may stand for no component at all.
        for state in sorted(states):
            at = state
            while at < len(self.components) and self.components[at] is None:
                at += 1
                states.add(at)
        return states


@lru_cache(maxsize=4096)
def _component(component: str) -> Callable[[str], object]:
    """The test for one component that is not `**`."""
    import re

    if not has_wildcard(component):
        return re.compile(re.escape(unescape(component)) + r"\Z").match
    from wcmatch import fnmatch

    # An ordinary backslash is doubled, so that it escapes nothing that follows it.
    spelled = "".join("\\\\" if piece == "\\" else piece for piece in _tokens(component))
    (source,), _ = fnmatch.translate(spelled, flags=fnmatch.DOTMATCH | fnmatch.CASE | fnmatch.FORCEUNIX)
    return re.compile(source.removesuffix("$") + r"\Z").match


def path_of(grant: str) -> str:
    """The absolute path a grant that is no pattern names, without escapes or a trailing slash."""
    return unescape(grant).rstrip("/") or "/"


def head(grant: str) -> str:
    """The path at or below which everything lies that an absolute grant matches."""
    return literal_base(grant) if has_wildcard(grant) else path_of(grant)


def literal_base(grant: str) -> str:
    """The directory that holds a pattern's first wildcard, unescaped; for a literal, its parent."""
    components = grant.rstrip("/").split("/")
    wild = (index for index, component in enumerate(components) if has_wildcard(component))
    return unescape("/".join(components[: next(wild, len(components) - 1)])) or "/"


def expand(
    grant: str,
    files: Files,
    *,
    skip: Callable[[str], bool] = lambda _path: False,
    leaving: set[str] | None = None,
) -> tuple[str, ...]:
    """The existing paths an absolute grant stands for now, sorted, spelled as the pattern reached them.

    A hit whose real path leaves the directory that holds the first wildcard is dropped. So is a hit that `skip` names,
    with everything below it. A pattern spelled as a directory hits only directories.

    Args:
        grant: absolute.
        files: the host's file system.
        skip: whether a real path is no hit.
        leaving: is given the links that match and are dropped for what they lead to.

    Raises:
        Refusal: the pattern would have to look at more than `MAX_ENTRIES` directory entries.
    """
    hits: set[str] = set()
    for alternative in map(collapse, expand_braces(grant)):
        if not has_wildcard(alternative):
            path = path_of(alternative)
            if files.kind(path) is not None and not skip(paths.canonical(path, files)):
                hits.add(path)
            continue
        hits.update(_Search(alternative, files, skip, leaving).run())
    return tuple(sorted(hits))


class _Search:
    """One walk for one pattern; a place is its path as spelled and its real path."""

    def __init__(self, grant: str, files: Files, skip: Callable[[str], bool], leaving: set[str] | None) -> None:
        self.grant = grant
        self.files = files
        self.skip = skip
        self.leaving = leaving
        self.looked = 0

    def run(self) -> Iterator[str]:
        base = literal_base(self.grant)
        wild = paths.parts(self.grant)[len(paths.parts(base)) :]
        holder = paths.canonical(base, self.files)
        # Each directory is visited once for each rest of the pattern, however many ways lead there.
        seen: set[tuple[str, int]] = set()
        todo = [(base, holder, 0)]
        while todo:
            spelled, real, index = todo.pop()
            if (spelled, index) in seen:
                continue
            seen.add((spelled, index))
            component = wild[index]
            if component == "**":
                todo.append((spelled, real, index + 1))
                index -= 1
            for path, target in self._step(spelled, real, component):
                last = index + 1 == len(wild)
                fits = last and (not self.grant.endswith("/") or self.files.kind(target) is Kind.DIRECTORY)
                if not paths.at_or_under(target, holder) or self.skip(target):
                    if fits and self.leaving is not None and target != paths.join(real, paths.name(path)):
                        self.leaving.add(path)
                elif not last:
                    todo.append((path, target, index + 1))
                elif fits:
                    yield path

    def _step(self, spelled: str, real: str, component: str) -> Iterator[tuple[str, str]]:
        if component == "..":
            self._count(1)
            yield paths.parent(real), paths.parent(real)
            return
        if component != "**" and not has_wildcard(component):
            self._count(1)
            name = unescape(component)
            kind = self.files.kind(paths.join(real, name))
            if kind is not None:
                yield self._place(spelled, real, name, kind)
            return
        names = self.files.entries(real)
        self._count(len(names))
        matches = None if component == "**" else _component(component)
        for name in names:
            if matches is not None and matches(name) is None:
                continue
            kind = self.files.kind(paths.join(real, name))
            # `**` does not cross links.
            if kind is Kind.DIRECTORY or (kind is not None and matches is not None):
                yield self._place(spelled, real, name, kind)

    def _place(self, spelled: str, real: str, name: str, kind: Kind) -> tuple[str, str]:
        target = paths.join(real, name)
        if kind is Kind.LINK:
            target = paths.canonical(target, self.files)
        return paths.join(spelled, name), target

    def _count(self, entries: int) -> None:
        self.looked += entries
        if self.looked > MAX_ENTRIES:
            raise Refusal(
                f'pattern "{self.grant}" looks at more than {MAX_ENTRIES} directory entries',
                code=refusal_codes.TOO_MUCH,
                hint="start it in a deeper directory, or grant a directory with a trailing slash",
            )
