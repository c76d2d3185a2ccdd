"""Plans where nothing serves granted names: which directories are held, what is laid over, what is refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.config import Reach
from sandbox.contract.errors import RequestRefused
from sandbox.planning import linux_plan
from sandbox.planning.operations import Absent, Bind, Cover, Held, Link, Make, Names, Seal
from tests.support.memory_files import MemoryFiles as Memory
from tests.support.plans import FACTS, request

if TYPE_CHECKING:
    from sandbox.planning.path_reach import Plan

SHOP = "/ws/apps/shop"


def planned(files: Memory, **given: object) -> Plan:
    return linux_plan.plan(request(files, **given), files, served=False)  # type: ignore[arg-type]


def of_kind(plan: Plan, kind: type[object]) -> list[str]:
    return [one.path for one in plan.operations if type(one) is kind]


@pytest.fixture
def files() -> Memory:
    tree = {
        f"{SHOP}/lib/cart.py": "cart",
        f"{SHOP}/notes.md": "notes",
        f"{SHOP}/gen/old.py": "old",
        f"{SHOP}/gen/keep.txt": "kept",
        f"{SHOP}/gen/deep/x.py": "x",
        f"{SHOP}/gen/other/y.txt": "y",
    }
    return Memory.of(texts=tree, links={f"{SHOP}/alias": "notes.md"})


def test_what_lies_beside_a_name_is_laid_over_or_refused_at_the_call(files: Memory) -> None:
    plan = planned(files, write=(f"{SHOP}/out.txt",))
    assert plan.held == (SHOP,)
    assert of_kind(plan, Absent) == [f"{SHOP}/{name}" for name in ("alias", "gen", "lib", "notes.md")]
    over = {one.path.rpartition("/")[2]: one.laid_over for one in plan.operations if isinstance(one, Absent)}
    assert over == {"alias": False, "gen": True, "lib": True, "notes.md": True}
    assert plan.reach(f"{SHOP}/out.txt/whatever") is Reach.NAME
    assert plan.reach(f"{SHOP}/notes.md") is Reach.HIDDEN
    assert plan.reach(f"{SHOP}/made-later") is Reach.HIDDEN
    assert plan.beside(f"{SHOP}/made-later")
    assert not plan.beside(f"{SHOP}/notes.md")
    assert plan.access(f"{SHOP}/alias", files) is Reach.HIDDEN


def test_what_may_be_read_beside_a_name_is_bound_over_it_read_only(files: Memory) -> None:
    plan = planned(files, read=(f"{SHOP}/",), write=(f"{SHOP}/out.txt", f"{SHOP}/lib/"))
    bound = {one.path: one.writable for one in plan.operations if type(one) is Bind}
    assert bound == {f"{SHOP}/gen": False, f"{SHOP}/lib": True, f"{SHOP}/notes.md": False}
    assert of_kind(plan, Link) == [f"{SHOP}/alias"]
    assert plan.access(f"{SHOP}/alias", files) is Reach.READ


def test_a_pattern_holds_its_head_and_where_it_matches_now(files: Memory) -> None:
    plan = planned(files, write=(f"{SHOP}/gen/**/*.py",))
    assert plan.held == (f"{SHOP}/gen", f"{SHOP}/gen/deep")
    assert of_kind(plan, Absent) == [f"{SHOP}/gen/keep.txt", f"{SHOP}/gen/other"]
    assert plan.reach(f"{SHOP}/gen/deep/new.py") is Reach.NAME
    assert plan.reach(f"{SHOP}/gen/other/new.py") is Reach.HIDDEN
    assert plan.leads(f"{SHOP}/gen/new")


def test_what_is_executed_in_a_granted_directory_is_pinned(files: Memory) -> None:
    files = Memory.of(texts={f"{SHOP}/dist/.vscode/tasks.json": "{}"})
    plan = planned(files, write=(f"{SHOP}/dist",))
    bound = {one.path: one.writable for one in plan.operations if type(one) is Bind}
    assert bound == {f"{SHOP}/dist": True, f"{SHOP}/dist/.vscode": False}


def test_walls_are_laid_over_and_a_missing_cache_is_made_first() -> None:
    files = Memory.of(texts={"/ws/.git/HEAD": "ref", "/ws/src/x": "x"})
    plan = planned(files, project="/ws", read=("/ws/",), write=("/ws/out.txt",))
    assert plan.held == ("/ws",)
    assert of_kind(plan, Make) == ["/ws/.vx"]
    assert "/ws/.git" in of_kind(plan, Absent)
    # what is in there is read, but for its walls
    assert "/ws/.vx" in (*of_kind(plan, Absent), *of_kind(plan, Bind), *of_kind(plan, Cover))


@pytest.mark.parametrize(
    ("project", "links", "nested", "grant", "said"),
    [
        ("/ws", {"/ws/.git": "elsewhere"}, (), "/ws/out.txt", "holds the link to the repository's data /ws/.git"),
        ("/ws", {}, ("/ws/kit",), "/ws/kit/out.txt", "is the nested project /ws/kit"),
        ("/ws", {}, ("/ws/kit",), "/ws/kit/gen/*.py", "is in the nested project /ws/kit"),
    ],
)
def test_a_directory_that_cannot_be_held_is_refused_with_the_other_spelling(
    project: str, links: dict[str, str], nested: tuple[str, ...], grant: str, said: str
) -> None:
    files = Memory.of(texts={"/ws/kit/gen/a.py": "a", "/ws/elsewhere/HEAD": "ref"}, links=links)
    with pytest.raises(RequestRefused) as caught:
        planned(files, project=project, write=(grant,), nested=nested)
    refusal = caught.value.refusals[0]
    assert said in refusal.message
    assert refusal.field == "allowWrite[0]"
    assert "/dev/fuse" in refusal.hint
    # served it can be given
    linux_plan.plan(request(files, project=project, write=(grant,), nested=nested), files)


def test_a_directory_of_too_many_entries_is_refused() -> None:
    files = Memory.of(texts={f"{SHOP}/{n}": "" for n in range(2_001)})
    with pytest.raises(RequestRefused, match="more than 2000 entries"):
        planned(files, write=(f"{SHOP}/out.txt",))


def test_without_names_nothing_is_held(files: Memory) -> None:
    given = request(files, read=(f"{SHOP}/",), write=(f"{SHOP}/lib/",))
    assert linux_plan.plan(given, files, served=False) == linux_plan.plan(given, files)
    assert not of_kind(planned(files, write=(f"{SHOP}/gen/", f"{SHOP}/gen/*.py")), Held)


def test_patterns_stay_in_the_plan_for_the_judge(files: Memory) -> None:
    assert of_kind(planned(files, write=(f"{SHOP}/gen/*.py",)), Names) == [f"{SHOP}/gen"]


def test_the_systems_secrets_are_laid_over_until_a_grant_names_one(files: Memory) -> None:
    facts = dataclasses.replace(FACTS, secrets=("/etc/shadow",))
    files = Memory.of(texts={"/etc/shadow": "root:x", "/etc/passwd": "root", f"{SHOP}/x": ""})
    plan = linux_plan.plan(request(files, facts=facts), files)
    assert of_kind(plan, Seal) == ["/etc/shadow"]
    assert (plan.reach("/etc/shadow"), plan.reach("/etc/passwd")) == (Reach.HIDDEN, Reach.READ)
    assert of_kind(linux_plan.plan(request(files, facts=facts, read=("/etc/",)), files), Seal) == ["/etc/shadow"]
    assert of_kind(linux_plan.plan(request(files, facts=facts, read=("/etc/shadow",)), files), Seal) == []
