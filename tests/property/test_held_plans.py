"""Laws of plans whose granted names nothing serves, beside the same plans where something does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, event, given
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.contract.errors import RequestRefused
from sandbox.planning import linux_plan
from sandbox.planning.operations import Absent, Bind, Cover, Held, Link
from tests.property.strategies import Case, cases
from tests.support.plans import request

if TYPE_CHECKING:
    from sandbox.planning.path_reach import Plan

_ORDER = [Reach.HIDDEN, Reach.READ, Reach.NAME, Reach.WRITE]


@st.composite
def named(draw: st.DrawFn) -> Case:
    """A case with some names granted as well."""
    case = draw(cases())
    project = case.given["project"]
    inside = sorted(path for path in case.files.kinds if paths.under(path, project))
    literal = st.sampled_from([*inside, f"{project}/out.txt", f"{project}/new/out"]).map(globs.escape)
    pattern = st.sampled_from(["*", "**/a", "*/b", "**/*a*", "gen/*.py"]).map(
        lambda tail: f"{globs.escape(project)}/{tail}"
    )
    names = draw(st.lists(literal | pattern, min_size=1, max_size=3))
    return Case(case.files, case.but(write=(*case.given["write"], *names)))


def plans(case: Case) -> tuple[Plan, Plan]:
    """The plan as it is served and as it is held."""
    try:
        asked = dict(case.given)
        temp = asked.pop("temp", None)
        given = request(case.files, **asked)
        return linux_plan.plan(given, case.files, temp=temp), linux_plan.plan(
            given, case.files, temp=temp, served=False
        )
    except RequestRefused:
        assume(condition=False)
        raise


@given(named())
def test_holding_opens_nothing_that_serving_would_not(case: Case) -> None:
    served, held = plans(case)
    for path in case.files.kinds:
        less, more = held.reach(path), served.reach(path)
        if case.files.kind(path) is Kind.OTHER:
            # a directory whose entries are placed one by one shows no sockets, one that is bound whole does
            continue
        if more is Reach.HIDDEN and (path in held.held or served.is_way(path, case.files)):
            more = Reach.READ  # the directory alone, on the way to what a pattern grants
        # a granted directory with what others execute in it is a mount
        assert _ORDER.index(less) <= _ORDER.index(more) or (less, more) == (Reach.WRITE, Reach.NAME), path
        event(f"{more.value} is {less.value}")


@given(named())
def test_everything_in_a_held_directory_is_granted_or_kept(case: Case) -> None:
    _, held = plans(case)
    placed = {operation.path: operation for operation in held.operations if not isinstance(operation, Held)}
    for directory in held.held:
        for name in case.files.entries(directory):
            path = paths.join(directory, name)
            if held.granted.granted(path) or path in held.held:
                continue
            operation = placed[path]
            assert isinstance(operation, (Absent, Bind, Cover, Link)), operation
            if case.files.kind(path) is Kind.LINK:
                # over a link nothing can be laid
                assert isinstance(operation, Link) or (isinstance(operation, Absent) and not operation.laid_over)


@given(named())
def test_a_directory_is_held_where_a_name_is_granted_and_nowhere_else(case: Case) -> None:
    served, held = plans(case)
    assert served.held == ()
    assert bool(held.held) is bool(held.granted)
    for directory in held.held:
        assert held.granted.stages(directory) or held.granted.leads(directory)
        assert held.reach(directory) is Reach.READ
