"""Rules of the judge over the workspace of the fixtures: /ws with the projects apps/shop and libs/money."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.contract.config import Ignore
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, FixPaths, Violation
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.judge import Judge
from sandbox.planning.operations import Bind, Cover, Empty, Operation, Origin, ReadOnlyRoot, Seal, Way
from sandbox.planning.path_reach import Plan
from sandbox.request.linked_packages import Withheld
from sandbox.request.walls import Wall

P = "/ws/apps/shop"
GRANT = Origin(field="allowRead[0]")
MADE = Origin(reason="on the way to a grant")


def plan(
    *, read: tuple[str, ...] = (), write: tuple[str, ...] = (), project: str = P, files: tuple[str, ...] = ()
) -> Plan:
    operations: list[Operation] = [ReadOnlyRoot(path="/", origin=MADE), Cover(path="/ws", origin=MADE)]
    places = [f"{project}/{r}".removesuffix("/.") for r in (*read, *write)]
    ways = {project, *(a for p in places for a in above(p))}
    operations += [Way(path=w, origin=MADE) for w in sorted(ways - {"/ws"}) if w.startswith("/ws/")]
    for name, place in zip((*read, *write), places, strict=True):
        operations.append(Bind(path=place, origin=GRANT, directory=name not in files, writable=name in write))
    operations.append(Empty(path="/home/mel/.ssh", origin=MADE))
    operations.append(Seal(path="/home/mel/.netrc", origin=MADE))
    return Plan(operations=tuple(operations), workspace="/ws", project=project)


def above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(2, len(parts))]


def boundary(the_plan: Plan, **more: object) -> Boundary:
    base = Boundary(
        plan=the_plan,
        project=the_plan.project,
        workspace="/ws",
        home="/home/mel",
        temp="/tmp/vx-1/task",
        walls=(Wall(path="/ws/.git", reason="the repository's data"),),
        stores=(Wall(path="/home/mel/.ssh", reason="the credential store ~/.ssh"),),
    )
    return replace(base, **more)  # type: ignore[arg-type]  # the tests name fields of Boundary


def seen(operation: str, intent: Intent, path: str, *, exists: bool = True, asked: str = "", errno: str = "") -> Access:
    full = path if path.startswith("/") else f"{P}/{path}"
    return Access(
        pid=4100, operation=operation, intent=intent, asked=asked or path, path=full, exists=exists, errno=errno
    )


def opened(path: str, *, exists: bool = True) -> Access:
    return seen("openat", Intent.OPEN, path, exists=exists)


def paths_of(judge: Judge, *accesses: Access) -> list[str]:
    taken = [judge.take(a) for a in accesses]
    return [v.path for v in taken if v is not None]


def shop(
    *, read: tuple[str, ...] = ("lib",), write: tuple[str, ...] = (), ignore: Ignore | None = None, **more: object
) -> Judge:
    return Judge(boundary(plan(read=read, write=write), **more), ignore=ignore)


def only(judge: Judge, access: Access) -> Violation:
    violation = judge.take(access)
    assert violation is not None
    return violation


# what counts as a read


def test_an_open_of_a_hidden_path_counts_whether_or_not_the_host_has_it() -> None:
    assert paths_of(shop(), opened("a.ini"), opened("b.ini", exists=False)) == [f"{P}/a.ini", f"{P}/b.ini"]


@pytest.mark.parametrize(
    ("operation", "intent"),
    [
        ("execve", Intent.EXEC),
        ("newfstatat", Intent.PROBE),
        ("access", Intent.PROBE),
        ("readlink", Intent.PROBE),
        ("chdir", Intent.PROBE),
    ],
)
def test_a_probe_or_an_exec_counts_only_where_the_host_has_the_path(operation: str, intent: Intent) -> None:
    assert paths_of(shop(), seen(operation, intent, "nope", exists=False)) == []
    assert paths_of(shop(), seen(operation, intent, "gen.sh")) == [f"{P}/gen.sh"]


def test_a_search_for_a_program_through_hidden_directories_adds_nothing() -> None:
    tries = [seen("execve", Intent.EXEC, f"{d}/cat", exists=False) for d in ("node_modules/.bin", ".venv/bin")]
    looks = [seen("stat", Intent.PROBE, f"{d}/cat", exists=False) for d in ("node_modules/.bin", ".venv/bin")]
    assert paths_of(shop(), *tries, *looks) == []


def test_a_miss_under_a_grant_is_the_tasks_own() -> None:
    judge = shop(read=("lib",), write=("out",))
    misses = [opened(p, exists=False) for p in ("lib", "lib/x", "out/state", "libx/y")]
    assert paths_of(judge, *misses) == [f"{P}/libx/y"]


def test_the_way_to_a_grant_may_be_listed() -> None:
    assert paths_of(shop(read=("deep/lib",)), opened(P), opened("deep")) == []


def test_one_call_at_one_path_is_one_violation_and_two_calls_are_two() -> None:
    judge = shop()
    three = [opened("a.ini", exists=False)] * 3
    assert paths_of(judge, *three, seen("access", Intent.PROBE, "a.ini")) == [f"{P}/a.ini", f"{P}/a.ini"]


def test_an_innocent_call_does_not_excuse_a_later_one_at_the_same_path() -> None:
    judge = shop()
    assert judge.take(opened("lib/b")) is None
    assert only(judge, seen("openat", Intent.WRITE, "lib/b")).kind == "write"


def test_a_path_that_appears_later_is_judged_again() -> None:
    judge = shop()
    assert judge.take(seen("stat", Intent.PROBE, "made", exists=False)) is None
    assert judge.take(seen("stat", Intent.PROBE, "made")) is not None


def test_fifty_thousand_denials_are_judged_once_each() -> None:
    judge = shop()
    found = paths_of(judge, *(opened(f"n{i % 500}") for i in range(50_000)))
    assert len(found) == len(judge.counted) == 500


# where


def test_only_the_project_and_its_root_are_reported() -> None:
    judge = Judge(boundary(plan(read=())))
    inside = [opened(p) for p in ("x", "/ws/apps/shopper/x", "/ws/libs/money/src", "/ws/base.toml")]
    assert paths_of(judge, *inside) == [f"{P}/x"]
    hidden_root = Plan(operations=(Cover(path="/", origin=MADE),), workspace="/ws", project=P)
    assert paths_of(Judge(boundary(hidden_root)), opened(P), opened("/ws/apps/shopper")) == [P]


def test_a_boundary_at_the_root_keeps_everything() -> None:
    judge = shop(project="/")
    assert paths_of(judge, opened("/ws/base.toml"), opened("/ws/libs/money")) == ["/ws/base.toml", "/ws/libs/money"]


def test_a_withheld_project_is_reported_and_its_namesake_is_not() -> None:
    judge = shop(withheld=("/ws/libs/money",))
    looks = [opened("/ws/libs/money/src"), opened("/ws/libs/money-x")]
    assert paths_of(judge, *looks) == ["/ws/libs/money/src"]


def test_the_tasks_own_temp_and_the_kernels_file_systems_never_count() -> None:
    judge = shop(project="/", read=())
    for root in ("/dev/x", "/proc/1/mem", "/sys/kernel", "/tmp/vx-1/task/f"):
        assert judge.take(seen("openat", Intent.CREATE, root, exists=False)) is None
        assert judge.take(opened(root)) is None
    assert judge.seen.outside == []


def test_an_access_without_a_path_or_of_the_network_is_not_judged_here() -> None:
    judge = shop()
    assert judge.take(Access(pid=1, operation="openat", intent=Intent.CREATE, asked="", path="", exists=False)) is None
    assert judge.take(seen("connect", Intent.CONNECT, "x")) is None


# walls


def test_a_probe_of_a_wall_is_silent_and_an_open_in_it_counts() -> None:
    walls = (Wall(path=f"{P}/.git", reason="the repository's data"),)
    judge = shop(walls=walls)
    probes = [seen("stat", Intent.PROBE, p) for p in (".git", ".git/HEAD")]
    assert paths_of(judge, *probes) == []
    found = only(judge, opened(".git/HEAD", exists=False))
    assert found.path == f"{P}/.git/HEAD"
    assert "walled off (the repository's data)" in found.line
    assert paths_of(judge, seen("stat", Intent.PROBE, ".github")) == [f"{P}/.github"]


def test_a_wall_that_a_grant_names_is_open() -> None:
    walls = (Wall(path=f"{P}/.git", reason="the repository's data"),)
    assert paths_of(shop(read=(".git",), walls=walls), opened(".git/HEAD")) == []


# what counts as a write


@pytest.mark.parametrize(
    ("operation", "intent", "exists", "counts"),
    [
        ("openat", Intent.WRITE, True, True),
        ("openat", Intent.WRITE, False, False),
        ("openat", Intent.CREATE, False, True),
        ("openat", Intent.CREATE, True, False),  # an exclusive create of what is readable: EEXIST
        ("truncate", Intent.WRITE, False, False),
        ("mkdir", Intent.MKDIR, False, True),
        ("mkdir", Intent.MKDIR, True, False),
        ("symlink", Intent.CREATE, False, True),
        ("unlink", Intent.REMOVE, True, True),
        ("unlink", Intent.REMOVE, False, False),
        ("rename", Intent.REMOVE, False, False),
        ("rename", Intent.REMOVE, True, True),
        ("rename", Intent.RENAME, False, True),
        ("rename", Intent.RENAME, True, True),
        ("link", Intent.LINK, False, True),
        ("link", Intent.LINK, True, False),
        ("chmod", Intent.ATTRIBUTES, True, True),
        ("chmod", Intent.ATTRIBUTES, False, False),
        ("utimensat", Intent.TIMES, True, False),
        ("utimes", Intent.TIMES, False, False),
    ],
)
def test_a_write_to_what_is_readable(operation: str, intent: Intent, exists: bool, counts: bool) -> None:
    violation = shop().take(seen(operation, intent, "lib/x", exists=exists))
    assert (violation is not None) is counts
    if violation is not None:
        assert (violation.kind, violation.operation, violation.errno) == ("write", operation, "EROFS")


@pytest.mark.parametrize(
    ("operation", "intent", "errno"),
    [
        ("openat", Intent.WRITE, "ENOENT"),
        ("openat", Intent.CREATE, "EROFS"),
        ("mkdir", Intent.MKDIR, "EROFS"),
        ("unlink", Intent.REMOVE, "ENOENT"),
        ("utime", Intent.TIMES, "ENOENT"),
        ("utimes", Intent.TIMES, "ENOENT"),
        ("futimesat", Intent.TIMES, "ENOENT"),
        ("utimensat", Intent.TIMES, "ENOENT"),
        ("link", Intent.LINK, "EROFS"),
    ],
)
def test_a_write_to_what_is_hidden_counts_and_says_what_the_task_was_told(
    operation: str, intent: Intent, errno: str
) -> None:
    violation = only(shop(), seen(operation, intent, "notes.md"))
    assert (violation.kind, violation.errno) == ("write", errno)


def test_a_write_under_a_write_grant_is_no_violation() -> None:
    judge = shop(write=("out",))
    writes = [seen("openat", Intent.CREATE, p, exists=False) for p in ("out/a", "lib/b")]
    assert paths_of(judge, *writes) == [f"{P}/lib/b"]
    assert judge.take(seen("unlink", Intent.REMOVE, "out/a")) is None


def test_making_a_directory_that_leads_to_a_grant_met_one_that_exists() -> None:
    judge = shop(read=(), write=("nm/.c",))
    made = [
        seen("mkdir", Intent.MKDIR, "nm"),
        seen("mkdir", Intent.MKDIR, "nm/.c"),
        seen("mkdir", Intent.MKDIR, "other", exists=False),
        seen("openat", Intent.CREATE, "nm/x", exists=False),
    ]
    assert paths_of(judge, *made) == [f"{P}/other", f"{P}/nm/x"]


@pytest.mark.parametrize(
    ("read", "reported"),
    [
        (("lib",), ["lib/new", "gen"]),
        (("lib/sub",), ["lib/new", "gen"]),
        ((), ["lib", "lib/sub", "lib/new", "gen"]),
    ],
)
def test_making_a_directory_that_is_readable_met_one_that_exists(read: tuple[str, ...], reported: list[str]) -> None:
    there = {"lib": True, "lib/sub": True, "lib/new": False, "gen": True}
    made = [seen("mkdir", Intent.MKDIR, p, exists=e) for p, e in there.items()]
    assert paths_of(shop(read=read), *made) == [f"{P}/{p}" for p in reported]


def test_entering_a_directory_whose_making_was_refused_adds_nothing() -> None:
    judge = shop()
    refused = seen("mkdir", Intent.MKDIR, "gen", exists=False)
    after = seen("chdir", Intent.PROBE, "gen/deep", exists=False)
    assert paths_of(judge, refused, after) == [f"{P}/gen"]
    fix = judge.fix()
    assert fix is not None
    assert (fix.allow.read, fix.allow.write) == ((), ("gen",))


def test_a_hard_link_is_judged_by_both_names() -> None:
    judge = shop(write=("out",))
    assert paths_of(judge, seen("link", Intent.PROBE, "lib/a"), seen("link", Intent.LINK, "out/a", exists=False)) == []
    sides = [seen("link", Intent.PROBE, "notes.md"), seen("link", Intent.LINK, "lib/n", exists=False)]
    assert [v.kind for v in map(judge.take, sides) if v] == ["read", "write"]


def test_a_write_in_a_sandbox_that_grants_nothing_is_a_violation() -> None:
    judge = Judge(boundary(plan(project="/ws"), project="/ws"))
    assert paths_of(judge, seen("openat", Intent.CREATE, "/ws/a.txt", exists=False)) == ["/ws/a.txt"]


# ignoring


def test_one_list_never_silences_the_other_kind() -> None:
    write = seen("openat", Intent.CREATE, "x.part", exists=False)
    assert shop(ignore=Ignore(write=("*.part",))).take(write) is None
    assert shop(ignore=Ignore(read=("*.part",), network=("*.part",), system_info=("*",))).take(write) is not None
    assert shop(ignore=Ignore(write=("*.part",))).take(opened("x.part")) is not None
    assert shop(ignore=Ignore(read=("*.part",))).take(opened("x.part")) is None
    assert shop(ignore=Ignore(read=("*.part",))).take(opened("x.md")) is not None


@pytest.mark.parametrize(
    ("entry", "path", "silent"),
    [
        ("gen/**", "gen/a/b.py", True),
        ("*", "a/b", False),
        ("*", "a", True),
        ("notes.md", "notes.md", True),
        ("./notes.md", "notes.md", True),
        ("lib/../notes.md", "notes.md", True),
        ("notes.md", "notes.md.bak", False),
        ("conf/", "conf/real.json", True),
        ("conf", "conf/real.json", False),
        (f"{P}/notes.md", "notes.md", True),
        ("a{b,c}", "ac", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("../../libs/*/src", "/ws/libs/money/src", True),
        ("~/x", "/home/mel/x", True),
        ("~x", "~x", True),
    ],
)
def test_an_entry_is_anchored_at_the_project_home_or_the_root(entry: str, path: str, silent: bool) -> None:
    hidden = Plan(operations=(Cover(path="/", origin=MADE),), workspace="/ws", project=P)
    judge = Judge(boundary(hidden, withheld=("/ws/libs/money", "/home/mel")), ignore=Ignore(read=(entry,)))
    assert (judge.take(opened(path)) is None) is silent


@pytest.mark.parametrize("entry", ["link", "link/", "link/*.json", "l{ink,x}"])
def test_an_entry_that_names_a_link_silences_what_is_behind_it(entry: str) -> None:
    def canonical(path: str) -> str:
        return path.replace(f"{P}/link", f"{P}/real")

    judge = shop(ignore=Ignore(read=(entry,)), canonical=canonical)
    target = "real" if entry in ("link", "l{ink,x}") else "real/x.json"
    assert judge.take(opened(target)) is None


# what is told


def test_a_violation_shows_the_call_the_spelling_the_answer_and_the_place() -> None:
    violation = only(shop(), seen("openat", Intent.OPEN, "notes.md", asked="../shop/notes.md"))
    assert (violation.operation, violation.target, violation.path, violation.errno) == (
        "openat",
        "../shop/notes.md",
        f"{P}/notes.md",
        "ENOENT",
    )
    assert all(fact in violation.line for fact in ("openat", "../shop/notes.md", "ENOENT", f"{P}/notes.md"))


def test_the_kernels_own_answer_is_shown_where_it_is_known() -> None:
    assert only(shop(), seen("openat", Intent.OPEN, "a", errno="EACCES")).errno == "EACCES"


def test_a_sealed_file_answers_that_it_may_not_be_opened() -> None:
    judge = shop(project="/home/mel")
    assert only(judge, opened("/home/mel/.netrc")).errno == "EACCES"


def test_a_line_stays_one_line_whatever_the_name_holds() -> None:
    violation = only(shop(), opened("a\nb\x1b[31m\udcff"))
    assert violation.line.isprintable()
    assert "a\\nb\\x1b[31m\\udcff" in violation.line
    assert violation.path.endswith("a\nb\x1b[31m\udcff")


def test_a_secret_is_masked_everywhere() -> None:
    judge = shop(mask=lambda text: text.replace("hunter2hunter2", "***"))
    violation = only(judge, seen("openat", Intent.CREATE, "out/hunter2hunter2/x", exists=False))
    assert not any("hunter2" in text for text in (violation.line, violation.target, violation.path))
    fix = judge.fix()
    assert fix is not None
    assert fix.allow.write == ("out/***/x",)


def test_a_call_refused_for_its_name_counts_wherever_it_was() -> None:
    judge = Judge(boundary(plan(write=("out",)), executed=lambda path: path.endswith("/.bashrc")))
    made = replace(seen("openat", Intent.CREATE, "out/.bashrc", exists=False, errno="EROFS"), refused=True)
    found = judge.take(made)
    assert found is not None
    assert (found.kind, found.errno) == ("write", "EROFS")
    assert "is a name other programs execute" in found.line
    elsewhere = judge.take(replace(made, path="/else/x", asked="/else/x"))
    assert elsewhere is not None
    fix = judge.fix()
    assert fix is not None
    assert (fix.allow, len(fix.withheld)) == (FixPaths(), 1)


def test_an_interpreter_that_looks_for_a_member_as_it_starts_is_no_violation() -> None:
    package = Withheld(
        dir="/ws/libs/dates/src",
        name="dates",
        target="libs/dates/src",
        link="/ws/.venv/x.pth",
        project=False,
        owner="libs/dates",
    )
    around = boundary(
        plan(),
        withheld=("/ws/libs/dates/src",),
        packages=(package,),
        asked=frozenset({"/ws/libs/dates/src", f"{P}/src"}),
    )
    judge = Judge(around)
    for path in ("/ws/libs/dates/src", f"{P}/src"):
        assert judge.take(seen("newfstatat", Intent.PROBE, path)) is None
    (hint,) = [hint.line for hint in judge.hints(Aftermath(cwd=P)) if "dates" in hint.line]
    assert "not importable" in hint
    assert "add a task of libs/dates that has a cache to dependsOn" in hint
    assert judge.take(seen("openat", Intent.OPEN, f"{P}/src")) is not None
    assert judge.take(seen("newfstatat", Intent.PROBE, "/ws/libs/dates/src/x")) is not None
    told = [hint.line for hint in judge.hints(Aftermath(cwd=P)) if "libs/dates/src is linked" in hint.line]
    assert len(told) == 1
