"""The rules of a macOS profile that are about paths, each with its place in the order. Pure.

A mark on a path, from the same request a Linux plan is made of, becomes a rule. The marks are sorted parents first; of
those on one path the ones that hide come before the ones that grant. The last rule that matches decides, so the deepest
mark does, as on Linux. Patterns stay patterns: a pattern's rule stands where its literal head does. A match below a
mark that hides is granted again after that mark, unless the mark is a wall, which no pattern opens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.errors import Refusal
from sandbox.planning.macos.pattern_regex import aliases, has_aliases, restricted, ways
from sandbox.planning.macos.profile_rules import EXEC, LOOK, READ, WRITE, At, Below, Expression, Filter, Matching, Rule
from sandbox.planning.operations import Names, Origin
from sandbox.request import grant_refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files
    from sandbox.request.request import Request

_WORKSPACE = Origin(reason="nothing in the workspace exists unless it is granted")
_TEMP_ROOT = Origin(reason="other tasks' temporary directories do not exist")
_LINK = Origin(reason="what is granted is reached through this link")

#: The kinds of rules on one path, in their order: it hides, a pattern grants there, it is entered on the way, it
#: grants.
_HIDE, _PATTERN, _ENTER, _GRANT = range(4)

#: The place of a rule: the depth of its path, its kind, and the path.
Sort = tuple[int, int, str]


@dataclass(slots=True)
class HiddenPath:
    """A mark that hides.

    Attributes:
        kind: `content` is opened by a pattern that matches it or something in it; `wall` by none.
    """

    path: str
    kind: Literal["content", "wall"]
    origin: Origin


@dataclass(slots=True)
class Marks:
    """Rules with their places in the order."""

    request: Request
    files: Files
    inert: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    _hidden: dict[str, HiddenPath] = field(default_factory=dict)
    _rules: list[tuple[Sort, Rule]] = field(default_factory=list)
    _patterns: list[tuple[str, Origin]] = field(default_factory=list)
    _entered: set[str] = field(default_factory=set)

    def hide(self) -> None:
        """Mark everything that hides, as a Linux plan does."""
        request = self.request
        self._hide(request.config.workspace, "content", _WORKSPACE)
        self._hide(request.facts.temp_root, "wall", _TEMP_ROOT)
        for wall in request.walls:
            self._hide(wall.path, "wall", Origin(reason=f"{wall.reason} is a wall"))
        for wall in request.around:
            self._hide(wall.path, "content", Origin(reason=f"{wall.reason} is a wall"))
        for store in request.stores:
            self._hide(store.path, "wall", Origin(reason=f"{store.reason} is closed unless a grant names it"))

    def _hide(self, path: str, kind: Literal["content", "wall"], origin: Origin) -> None:
        if path in self._hidden:
            return
        self._hidden[path] = HiddenPath(path, kind, origin)
        filters: list[Filter] = [Below(path=path)]
        if has_aliases(path):
            filters.append(Expression(text=aliases(path), about=f"every other spelling of {path}"))
        self._add(
            path, _HIDE, Rule(action="deny", operations=(READ, WRITE, EXEC), filters=tuple(filters), origin=origin)
        )

    def grant(self, path: str, origin: Origin, operations: tuple[str, ...]) -> None:
        """Grant a path and everything below it."""
        self._add(path, _GRANT, Rule(action="allow", operations=operations, filters=(Below(path=path),), origin=origin))
        self.enter(path, origin)

    def link(self, place: str) -> None:
        """Have a link be read."""
        self._add(place, _GRANT, Rule(action="allow", operations=(READ,), filters=(At(path=place),), origin=_LINK))
        self.enter(place, _LINK)

    def enter(self, path: str, origin: Origin, *, itself_too: bool = False) -> None:
        """Have the directories above a path be listed as far as they are hidden; in a wall they are looked at alone."""
        for place in (*([path] if itself_too else ()), *paths.parents(path)):
            if place in self._entered:
                continue
            self._entered.add(place)
            walled = self._walled(place)
            # Bun reads the root's own package.json where it sees it listed.
            operation = LOOK if walled or place == self.request.config.workspace else READ
            if any(paths.at_or_under(place, one) for one in self._hidden):
                at = At(path=place, only_directories=True)
                rule = Rule(action="allow", operations=(operation,), filters=(at,), origin=origin)
                self._add(place, _ENTER, rule)

    def read(self, entry: str, name: str) -> None:
        """Mark one read grant of the config."""
        try:
            for grant in grant_refusals.spelled(entry, name):
                if globs.has_wildcard(grant):
                    self._read_pattern(grant, name)
                else:
                    self._read_path(grant, globs.path_of(grant), name)
        except Refusal as refusal:
            self.refusals.append(grant_refusals.placed(refusal, name))

    def _read_path(self, grant: str, path: str, name: str) -> None:
        if paths.canonical(path, self.files) != path:
            self.refusals.append(grant_refusals.not_canonical(grant, path, name, self.files))
            return
        if grant_refusals.is_others_temporary(path, self.request.facts.temp_root, self.request.config.workspace):
            what = f'grant "{grant}"'
            self.refusals.append(grant_refusals.others_temporary(what, self.request.facts.temp_root, name))
            return
        kind = self.files.kind(path)
        if kind is Kind.LINK or (kind not in {None, Kind.DIRECTORY} and grant.endswith("/")):
            self.inert.append((name, path))
            return
        if kind is None:
            # A grant that names nothing is given all the same: seatbelt compares names, whenever they are made.
            self.inert.append((name, path))
        self.grant(path, Origin(field=name), (READ, EXEC))

    def _read_pattern(self, grant: str, name: str) -> None:
        base = globs.literal_base(grant)
        if paths.canonical(base, self.files) != base:
            self.refusals.append(grant_refusals.not_canonical(grant, base, name, self.files))
            return
        origin = Origin(field=name)
        if self._walled(base) or self.files.kind(base) not in {None, Kind.DIRECTORY}:
            # A match in a wall was matched, not named, and does not count; a match in a file finds nothing.
            self.inert.append((name, grant))
            return
        if ".." in paths.parts(grant):
            # Seatbelt compares real paths, which hold no such component: the present matches have to do.
            self._expanded(grant, name)
            return
        self._patterns.append((grant, origin))
        self._matching(grant, base, origin, (READ, EXEC), depth=_depth(base))
        self.enter(paths.join(base, "x"), origin)
        for hidden in self._below(base):
            if hidden.kind == "content":
                for rest in restricted(grant, hidden.path):
                    self._matching(rest, hidden.path, origin, (READ, EXEC), depth=_depth(hidden.path))
        self._expanded(grant, name, only_links=True)

    def _expanded(self, grant: str, name: str, *, only_links: bool = False) -> None:
        """Grant the present matches of a pattern, through links alone or at all."""
        found = False
        for hit in globs.expand(grant, self.files, skip=self._walled):
            real = paths.canonical(hit, self.files)
            if self.files.kind(real) not in {Kind.FILE, Kind.DIRECTORY}:
                continue
            found = True
            if real != hit or not only_links:
                self.grant(real, Origin(field=name), (READ, EXEC))
                for place, _ in paths.links_on(hit, self.files):
                    self.link(place)
        if not found:
            self.inert.append((name, grant))

    def _matching(self, grant: str, head: str, origin: Origin, operations: tuple[str, ...], *, depth: int) -> None:
        """Grant the matches of a pattern, and have the directories it leads through be listed."""
        sort = (depth, _PATTERN, head)
        if not globs.has_wildcard(grant):
            path = globs.path_of(grant)
            whole: Filter = Below(path=path)
            self._rules.append((sort, Rule(action="allow", operations=operations, filters=(whole,), origin=origin)))
            self.enter(path, origin)
            return
        every = tuple(
            Expression(text=text, about=f"directories that lead to {grant}", only_directories=True)
            for text in ways(grant)
        )
        if every:
            self._rules.append((sort, Rule(action="allow", operations=(READ,), filters=every, origin=origin)))
        matching = (Matching(pattern=grant),)
        self._rules.append((sort, Rule(action="allow", operations=operations, filters=matching, origin=origin)))

    def write_pattern(self, names: Names) -> None:
        """Grant writing of every name a pattern matches, but for those in places it does not reach."""
        head, origin = names.path, names.origin
        pattern = names.pattern.rstrip("/")
        self._matching(pattern, head, origin, (READ, WRITE, EXEC), depth=_depth(head))
        self.enter(paths.join(head, "x"), origin)
        holders = {above for path in names.without for above in paths.parents(path) if paths.under(above, head)}
        matches = globs.matcher((pattern,))
        for holder in sorted(path for path in holders if matches(path)):
            # A directory that holds a place the pattern does not reach is not granted whole.
            self._take_back(holder, f"it holds what {pattern} leaves out")
            for rest in restricted(pattern, holder, strictly=True):
                self._matching(rest, holder, origin, (READ, WRITE, EXEC), depth=_depth(holder))
        for path in names.without:
            self._take_back(path, f"{pattern} does not reach it")

    def _take_back(self, path: str, reason: str) -> None:
        """Deny what a pattern granted at a place; reading only where nothing else grants that."""
        operations = (WRITE,) if self._readable(path) else (READ, WRITE, EXEC)
        rule = Rule(action="deny", operations=operations, filters=(Below(path=path),), origin=Origin(reason=reason))
        self._add(path, _PATTERN, rule)
        if READ in operations and not self._walled(path):
            for grant, origin in self._patterns:
                for rest in restricted(grant, path):
                    self._matching(rest, path, origin, (READ, EXEC), depth=_depth(path))

    def _readable(self, path: str) -> bool:
        """Whether a path may be read, patterns of names left out."""
        if any(Matching(pattern=grant).covers(path, directory=True) for grant, _ in self._patterns):
            return True
        best, answer = -1, not self.request.config.hermetic
        for place in self._hidden:
            if paths.at_or_under(path, place) and _depth(place) > best:
                best, answer = _depth(place), False
        for place in self._plain_reads:
            if paths.at_or_under(path, place) and _depth(place) >= best:
                best, answer = _depth(place), True
        return answer

    @property
    def _plain_reads(self) -> Iterator[str]:
        config, files = self.request.config, self.files
        for entry in config.allow_read:
            path = globs.named_path(entry)
            if path is not None and files.kind(path) is not None:
                yield path
        yield from (read.path for read in self.request.reads)

    def _walled(self, path: str) -> bool:
        return any(one.kind == "wall" and paths.at_or_under(path, one.path) for one in self._hidden.values())

    def _below(self, directory: str) -> list[HiddenPath]:
        return [one for one in self._hidden.values() if paths.under(one.path, directory)]

    def _add(self, path: str, order: int, rule: Rule) -> None:
        self._rules.append(((_depth(path), order, path), rule))

    def rules(self) -> Iterator[Rule]:
        """The rules in order; neighbours that say the same about different paths become one."""
        pending: Rule | None = None
        for _, rule in sorted(self._rules, key=lambda one: one[0]):
            if pending is not None and _alike(pending, rule):
                filters = tuple(dict.fromkeys((*pending.filters, *rule.filters)))
                pending = Rule(action=rule.action, operations=rule.operations, filters=filters, origin=rule.origin)
                continue
            if pending is not None:
                yield pending
            pending = rule
        if pending is not None:
            yield pending


def _alike(one: Rule, other: Rule) -> bool:
    return (one.action, one.operations, one.origin) == (other.action, other.operations, other.origin)


def _depth(path: str) -> int:
    return len(paths.parts(path))
