"""Fixes and hints: what is suggested, how it is spelled, and what never is."""

from __future__ import annotations

import json

import pytest

from sandbox.contract import Access, Fix, Intent
from sandbox.judge import spelling
from sandbox.judge.boundary import Boundary
from sandbox.judge.verdict import Judge
from sandbox.planning.model import Plan
from sandbox.planning.ops import Bind, Cover, Operation, Origin, ReadOnlyRoot
from sandbox.walls import Wall

P = "/ws/apps/shop"
IMPLIED = Origin(reason="fixture")


def boundary(*granted: str, project: str = P, cached: bool = False, field: str = "allowRead[0]") -> Boundary:
    binds = (Bind(path=p, origin=Origin(field=field), directory=True) for p in granted)
    operations: tuple[Operation, ...] = (ReadOnlyRoot(path="/", origin=IMPLIED), Cover(path="/ws", origin=IMPLIED))
    return Boundary(
        plan=Plan(operations=(*operations, *binds), workspace="/ws", project=project),
        project=project,
        workspace="/ws",
        home="/home/mel",
        temp="/tmp/vx-1/task",
        nested=("/ws/sub/kit",) if project == "/ws" else (),
        walls=(
            Wall(path="/ws/.git", reason="the repository's data"),
            Wall(path="/ws/.vx/cache", reason="the cache", closed=True),
        ),
        stores=(Wall(path="/home/mel/.ssh", reason="the credential store ~/.ssh"),),
        cached=cached,
    )


def access(intent: Intent, path: str, *, exists: bool = True) -> Access:
    return Access(pid=1, operation="openat", intent=intent, asked=path, path=path, exists=exists)


def fixed(edge: Boundary, *accesses: Access) -> Fix | None:
    judge = Judge(edge)
    for one in accesses:
        judge.take(one)
    return judge.fix()


def told(edge: Boundary, *accesses: Access, cwd: str = P) -> list[str]:
    judge = Judge(edge)
    for one in accesses:
        judge.take(one)
    return [hint.line for hint in judge.hints(cwd=cwd)]


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        (f"{P}/notes.md", "notes.md"),
        (P, "."),
        ("/ws/base.toml", "../../base.toml"),
        ("/ws/libs/money", "../../libs/money"),
        ("/ws", "../.."),
        ("/opt/x", "/opt/x"),
        ("/home/mel/.cache/x", "~/.cache/x"),
        ("/home/mel", "/home/mel"),
        ("/home/melanie/x", "/home/melanie/x"),
        (f"{P}/[old]/a*?", "\\[old\\]/a\\*\\?"),
        (f"{P}/~odd", "./~odd"),
        (f"{P}/!odd", "./!odd"),
    ],
)
def test_a_path_is_spelled_for_the_projects_file(path: str, entry: str) -> None:
    assert spelling.entry(path, boundary()) == entry
    assert spelling.entry(path, boundary(), directory=True) == f"{entry}/"


def test_the_root_is_spelled_once() -> None:
    assert spelling.entry("/", boundary(), directory=True) == "/"


def test_a_hidden_read_is_cured_by_its_own_name() -> None:
    fix = fixed(boundary(), access(Intent.OPEN, f"{P}/notes.md"))
    assert fix is not None
    assert (fix.allow.read, fix.allow.write) == (("notes.md",), ())
    assert (fix.inputs.files, fix.inputs.workspace_files) == ((), ())


def test_a_refused_write_is_cured_by_its_directory() -> None:
    fix = fixed(boundary(), access(Intent.CREATE, f"{P}/gen/a.py", exists=False))
    assert fix is not None
    assert fix.allow.write == ("gen/",)


def test_a_change_to_the_project_directory_itself_never_asks_for_what_is_above_it() -> None:
    fix = fixed(boundary(), access(Intent.ATTRIBUTES, P))
    assert fix is not None
    assert fix.allow.write == ("./",)


def test_a_directory_and_what_is_in_it_are_never_both_suggested() -> None:
    fix = fixed(
        boundary(),
        access(Intent.CREATE, f"{P}/gen/deep/a.py", exists=False),
        access(Intent.MKDIR, f"{P}/gen", exists=False),
        access(Intent.OPEN, f"{P}/gen/old.py"),
        access(Intent.OPEN, f"{P}/conf"),
        access(Intent.OPEN, f"{P}/conf/real.json"),
    )
    assert fix is not None
    assert (fix.allow.read, fix.allow.write) == (("conf",), ("gen/",))


def test_a_link_to_a_hidden_file_is_cured_by_reading_it() -> None:
    fix = fixed(boundary(), access(Intent.PROBE, f"{P}/notes.md"))
    assert fix is not None
    assert fix.allow.read == ("notes.md",)


