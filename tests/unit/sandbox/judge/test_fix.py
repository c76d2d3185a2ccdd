"""Fixes and hints: what is suggested, how it is spelled, and what never is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Fix, FixPaths
from sandbox.judge import path_as_entry
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.judge import Judge
from sandbox.planning.operations import Bind, Cover, Operation, Origin, ReadOnlyRoot
from sandbox.planning.path_reach import Plan
from sandbox.request.task_outputs import Declared, anchored
from sandbox.request.walls import Wall

P = "/ws/apps/shop"
IMPLIED = Origin(reason="fixture")


def boundary(
    *granted: str, project: str = P, cached: bool = False, field: str = "allowRead[0]", **more: Any
) -> Boundary:
    binds = (Bind(path=p, origin=Origin(field=field), directory=True) for p in granted)
    operations: tuple[Operation, ...] = (ReadOnlyRoot(path="/", origin=IMPLIED), Cover(path="/ws", origin=IMPLIED))
    edge = Boundary(
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
    return replace(edge, **more)


def access(intent: Intent, path: str, *, exists: bool = True) -> Access:
    return Access(pid=1, operation="openat", intent=intent, asked=path, path=path, exists=exists)


def fixed(edge: Boundary, *accesses: Access) -> Fix | None:
    judge = Judge(edge)
    for one in accesses:
        judge.take(one)
    return judge.fix()


def told(edge: Boundary, *accesses: Access, cwd: str = P, printed: str = "", explained: bool = False) -> list[str]:
    judge = Judge(edge)
    for one in accesses:
        judge.take(one)
    return [hint.line for hint in judge.hints(Aftermath(cwd=cwd, printed=printed, explained=explained))]


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
    assert path_as_entry.entry(path, boundary()) == entry
    assert path_as_entry.entry(path, boundary(), directory=True) == f"{entry}/"


def test_the_root_is_spelled_once() -> None:
    assert path_as_entry.entry("/", boundary(), directory=True) == "/"


def test_a_hidden_read_is_cured_by_its_own_name() -> None:
    fix = fixed(boundary(), access(Intent.OPEN, f"{P}/notes.md"))
    assert fix is not None
    assert (fix.allow.read, fix.allow.write) == (("notes.md",), ())
    assert (fix.inputs.files, fix.inputs.workspace_files) == ((), ())


def test_a_refused_write_is_cured_by_its_name_and_several_by_their_directory() -> None:
    one = fixed(boundary(), access(Intent.CREATE, f"{P}/gen/a.py", exists=False))
    assert one is not None
    assert one.allow.write == ("gen/a.py",)
    two = fixed(boundary(), *(access(Intent.CREATE, f"{P}/gen/{name}", exists=False) for name in ("a.py", "b.py")))
    assert two is not None
    assert two.allow.write == ("gen/",)
    root = fixed(boundary(), *(access(Intent.CREATE, f"{P}/{name}", exists=False) for name in ("a.py", "b.py")))
    assert root is not None
    assert root.allow.write == ("a.py", "b.py")


def test_a_declared_output_is_granted_as_its_directory() -> None:
    declared = Declared(own=anchored(P, ("gen/**/*.py", "*.tsbuildinfo", "dist")))
    edge = boundary(declared=declared)
    made = [access(Intent.CREATE, f"{P}/{name}", exists=False) for name in ("gen/x/a.py", "t.tsbuildinfo", "dist/a.js")]
    fix = fixed(edge, *made)
    assert fix is not None
    assert fix.allow.write == ("gen/", "dist/", "t.tsbuildinfo")


def test_where_no_name_can_be_served_the_directory_is_the_grant() -> None:
    fix = fixed(boundary(served=False), access(Intent.CREATE, f"{P}/gen/a.py", exists=False))
    assert fix is not None
    assert fix.allow.write == ("gen/",)
    root = boundary(project="/ws", served=False)
    assert fixed(root, access(Intent.CREATE, "/ws/new.txt", exists=False)) is None


def test_what_the_host_has_not_is_ignored_for_no_grant_shows_it() -> None:
    fix = fixed(boundary(), access(Intent.OPEN, f"{P}/[x].ini", exists=False))
    assert fix is not None
    assert (fix.allow.read, fix.ignore.read) == ((), ("\\[x\\].ini",))
    held = fixed(boundary(), access(Intent.OPEN, f"{P}/conf/x.ini", exists=False), access(Intent.OPEN, f"{P}/conf"))
    assert held is not None
    assert (held.allow.read, held.ignore.read) == (("conf",), ())


def test_a_look_at_a_directory_on_the_way_to_another_entry_needs_none_of_its_own() -> None:
    fix = fixed(boundary(), access(Intent.PROBE, f"{P}/conf"), access(Intent.OPEN, f"{P}/conf/real.json"))
    assert fix is not None
    assert fix.allow.read == ("conf/real.json",)
    written = fixed(boundary(), access(Intent.PROBE, f"{P}/gen"), access(Intent.CREATE, f"{P}/gen/x", exists=False))
    assert written is not None
    assert (written.allow.read, written.allow.write) == ((), ("gen/x",))


def test_a_directory_that_was_read_is_spelled_and_keyed_with_all_in_it() -> None:
    edge = boundary(cached=True, directory=lambda path: path in (f"{P}/conf", P))
    fix = fixed(edge, access(Intent.OPEN, f"{P}/conf"))
    assert fix is not None
    assert (fix.allow.read, fix.inputs.files) == (("conf/",), ("conf/**",))
    whole = fixed(edge, access(Intent.OPEN, P))
    assert whole is not None
    assert (whole.allow.read, whole.inputs.files, whole.withheld) == ((), (), (P,))


def test_a_name_of_one_run_is_ignored_by_its_pattern_where_the_task_went_on_without_it() -> None:
    made = access(Intent.CREATE, f"{P}/gen/.9f3a21.bun-build", exists=False)
    fix = fixed(boundary(), made)
    assert fix is not None
    assert (fix.allow.write, fix.ignore.write) == ((), ("gen/*.bun-build",))
    judge = Judge(boundary())
    judge.take(made)
    failed = judge.fix(survived=False)
    assert failed is not None
    assert (failed.allow.write, failed.ignore.write) == (("gen/*.bun-build",), ())
    without_names = Judge(boundary(served=False))
    without_names.take(made)
    whole = without_names.fix(survived=False)
    assert whole is not None
    assert (whole.allow.write, whole.ignore.write) == (("gen/",), ())
    covered = fixed(boundary(), access(Intent.MKDIR, f"{P}/gen", exists=False), made)
    assert covered is not None
    assert (covered.allow.write, covered.ignore.write) == (("gen",), ())


@pytest.mark.parametrize(
    ("name", "beside", "written"),
    [
        (
            "x.config.ts.timestamp-1796130864091-1ce568175802.mjs",
            ("x.config.ts", "vx.toml"),
            "x.config.ts.timestamp-*.mjs",
        ),
        ("sedO4uke2", ("a.json", "src", "sediment.md"), "sed??????"),
        ("sedO4uke2", ("sedQ8xPz1",), "sed??????"),
        ("1ce568175802.json", ("notes.md",), "*.json"),
        ("1ce568175802.json", ("package.json", "notes.md"), ""),
        ("sedO4uke2", ("sed-notes",), ""),
        ("tmp-4711.md", ("tmp-readme.md",), ""),
    ],
)
@pytest.mark.parametrize("intent", [Intent.CREATE, Intent.MKDIR])
def test_a_name_of_one_run_is_granted_by_a_pattern_that_opens_nothing_else(
    name: str, beside: tuple[str, ...], written: str, intent: Intent
) -> None:
    judge = Judge(boundary(names=lambda place: beside if place == P else ()))
    judge.take(access(intent, f"{P}/{name}", exists=False))
    fix = judge.fix(survived=False)
    assert fix is not None
    assert fix.allow.write == ((written,) if written else ())
    assert [one.target for one in fix.by_hand] == ([] if written else [f"{P}/{name}"])
    (hint,) = judge.hints(Aftermath(cwd=P, survived=False))
    assert f'"{written}"' in hint.line if written else fix.by_hand[0].reason in hint.line


@pytest.mark.parametrize(
    ("others", "written"),
    [((), ("f*.txt",)), (("f99.txt", "a.txt"), ("f*.txt",)), (("f.notes.txt",), tuple(f"f{n}.txt" for n in range(12)))],
)
def test_many_names_that_differ_in_a_number_are_one_pattern(others: tuple[str, ...], written: tuple[str, ...]) -> None:
    names = tuple(f"f{number}.txt" for number in range(12))
    edge = boundary(names=lambda place: (*names, *others) if place == P else ())
    read = fixed(edge, *(access(Intent.OPEN, f"{P}/{name}") for name in names))
    assert read is not None
    assert read.allow.read == written
    made = fixed(edge, *(access(Intent.WRITE, f"{P}/{name}") for name in names))
    assert made is not None
    assert made.allow.write == written
    keyed = fixed(replace(edge, cached=True), *(access(Intent.OPEN, f"{P}/{name}") for name in names))
    assert keyed is not None
    assert keyed.inputs.files == written
    few = fixed(edge, *(access(Intent.OPEN, f"{P}/{name}") for name in names[:6]))
    assert few is not None
    assert few.allow.read == names[:6]


def test_an_output_of_another_task_is_never_granted_for_writing() -> None:
    declared = Declared(upstream=(("libs/money#build", anchored("/ws/libs/money", ("dist/**",))),))
    edge = boundary(declared=declared, withheld=("/ws/libs/money/dist",))
    written = access(Intent.WRITE, "/ws/libs/money/dist/a.js")
    missing = access(Intent.OPEN, "/ws/libs/money/dist/b.js", exists=False)
    assert fixed(edge, written, missing) is None
    assert [hint for hint in told(edge, written) if "libs/money#build: run that task" in hint]
    assert [hint for hint in told(edge, missing) if "libs/money#build, which has not made it: run it" in hint]


def test_a_change_to_the_project_directory_itself_never_asks_for_what_is_above_it() -> None:
    fix = fixed(boundary(), access(Intent.ATTRIBUTES, P))
    assert fix is not None
    assert (fix.allow.write, fix.withheld) == ((), (P,))


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
    assert (fix.allow.read, fix.allow.write) == (("conf",), ("gen",))


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


@pytest.mark.parametrize(
    ("path", "inputs"),
    [
        ("notes.md", ("**",)),
        ("notes.md", ("*.md", "other")),
        ("notes.md", ("notes.md",)),
        ("conf/a.json", ("conf",)),
        ("conf", ("**", "!*.log")),
        ("conf", ("conf/**",)),
        ("conf", ("conf",)),
    ],
)
def test_what_the_key_holds_is_not_keyed_again(path: str, inputs: tuple[str, ...]) -> None:
    declared = Declared(inputs=anchored(P, inputs))
    edge = boundary(cached=True, declared=declared, directory=lambda place: place == f"{P}/conf")
    fix = fixed(edge, access(Intent.OPEN, f"{P}/{path}"))
    assert fix is not None
    assert (len(fix.allow.read), fix.inputs.files) == (1, ())


@pytest.mark.parametrize(
    ("path", "inputs"),
    [
        ("notes.md", ("src/**", "*.ts")),
        ("notes.md", ("**", "!*.md")),
        ("conf", ("conf/*",)),
        ("conf", ("**/*.json",)),
        ("conf", ("**", "!conf/**")),
    ],
)
def test_what_the_key_holds_in_part_alone_is_keyed(path: str, inputs: tuple[str, ...]) -> None:
    declared = Declared(inputs=anchored(P, inputs))
    edge = boundary(cached=True, declared=declared, directory=lambda place: place == f"{P}/conf")
    fix = fixed(edge, access(Intent.OPEN, f"{P}/{path}"))
    assert fix is not None
    assert len(fix.inputs.files) == 1


def test_a_hint_names_no_input_that_the_key_holds() -> None:
    declared = Declared(inputs=anchored("/ws", ("*.toml",)))
    outside = access(Intent.OPEN, "/ws/base.toml")
    (bare,) = told(boundary(P, cached=True, declared=declared), outside)
    assert "inputs" not in bare
    (keyed,) = told(boundary(P, cached=True), outside)
    assert 'cache.inputs.workspaceFiles = ["base.toml"]' in keyed


def test_a_write_in_a_closed_wall_has_no_entry_and_one_beside_walls_has_its_name() -> None:
    edge = boundary(project="/ws")
    beside = fixed(edge, access(Intent.CREATE, "/ws/new.txt", exists=False))
    assert beside is not None
    assert beside.allow.write == ("new.txt",)
    assert fixed(edge, access(Intent.CREATE, "/ws/.vx/cache/k/x", exists=False)) is None
    whole = fixed(edge, access(Intent.ATTRIBUTES, "/ws"))
    assert whole is not None
    assert (whole.allow, whole.withheld) == (FixPaths(), ("/ws",))
    inside = fixed(edge, access(Intent.CREATE, "/ws/sub/kit/gen/x", exists=False))
    assert inside is not None
    assert inside.allow.write == ("sub/kit/gen/x",)


def test_a_credential_store_is_withheld() -> None:
    edge = boundary(project="/home/mel")
    hidden = Plan(operations=(Cover(path="/", origin=IMPLIED),), workspace="/ws", project="/home/mel")
    edge = Boundary(plan=hidden, project=edge.project, workspace="/ws", home="/home/mel", stores=edge.stores)
    fix = fixed(edge, access(Intent.OPEN, "/home/mel/.ssh/id"), access(Intent.OPEN, "/home/mel/x"))
    assert fix is not None
    assert (fix.allow.read, fix.withheld) == (("~/x",), ("/home/mel/.ssh/id",))
    alone = fixed(edge, access(Intent.OPEN, "/home/mel/.ssh/id"))
    assert alone is not None
    assert (alone.allow, alone.withheld) == (FixPaths(), ("/home/mel/.ssh/id",))
    assert "holds credentials" in alone.by_hand[0].reason


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
    assert told(boundary(P, directory=lambda _path: True), access(Intent.PROBE, "/ws/libs")) == []
    assert told(boundary(P), access(Intent.PROBE, "/opt/base.toml")) == []


def test_what_was_looked_for_is_told_as_what_was_opened_since_the_kernel_keeps_the_first_answer() -> None:
    for intent in (Intent.PROBE, Intent.OPEN):
        (note,) = told(boundary(P), access(intent, "/ws/base.toml"))
        assert 'allow.read = ["../../base.toml"]' in note


@pytest.mark.parametrize("intent", [Intent.PROBE, Intent.OPEN])
def test_what_the_notes_of_a_failed_command_name_the_fix_has_or_says_why_not(intent: Intent) -> None:
    edge = boundary(P, cached=True, directory=lambda path: path == "/ws/libs")
    judge = Judge(edge)
    for path in ("/ws/libs", "/ws/base.toml", "/ws/.env", "/ws/pnpm.yaml"):
        judge.take(access(intent, path))
    after = Aftermath(cwd=P)
    fix = judge.fix(survived=False, beside=judge.beside(after))
    assert fix is not None
    assert fix.allow.read == ("../../base.toml", "../../pnpm.yaml")
    assert fix.inputs.workspace_files == ("base.toml", "pnpm.yaml")
    assert [one.target for one in fix.by_hand] == ["/ws/.env"]
    assert any('"../../base.toml"' in hint.line for hint in judge.hints(after))


def test_what_the_notes_name_and_the_fix_leaves_to_a_person_has_its_reason() -> None:
    judge = Judge(boundary(P))
    judge.take(access(Intent.CREATE, "/opt/cache/x", exists=False))
    judge.take(access(Intent.PROBE, "/ws/.git"))
    after = Aftermath(cwd=P)
    fix = judge.fix(survived=False, beside=judge.beside(after))
    assert fix is not None
    assert (fix.allow, fix.ignore) == (FixPaths(), FixPaths())
    assert [one.target for one in fix.by_hand] == ["/opt/cache/x", "/ws/.git"]
    noted = " ".join(hint.line for hint in judge.hints(after))
    for one, entry in zip(fix.by_hand, ('"/opt/cache/"', '"../../.git"'), strict=True):
        assert entry in one.remedy
        assert entry in noted


def test_a_directory_outside_is_granted_where_no_file_was_looked_for() -> None:
    judge = Judge(boundary(P, directory=lambda path: path == "/ws/libs"))
    judge.take(access(Intent.OPEN, "/ws/libs"))
    fix = judge.fix(survived=False, beside=judge.beside(Aftermath(cwd=P)))
    assert fix is not None
    assert fix.allow.read == ("../../libs/",)


def test_what_lies_outside_is_no_reason_where_the_command_passed_by_itself() -> None:
    judge = Judge(boundary(P))
    judge.take(access(Intent.OPEN, "/ws/base.toml"))
    judge.take(access(Intent.CREATE, f"{P}/x", exists=False))
    after = Aftermath(cwd=P, survived=True)
    fix = judge.fix(survived=True, beside=judge.beside(after))
    assert fix is not None
    assert (fix.allow.read, fix.allow.write) == ((), ("x",))
    assert judge.hints(after) == ()


def test_a_path_that_the_command_calls_missing_is_granted_as_the_note_says() -> None:
    judge = Judge(boundary())
    after = Aftermath(
        cwd=P, printed="tool: cannot open '../../conf/x.json'", exists=lambda path: path == "/ws/conf/x.json"
    )
    fix = judge.fix(survived=False, beside=judge.beside(after))
    assert fix is not None
    assert fix.allow.read == ("../../conf/x.json",)
    (hint,) = judge.hints(after)
    assert 'allow.read = ["../../conf/x.json"]' in hint.line


def test_a_suggestion_is_a_string_of_the_configs_language() -> None:
    (note,) = told(boundary(P), access(Intent.OPEN, '/ws/it"s\x7f.toml'))
    literal = note.partition("[")[2].partition("]")[0]
    assert json.loads(literal) == '../../it"s\x7f.toml'
    assert "\x7f" not in note


@pytest.mark.parametrize(
    ("path", "grant"),
    [("/opt/cache/x", "/opt/cache/"), ("/home/mel/.toolcache/x", "~/.toolcache/"), ("/ws/q/o", "../../q/")],
)
def test_a_refused_write_outside_names_its_directory(path: str, grant: str) -> None:
    (note,) = told(boundary(P), access(Intent.CREATE, path, exists=False))
    assert path in note
    assert f'"{grant}"' in note


def test_a_refused_write_at_the_root_is_granted_by_a_name_that_something_has() -> None:
    (there,) = told(boundary(P), access(Intent.WRITE, "/ws/o"))
    assert '"../../o"' in there
    (new,) = told(boundary(P), access(Intent.CREATE, "/ws/o", exists=False))
    assert "allow" not in new


@pytest.mark.parametrize("path", ["/usr/local/lib/x.so", "/etc/x.conf", "/var/lib/x/y", "/x", "/nix/store/x"])
@pytest.mark.parametrize("exists", [True, False])
def test_no_grant_of_a_place_of_the_system_is_suggested(path: str, exists: bool) -> None:
    notes = told(boundary(P), access(Intent.WRITE if exists else Intent.CREATE, path, exists=exists))
    assert notes
    assert not any("allow.write" in note for note in notes)


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
    notes = told(boundary(*granted, field=field), printed="No tests found")
    assert [P in note and '["."]' in note for note in notes] == [True] * noted


def test_the_working_directory_is_not_blamed_beside_a_denial() -> None:
    assert told(boundary(), access(Intent.OPEN, f"{P}/notes.md"), printed="No tests found") == []
    assert told(boundary(), cwd="/usr", printed="No tests found") == []


def test_the_working_directory_is_blamed_alone_and_where_something_was_missed() -> None:
    assert told(boundary(), printed="AssertionError: 1 != 2") == []
    (outside,) = told(boundary(), access(Intent.OPEN, "/ws/base.toml"), printed="No tests found")
    assert '["."]' not in outside


def test_the_working_directory_is_not_blamed_where_the_way_a_command_ended_says_why() -> None:
    for explained in (False, True):
        notes = told(boundary(), explained=explained, printed="No tests found")
        assert any('["."]' in note for note in notes) is not explained


def test_a_directory_that_a_written_entry_makes_is_not_ignored_as_well() -> None:
    looked = access(Intent.OPEN, f"{P}/fresh", exists=False)
    alone = fixed(boundary(), looked)
    assert alone is not None
    assert alone.ignore.read == ("fresh",)
    both = fixed(boundary(), looked, access(Intent.CREATE, f"{P}/fresh/in", exists=False))
    assert both is not None
    assert (both.allow.write, both.ignore.read) == (("fresh/in",), ())


def test_a_directory_that_is_to_be_made_is_granted_by_its_name() -> None:
    made = access(Intent.MKDIR, f"{P}/build", exists=False)
    inside = (access(Intent.CREATE, f"{P}/build/{name}", exists=False) for name in ("1", "2", ".9f3a21.tmp"))
    declared = boundary(declared=Declared(own=anchored(P, ("build/**",))))
    for edge in (boundary(), declared):
        for order in ((made, *inside), (*inside, made)):
            fix = fixed(edge, *order)
            assert fix is not None
            assert (fix.allow.write, fix.ignore.write) == (("build",), ())
    there = fixed(boundary(), access(Intent.MKDIR, f"{P}/build"))
    assert there is not None
    assert there.allow.write == ("build/",)
    unserved = fixed(boundary(served=False), made)
    assert unserved is not None
    assert unserved.allow.write == ("build/",)
    (outside,) = told(boundary(P), access(Intent.MKDIR, "/opt/build", exists=False))
    assert 'allow.write = ["/opt/build/"]' in outside  # outside the project a name is granted where something has it


@pytest.mark.parametrize("name", [".bashrc", ".vscode", "sub/.idea/x", ".git/hooks/pre-commit"])
def test_a_name_other_programs_execute_is_never_suggested(name: str) -> None:
    made = access(Intent.CREATE, f"{P}/{name}", exists=False)
    judge = Judge(boundary())
    violation = judge.take(made)
    assert violation is not None
    fix = judge.fix()
    assert fix is not None
    assert (violation.class_, fix.allow, fix.withheld) == ("tool-fault", FixPaths(), (made.path,))
    assert "is a name other programs execute" in violation.line
    assert "no grant allows it" in fix.by_hand[0].remedy


def test_a_failed_task_is_told_of_the_wall_it_met() -> None:
    looks = access(Intent.PROBE, "/ws/.git"), access(Intent.PROBE, "/ws/.git/HEAD")
    assert told(boundary(P), *looks, printed="2 tests failed") == []
    (note,) = told(boundary(P), *looks, printed="error: git is needed to tell the version")
    assert "/ws/.git is walled off (the repository's data)" in note
    assert '"../../.git"' in note
