from __future__ import annotations

import dataclasses
import pickle
from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.contract.errors import RequestRefused
from sandbox.planning.operations import Bind, Cover, Empty, Link, Make, Operation, Origin, ReadOnlyRoot, Seal, Way
from tests.property.strategies import FACTS, TEMP_ROOT, WORKSPACE, Case, cases, grants
from tests.support.plans import planned, request

if TYPE_CHECKING:
    from sandbox.planning.path_reach import Plan

ORDER = [Reach.HIDDEN, Reach.READ, Reach.WRITE]


def plan_of(case: Case, **changed: object) -> Plan:
    try:
        return planned(case.files, **case.but(**changed))
    except RequestRefused:
        assume(condition=False)
        raise


def mounted(plan: Plan) -> list[Operation]:
    return [operation for operation in plan.operations if not isinstance(operation, Make)]


def around(plan: Plan, operation: Operation) -> Operation:
    return plan.decided_by(paths.parent(operation.path))


@given(cases())
def test_parents_come_before_children_and_nothing_is_there_twice(case: Case) -> None:
    plan = plan_of(case)
    seen: dict[str, Operation] = {}
    for operation in mounted(plan):
        assert not any(paths.under(earlier, operation.path) for earlier in seen), operation
        if operation.path in seen:
            # a cover hides a directory that a grant then opens whole
            assert isinstance(operation, Bind)
            assert isinstance(seen[operation.path], Cover)
        seen[operation.path] = operation
    assert isinstance(mounted(plan)[0], ReadOnlyRoot)
    makes = [isinstance(operation, Make) for operation in plan.operations]
    assert makes == sorted(makes, reverse=True)


@given(cases())
def test_every_operation_stands_where_it_can_be_carried_out(case: Case) -> None:
    plan = plan_of(case)
    for operation in mounted(plan)[1:]:
        holder = around(plan, operation)
        in_cover = isinstance(holder, Cover | Way)
        match operation:
            case Way() | Link():
                assert in_cover, operation
            case Empty(laid_over=laid_over) | Seal(laid_over=laid_over):
                assert laid_over is not in_cover, operation
            case Bind(writable=False):
                # a readable bind over something readable adds nothing, unless a cover lies between
                assert in_cover or isinstance(holder, Bind) or plan.operations.count(operation) == 1
        assert in_cover or isinstance(holder, Bind | ReadOnlyRoot), operation
        if in_cover:
            assert holder.path == paths.parent(operation.path), operation
        if isinstance(operation, Bind):
            kind = case.files.kind(operation.path)
            made = any(paths.at_or_under(o.path, operation.path) for o in plan.operations if isinstance(o, Make))
            assert made or operation.directory is (kind is Kind.DIRECTORY), operation


@given(cases())
def test_no_bind_repeats_what_stands_there_already(case: Case) -> None:
    plan = plan_of(case)
    for operation in mounted(plan):
        holder = around(plan, operation)
        if isinstance(operation, Bind) and isinstance(holder, Bind):
            assert operation.writable is not holder.writable, operation
        if isinstance(operation, Bind) and isinstance(holder, ReadOnlyRoot) and operation.path != WORKSPACE:
            assert operation.writable, operation


@given(cases())
def test_reach_is_what_the_grants_and_walls_say(case: Case) -> None:
    plan = plan_of(case)
    oracle = Oracle(case)
    for path in case.files.kinds:
        if case.files.kind(path) is not Kind.OTHER:
            assert plan.reach(path) is oracle.reach(path), path


@given(cases())
def test_access_follows_links_to_the_reach_of_what_they_lead_to(case: Case) -> None:
    plan = plan_of(case)
    for path in case.files.kinds:
        real = paths.canonical(path, case.files)
        if case.files.kind(real) in {Kind.FILE, Kind.DIRECTORY}:
            # a link the task cannot see leads nowhere
            assert plan.access(path, case.files) in {plan.reach(real), Reach.HIDDEN}
            if real == path:
                assert plan.access(path, case.files) is plan.reach(path)


@given(cases().flatmap(lambda case: st.tuples(st.just(case), grants(case.files, write=False))))
def test_one_more_read_grant_takes_nothing_away(drawn: tuple[Case, str]) -> None:
    case, more = drawn
    narrow = plan_of(case)
    wide = plan_of(case, read=(*case.given["read"], more))
    for path in case.files.kinds:
        assert ORDER.index(wide.reach(path)) >= ORDER.index(narrow.reach(path)), path