def test_a_cached_task_is_told_the_input_besides() -> None:
    project = fixed(boundary(cached=True), access(Intent.OPEN, f"{P}/!cfg"))
    assert project is not None
    assert (project.inputs.files, project.inputs.workspace_files) == (("\\!cfg",), ())
    nested = fixed(boundary(project="/ws", cached=True), access(Intent.OPEN, "/ws/sub/kit/x"))
    assert nested is not None
    assert (nested.inputs.files, nested.inputs.workspace_files) == ((), ("sub/kit/x",))


def test_a_write_whose_directory_holds_a_wall_has_no_entry() -> None:
    edge = boundary(project="/ws")
    assert fixed(edge, access(Intent.CREATE, "/ws/new.txt", exists=False)) is None
    assert fixed(edge, access(Intent.CREATE, "/ws/.vx/cache/k/x", exists=False)) is None
    inside = fixed(edge, access(Intent.CREATE, "/ws/sub/kit/gen/x", exists=False))
    assert inside is not None
    assert inside.allow.write == ("sub/kit/gen/",)


def test_a_credential_store_is_withheld() -> None:
    edge = boundary(project="/home/mel")
    hidden = Plan(operations=(Cover(path="/", origin=IMPLIED),), workspace="/ws", project="/home/mel")
    edge = Boundary(plan=hidden, project=edge.project, workspace="/ws", home="/home/mel", stores=edge.stores)
    fix = fixed(edge, access(Intent.OPEN, "/home/mel/.ssh/id"), access(Intent.OPEN, "/home/mel/x"))
    assert fix is not None
    assert (fix.allow.read, fix.withheld) == (("~/x",), ("/home/mel/.ssh/id",))
    assert fixed(edge, access(Intent.OPEN, "/home/mel/.ssh/id")) is None


def test_nothing_curable_is_no_fix() -> None:
    assert fixed(boundary()) is None
    assert fixed(boundary(), access(Intent.OPEN, "/ws/base.toml")) is None
    assert fixed(boundary(), access(Intent.OPEN, f"{P}/\udcff")) is None


def test_a_file_outside_the_project_is_named_with_its_grant() -> None:
    (note,) = told(boundary(P), access(Intent.OPEN, "/ws/base.toml"))
    assert "/ws/base.toml" in note
    assert '"../../base.toml"' in note


def test_a_file_the_host_has_not_or_that_was_only_looked_for_gives_no_note() -> None:
    assert told(boundary(P), access(Intent.OPEN, "/ws/nope.toml", exists=False)) == []
    assert told(boundary(P), access(Intent.PROBE, "/ws/base.toml")) == []


def test_a_suggestion_is_a_string_of_the_configs_language() -> None:
    (note,) = told(boundary(P), access(Intent.OPEN, '/ws/it"s\x7f.toml'))
    literal = note.partition("[")[2].partition("]")[0]
    assert json.loads(literal) == '../../it"s\x7f.toml'
    assert "\x7f" not in note


@pytest.mark.parametrize(
    ("path", "grant"),
    [("/opt/cache/x", "/opt/cache/"), ("/home/mel/.toolcache/x", "~/.toolcache/"), ("/ws/o", "../../")],
)
def test_a_refused_write_outside_names_its_directory(path: str, grant: str) -> None:
    (note,) = told(boundary(P), access(Intent.CREATE, path, exists=False))
    assert path in note
    assert f'"{grant}"' in note


def test_five_refused_writes_are_named_and_the_rest_counted() -> None:
    (note,) = told(boundary(P), *(access(Intent.CREATE, f"/opt/c/{i}", exists=False) for i in (*range(7), 0)))
    assert "/opt/c/4" in note
    assert "/opt/c/5" not in note
    assert "and 2 more" in note


@pytest.mark.parametrize("path", ["/dev/x", "/proc/x", "/sys/x", "/tmp/vx-1/task/x"])
def test_writes_nobody_can_grant_are_left_out(path: str) -> None:
    assert told(boundary(P), access(Intent.CREATE, path, exists=False)) == []


@pytest.mark.parametrize(
    ("granted", "field", "noted"),
    [
        ((), "allowRead[0]", True),
        ((P,), "allowRead[0]", False),
        ((f"{P}/lib",), "allowRead[0]", False),
        (("/ws/apps",), "allowRead[0]", False),
        ((f"{P}per",), "allowRead[0]", True),
        ((f"{P}/node_modules",), "", True),
    ],
)
def test_an_unreadable_working_directory_is_named(granted: tuple[str, ...], field: str, noted: bool) -> None:
    notes = told(boundary(*granted, field=field))
    assert [P in note and '["."]' in note for note in notes] == [True] * noted


def test_the_working_directory_is_not_blamed_beside_a_denial() -> None:
    assert told(boundary(), access(Intent.OPEN, f"{P}/notes.md")) == []
    assert told(boundary(), cwd="/usr") == []


def test_a_failed_task_is_told_of_the_wall_it_met() -> None:
    (note,) = told(boundary(P), access(Intent.PROBE, "/ws/.git"), access(Intent.PROBE, "/ws/.git/HEAD"))
    assert "/ws/.git is walled off (the repository's data)" in note
    assert '"../../.git"' in note
