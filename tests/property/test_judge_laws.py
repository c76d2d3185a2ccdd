"""Laws of the judge over random plans and accesses."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.contract.config import Ignore, Reach
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Violation
from sandbox.judge.boundary import Boundary
from sandbox.judge.judge import Judge
from sandbox.planning.operations import Bind, Cover, Operation, Origin, ReadOnlyRoot, Way
from sandbox.planning.path_reach import Plan

O = Origin(field="allowRead[0]")  # noqa: E741  one letter keeps the plans below readable
NAMES = st.sampled_from(["a", "b", "c*", "d[1]"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: "/ws/p/" + "/".join(parts))
WRITES = {Intent.WRITE, Intent.CREATE, Intent.MKDIR, Intent.REMOVE, Intent.RENAME, Intent.LINK, Intent.ATTRIBUTES}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    grants = draw(st.dictionaries(PATHS, st.booleans(), max_size=4))
    ways = {above for grant in grants for above in paths.parents(grant) if paths.under(above, "/ws")} | {"/ws/p"}
    operations: list[Operation] = [ReadOnlyRoot(path="/", origin=O), Cover(path="/ws", origin=O)]
    operations += [Way(path=way, origin=O) for way in sorted(ways)]
    operations += [Bind(path=g, origin=O, directory=True, writable=grants[g]) for g in sorted(grants)]
    return Plan(operations=tuple(operations), workspace="/ws", project="/ws/p")


ACCESSES = st.builds(
    lambda operation, intent, path, exists: Access(
        pid=1, operation=operation, intent=intent, asked=path, path=path, exists=exists
    ),
    st.sampled_from(["openat", "x"]),
    st.sampled_from(list(Intent)),
    st.one_of(PATHS, st.just("/ws/p"), st.just("/ws/other/x"), st.just("/opt/x")),
    st.booleans(),
)


def edge(plan: Plan) -> Boundary:
    return Boundary(plan=plan, project="/ws/p", workspace="/ws", home="/home/mel")


def judged(plan: Plan, accesses: list[Access], ignore: Ignore | None = None) -> list[Violation]:
    judge = Judge(edge(plan), ignore=ignore)
    return [v for v in map(judge.take, accesses) if v is not None]


@settings(max_examples=60, deadline=None)
@given(plans(), st.lists(ACCESSES, max_size=12).flatmap(lambda a: st.tuples(st.just(a), st.permutations(a))))
def test_the_order_of_accesses_changes_nothing_but_the_order(
    plan: Plan, both: tuple[list[Access], list[Access]]
) -> None:
    accesses, shuffled = both

    def facts(found: list[Violation]) -> set[tuple[str, str, str]]:
        return {(v.kind, v.operation, v.path) for v in found}

    first = judged(plan, accesses)
    assert facts(first) == facts(judged(plan, shuffled))
    assert len(first) == len(facts(first))
    assert judged(plan, accesses + accesses) == first


@settings(max_examples=60, deadline=None)
@given(plans(), ACCESSES)
def test_what_a_grant_covers_is_never_a_violation_and_what_is_hidden_is_never_lost(plan: Plan, access: Access) -> None:
    found = judged(plan, [access])
    reach = plan.reach(access.path)
    if reach is Reach.WRITE or not paths.at_or_under(access.path, "/ws/p") or access.intent is Intent.CONNECT:
        assert found == []
    elif reach is Reach.HIDDEN and access.exists:
        (violation,) = found
        assert (violation.kind == "write") is (access.intent in WRITES | {Intent.TIMES})
    elif reach is Reach.HIDDEN and access.intent is Intent.OPEN:
        assert len(found) == 1
    elif reach is Reach.READ and access.intent in {Intent.OPEN, Intent.EXEC, Intent.PROBE, Intent.TIMES}:
        assert found == []


@settings(max_examples=60, deadline=None)
@given(plans(), st.lists(ACCESSES, max_size=8))
def test_ignoring_every_path_of_a_kind_leaves_exactly_the_other_kind(plan: Plan, accesses: list[Access]) -> None:
    everything = judged(plan, accesses)
    named = tuple(globs.escape(a.path) for a in accesses)
    assert judged(plan, accesses, Ignore(read=named)) == [v for v in everything if v.kind == "write"]
    assert judged(plan, accesses, Ignore(write=named)) == [v for v in everything if v.kind == "read"]


@settings(max_examples=60, deadline=None)
@given(plans(), st.lists(ACCESSES, max_size=8))
def test_the_suggested_entries_would_have_let_every_violation_pass(plan: Plan, accesses: list[Access]) -> None:
    judge = Judge(edge(plan))
    found = [v for v in map(judge.take, accesses) if v is not None]
    fix = judge.fix()
    if fix is None:
        assert found == []
        return
    read = [globs.unescape(paths.normal(f"/ws/p/{entry}")) for entry in (*fix.allow.read, *fix.ignore.read)]
    write = [globs.unescape(paths.normal(f"/ws/p/{entry}")) for entry in fix.allow.write]
    for violation in found:
        if violation.path in fix.withheld:  # its grant is a person's to write, and the fix says why
            continue
        granted = write if violation.kind == "write" else read + write
        # a directory on the way to what is granted is shown for that
        assert any(paths.at_or_under(violation.path, place) or paths.under(place, violation.path) for place in granted)
