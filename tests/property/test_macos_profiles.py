"""Profiles as text, evaluated, against what the plans of both systems answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract.config import Reach
from sandbox.contract.errors import RequestRefused
from sandbox.planning.linux_plan import plan as linux_plan
from sandbox.planning.macos.plan_of_request import plan as mac_plan
from sandbox.planning.macos.profile_rules import At, Expression
from sandbox.planning.macos.profile_text import text
from tests.property.strategies import FACTS, HOME, TEMP_ROOT, WORKSPACE, Case, below, cases
from tests.support.memory_files import MemoryFiles
from tests.support.plans import request
from tests.support.seatbelt import Profile

if TYPE_CHECKING:
    from sandbox.planning.macos.macos_path_reach import MacPlan
    from sandbox.planning.macos.profile_rules import Filter
    from sandbox.planning.path_reach import Plan
    from sandbox.request.request import Request

#: Worlds; some 30 paths are asked about in each with every operation, some 200 of `access()`, so over 10,000 in all,
#: and over 100 of both plans.
_CASES = 30
_OPERATIONS = (
    "process-exec",
    "file-read-data",
    "file-read-metadata",
    "file-write-data",
    "file-write-create",
    "file-write-unlink",
)
_INSIDE = tuple(
    "/".join((WORKSPACE, *names))
    for depth in range(1, 4)
    for names in itertools.product(("a", "b", "c", ".d"), repeat=depth)
)
_EVERYWHERE = tuple(
    "/".join((WORKSPACE, *names))
    for depth in range(1, 4)
    for names in itertools.product(("a", "b", "c", ".d", "new", "B"), repeat=depth)
)
_ELSEWHERE = ("/", HOME, "/etc", "/etc/hosts", "/home", f"{HOME}/.ssh/new", f"{HOME}/notes", f"{TEMP_ROOT}/mine/new")


@st.composite
def granted(draw: st.DrawFn) -> Case:
    """A workspace with grants of directories, names and patterns; some are refused."""
    case = draw(cases())
    named = draw(st.lists(below(case.given["project"]), max_size=2))
    patterns = [f"{draw(below(WORKSPACE))}/{tail}" for tail in draw(st.lists(st.sampled_from(_WILD), max_size=1))]
    case.given["write"] = (*case.given["write"], *named, *patterns)
    return case


_WILD = ("*", "?", "**/a", "*/b", "[ab]", "[!a]", "{a,b}*", "*/")


def _plans(case: Case) -> tuple[Request, Plan, MacPlan]:
    """Both plans of one request; what one refuses the other does."""
    given = dict(case.given)
    temp = given.pop("temp")
    try:
        asked = request(case.files, **given)
        linux = linux_plan(asked, case.files, temp=temp)
    except RequestRefused:
        assume(False)
        raise
    return asked, linux, mac_plan(asked, case.files, temp=temp)


def _places(files: MemoryFiles, inside: tuple[str, ...] = _INSIDE[::9]) -> list[str]:
    new = [f"{path}/new" for path, kind in files.kinds.items() if kind is Kind.DIRECTORY and path != "/"]
    return sorted({*files.kinds, *new, *_ELSEWHERE, *inside})


@settings(max_examples=_CASES)
@given(granted())
def test_a_profile_answers_as_its_plan_does_whichever_way_rules_of_one_operation_are_ranked(case: Case) -> None:
    _, _, plan = _plans(case)
    profile = Profile.of(text(plan))
    for path in _places(case.files):
        if case.files.kind(path) is Kind.LINK:
            continue
        directory = case.files.kind(path) is Kind.DIRECTORY
        for operation in _OPERATIONS:
            wanted = plan.allows(operation, path, directory=directory)
            for by_operation in (False, True):
                found = profile.allows(operation, path, directory=directory, by_operation=by_operation)
                assert found is wanted, (operation, path)
        if not directory:
            # what may not be read is not executed either
            reads = profile.allows("file-read-data", path)
            assert profile.allows("process-exec", path) is reads or path.startswith("/dev/"), path
        reach = plan.reach(path, directory=directory)
        assert (reach is Reach.HIDDEN) is not profile.allows("file-read-metadata", path, directory=directory), path
        assert (reach is Reach.WRITE) is profile.allows("file-write-data", path, directory=directory), path


@settings(max_examples=_CASES)
@given(granted())
def test_a_profile_agrees_with_access_about_over_ten_thousand_places(case: Case) -> None:
    _, _, plan = _plans(case)
    profile = Profile.of(text(plan))
    made = {one.path for one in plan.makes}
    for path in (*_EVERYWHERE, *_ELSEWHERE):
        if any(case.files.kind(place) is Kind.LINK for place in (path, *paths.parents(path))):
            # the kernel asks about where it leads
            continue
        kind = case.files.kind(path)
        directory = kind is Kind.DIRECTORY or (kind is None and any(paths.at_or_under(one, path) for one in made))
        found = Reach.HIDDEN
        if profile.allows("file-write-data", path, directory=directory):
            found = Reach.WRITE
        elif profile.allows("file-read-metadata", path, directory=directory):
            found = Reach.READ
        assert found is plan.access(path, case.files), path


def _case(*names: str, nested: tuple[str, ...] = (), links: dict[str, str] | None = None, **given: Any) -> Case:
    there = {f"{WORKSPACE}/{place}": text for place, text in (links or {}).items()}
    files = MemoryFiles.of(f"{WORKSPACE}/", *(f"{WORKSPACE}/{name}" for name in names), links=there)
    asked: dict[str, Any] = {"workspace": WORKSPACE, "project": WORKSPACE, "facts": FACTS, "read": (), "write": ()}
    return Case(files, {**asked, "nested": [f"{WORKSPACE}/{name}" for name in nested], "temp": None, **given})


@settings(max_examples=_CASES)
@given(granted())
# a nested project that is gone is closed on macOS all the same: below a file, in a directory, and behind a link
@example(_case("a/b", read=(f"{WORKSPACE}/a/b",), nested=("a/b/c",)))
@example(_case("a/b", read=(f"{WORKSPACE}/a/",), nested=("a/c",)))
@example(_case(read=("/**/a",), nested=("b",), links={"a": "."}))
# a link that a pattern matches leads to what another grant opens: what is to be made, what is there, and a name
@example(_case(read=(f"{WORKSPACE}/a/**/a",), write=(f"{WORKSPACE}/b/",), links={"a/c/a": f"{WORKSPACE}/b"}))
@example(_case("b/c", read=(f"{WORKSPACE}/a/*/a", f"{WORKSPACE}/b/"), links={"a/c/a": "../../b/c"}))
@example(_case("a/c/b", read=(f"{WORKSPACE}/a/**/a",), write=(f"{WORKSPACE}/a/c/c",), links={"a/c/a": "c"}))
def test_both_systems_give_a_task_the_same(case: Case) -> None:
    asked, linux, mac = _plans(case)
    for path in _places(case.files, _INSIDE):
        there, here = linux.access(path, case.files), mac.access(path, case.files)
        there = Reach.WRITE if there is Reach.NAME else there
        if there is not here:
            difference = _difference(path, (there, here), asked, case.files, (linux, mac))
            assert difference, (path, there, here, linux.describe(), mac.describe())


def _difference(
    path: str, reaches: tuple[Reach, Reach], asked: Request, files: MemoryFiles, plans: tuple[Plan, MacPlan]
) -> str:
    """Which of the known differences this is, empty for none."""
    linux, mac = plans
    real = paths.canonical(path, files)
    kind = files.kind(real)
    if any(files.kind(place) is Kind.LINK for place in (real, *paths.parents(real))):
        return "a loop of links"
    closed = {one.path for one in (*asked.walls, *asked.stores, *asked.around)} | {TEMP_ROOT}
    if reaches == (Reach.READ, Reach.HIDDEN):
        if real in closed:
            return "the place of something closed"
        if any(paths.under(real, place) and files.kind(place) is None for place in closed):
            return "in something closed that is not there"
    if reaches == (Reach.HIDDEN, Reach.WRITE) and kind is None:
        return "in no directory that leads to a name" if _leads_nowhere(linux, paths.parent(real), files) else ""
    if reaches == (Reach.HIDDEN, Reach.READ):
        if kind is None and mac.reach(real, directory=False) is Reach.READ:
            return "made later"
        if kind is Kind.OTHER:
            return "a special file that a pattern matches"
        rule = mac.decided_by(real, "file-read-metadata")
        covering = [one for one in rule.filters if one.covers(real, directory=True)] if rule is not None else []
        if kind is Kind.DIRECTORY and covering and all(map(_only_itself, covering)):
            return "a directory on the way"
    return ""


def _leads_nowhere(linux: Plan, directory: str, files: MemoryFiles) -> bool:
    """Whether a directory is not shown on Linux, where those of patterns are once they lead to a name."""
    return linux.access(directory, files) is Reach.HIDDEN


def _only_itself(one: Filter) -> bool:
    return isinstance(one, At) or (isinstance(one, Expression) and one.only_directories)