def _reordered(case: Case) -> st.SearchStrategy[tuple[Case, Case]]:
    again = {name: st.permutations([*case.given[name], *case.given[name][:1]]).map(tuple) for name in ("read", "write")}
    return st.tuples(st.just(case), st.fixed_dictionaries(again).map(lambda given: Case(case.files, case.but(**given))))


@given(cases().flatmap(_reordered))
def test_order_and_repeats_of_grants_do_not_matter(drawn: tuple[Case, Case]) -> None:
    plan, other = map(plan_of, drawn)
    assert [dataclasses.replace(o, origin=Origin()) for o in other.operations] == [
        dataclasses.replace(o, origin=Origin()) for o in plan.operations
    ]


@given(cases())
def test_a_plan_is_the_same_every_time_and_survives_pickling(case: Case) -> None:
    plan = plan_of(case)
    assert plan_of(case) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301  our own bytes


@given(cases())
def test_no_write_ever_reaches_a_wall_or_another_tasks_directory(case: Case) -> None:
    plan = plan_of(case)
    asked = request(case.files, **{name: value for name, value in case.given.items() if name != "temp"})
    named = [globs.named_path(grant) for grant in case.given["write"]]
    for path in case.files.kinds:
        if plan.reach(path) is not Reach.WRITE:
            continue
        assert not paths.at_or_under(path, f"{TEMP_ROOT}/other")
        for wall in asked.walls:
            if paths.at_or_under(path, wall.path):
                assert any(grant is not None and paths.at_or_under(grant, wall.path) for grant in named), (path, wall)


class Oracle:
    """The rules said a second time, over lists and without a tree."""

    def __init__(self, case: Case) -> None:
        self.files = case.files
        self.project: str = case.given["project"]
        asked = request(case.files, **{name: value for name, value in case.given.items() if name != "temp"})
        walls = {wall.path for wall in asked.walls}
        stores = {store.path for store in asked.stores}
        self.contents = {WORKSPACE, FACTS.temp_root}
        self.stores = stores
        self.hidden = self.contents | stores | {wall for wall in walls if case.files.kind(wall) is not None}
        self.writes = {globs.named_path(grant) or "" for grant in case.given["write"]}
        if case.given["temp"] is not None:
            self.writes.add(case.given["temp"])
        self.reads = {read.path for read in asked.reads}
        self.links: set[str] = {place for place, _ in asked.links}
        for entry in case.given["read"]:
            for grant in globs.expand_braces(entry):
                self._read(grant, walls | stores | {FACTS.temp_root})

    def _read(self, grant: str, closed: set[str]) -> None:
        path = globs.named_path(grant)
        if path is not None:
            kind = self.files.kind(path)
            if kind is Kind.DIRECTORY or (kind in {Kind.FILE, Kind.OTHER} and not globs.is_directory(grant)):
                self.reads.add(path)
            return
        for hit in globs.expand(grant, self.files):
            real = paths.canonical(hit, self.files)
            if self.files.kind(real) not in {Kind.FILE, Kind.DIRECTORY}:
                continue
            through = paths.links_on(hit, self.files)
            passed = [real, *(paths.canonical(place, self.files) for place, _ in through), paths.parent(real)]
            if any(paths.at_or_under(place, wall) for place in passed for wall in closed):
                continue
            self.reads.add(real)
            self.links |= {place for place, _ in through}

    def content(self, path: str) -> Reach:
        """What the deepest rule at or above a path gives."""
        walls = [wall for wall in self.hidden if paths.at_or_under(path, wall)]
        wall = max(walls, key=len, default=None)
        for level, grants_ in ((Reach.WRITE, self.writes), (Reach.READ, self.reads)):
            for grant in grants_:
                if paths.at_or_under(path, grant) and (wall is None or paths.at_or_under(grant, wall)):
                    return level
        return Reach.READ if wall is None else Reach.HIDDEN

    def reach(self, path: str) -> Reach:
        content = self.content(path)
        if content is not Reach.HIDDEN:
            return content
        opened = self.writes | self.reads | self.links | {WORKSPACE}
        if any(paths.under(grant, path) for grant in opened) or path in self.links:
            return Reach.READ
        if path == WORKSPACE or paths.at_or_under(self.project, path):
            return Reach.READ
        shown = path != "/" and self.content(paths.parent(path)) is not Reach.HIDDEN
        if shown and (path in self.contents or (path in self.stores and self.files.kind(path) is Kind.DIRECTORY)):
            return Reach.READ
        return Reach.HIDDEN
