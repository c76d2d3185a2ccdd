"""Notes beside a failure and classes of denials, each from what was seen, printed, or known of the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Hint
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.judge import Judge
from sandbox.judge.remedies import per_run_names
from sandbox.planning.operations import Bind, Cover, Name, Operation, Origin, ReadOnlyRoot, Way
from sandbox.planning.path_reach import Plan
from sandbox.request.linked_packages import Withheld
from sandbox.request.task_outputs import Declared, anchored
from sandbox.request.walls import Wall

P = "/ws/apps/shop"
GRANT, IMPLIED = Origin(field="allowWrite[0]"), Origin(reason="fixture")
BUILD = Declared(upstream=(("libs/money#build", anchored("/ws/libs/money", ("dist/**", "!dist/*.map"))),))


def boundary(*operations: Operation, **more: Any) -> Boundary:
    laid: tuple[Operation, ...] = (
        ReadOnlyRoot(path="/", origin=IMPLIED),
        Cover(path="/ws", origin=IMPLIED),
        Way(path="/ws/apps", origin=IMPLIED),
        Way(path=P, origin=IMPLIED),
    )
    return replace(
        Boundary(
            plan=Plan(operations=(*laid, *operations), workspace="/ws", project=P),
            project=P,
            workspace="/ws",
            home="/home/mel",
            temp="/tmp/vx-1/task",
            shared=("/tmp", "/var/tmp"),
            walls=(
                Wall(path="/ws/.git", reason="the repository's data"),
                Wall(path="/ws/.vx/cache", reason="the cache", closed=True),
            ),
            stores=(Wall(path="/home/mel/.npmrc", reason="the credential store ~/.npmrc"),),
        ),
        **more,
    )


def bind(path: str, *, writable: bool = False, directory: bool = True) -> Bind:
    return Bind(path=path, origin=GRANT, directory=directory, writable=writable)


def access(intent: Intent, path: str, *, exists: bool = True, errno: str = "", operation: str = "openat") -> Access:
    return Access(pid=1, operation=operation, intent=intent, asked=path, path=path, exists=exists, errno=errno)


def hints(edge: Boundary, *accesses: Access, printed: str = "", cwd: str = P, **more: Any) -> list[Hint]:
    judge = Judge(edge)
    for one in accesses:
        judge.take(one)
    return list(judge.hints(Aftermath(cwd=cwd, printed=printed, **more)))


def lines(*found: Hint) -> str:
    return "\n".join(hint.line for hint in found)


# classes of violations


@pytest.mark.parametrize(
    ("intent", "path", "exists", "class_"),
    [
        (Intent.OPEN, f"{P}/notes.md", True, "grant"),
        (Intent.OPEN, f"{P}/absent.ini", False, "ignore"),
        (Intent.CREATE, f"{P}/gen/a.py", False, "grant"),
        (Intent.CREATE, f"{P}/.9f3a21.bun-build", False, "ignore"),
        (Intent.WRITE, f"{P}/.9f3a21.bun-build", True, "grant"),
        (Intent.CREATE, f"{P}/a\udcff", False, "tool-fault"),
        (Intent.CREATE, f"{P}/.vx/cache/k", False, "tool-fault"),
        (Intent.WRITE, "/ws/libs/money/dist/a.js", True, "run-upstream"),
        (Intent.OPEN, "/ws/libs/money/dist/a.js", False, "run-upstream"),
        (Intent.OPEN, "/ws/libs/money/dist/a.map", False, "ignore"),
        (Intent.OPEN, "/home/mel/.npmrc", True, "credential"),
        (Intent.WRITE, "/home/mel/.npmrc", True, "credential"),
        (Intent.CREATE, "/tmp/out.log", False, "use-tmpdir"),
        (Intent.CREATE, f"{P}/.bashrc", False, "tool-fault"),
    ],
)
def test_every_denial_says_what_helps_against_it(intent: Intent, path: str, exists: bool, class_: str) -> None:
    edge = boundary(
        Cover(path="/home/mel", origin=IMPLIED),
        withheld=("/ws/libs/money/dist", "/home/mel", "/tmp"),
        declared=BUILD,
        executed=lambda place: place.endswith("/.bashrc"),
        walls=(Wall(path=f"{P}/.vx/cache", reason="the cache", closed=True),),
    )
    violation = Judge(edge).take(access(intent, path, exists=exists))
    assert violation is not None
    assert violation.class_ == class_


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (".9f3a21.bun-build", "*.bun-build"),
        ("cart.cpython-311.pyc.140234567890", "cart.cpython-311.pyc.*"),
        ("vitest.config.ts.timestamp-1700000000000-a1b2c3d4e5f6.mjs", "vitest.config.ts.timestamp-*.mjs"),
        ("tmpab12cd_9", "tmp????????"),
        ("tmpab12cd_9.json.tmp", "tmp????????.json.tmp"),
        ("sedO4uke2", "sed??????"),
        ("sedAbCdEf", "sed??????"),
        ("pytest-cache-files-k_3j9x2a", "pytest-cache-files-????????"),
        (".coverage.host.pid123.XabcdefGx", ".coverage.*"),
        (".coverage.build-7.4711.123456", ".coverage.*"),
        (".tmpAbCdEf", ".tmp??????"),
        ("out.tmp-aBcDeF", "out.tmp-??????"),
        ("tmp.Zx81kQpL0a", "tmp.??????????"),
        ("a.go.tmp.123", "a.go.tmp.*"),
        (".a.txt.aBcDeF", ".a.txt.*"),
        ("x-F47AC10B-58cc-4372-a567-0e02b2c3d479.log", "x-*.log"),
        ("tmp-config", None),
        ("tmp.Readme", None),
        ("templating", None),
        ("sediment.md", None),
        ("readFileSync.js", None),
        ("XMLHttpRequest.ts", None),
        (".coverage.xml", None),
        (".coverage", None),
        ("package.json.3f9a1c2b", "package.json.*"),
        (".tmp-k3j9x2", ".tmp-??????"),
        ("report[1].4711471.txt", "report\\[1\\].*.txt"),
        ("notes.md", None),
        ("python311.zip", None),
        ("es2015.js", None),
        ("x86_64", None),
        ("sha256", None),
        ("20240101", None),
        ("v1.2.3", None),
        ("", None),
    ],
)
def test_a_name_made_anew_by_each_run_has_a_pattern(name: str, pattern: str | None) -> None:
    assert per_run_names.pattern(name) == pattern


# what observers know of the answer


@pytest.mark.parametrize(
    ("intent", "errno", "exists", "counts"),
    [
        (Intent.PROBE, "EACCES", False, True),
        (Intent.OPEN, "EPERM", False, True),
        (Intent.EXEC, "EACCES", False, True),
        (Intent.PROBE, "ENOENT", False, False),
        (Intent.OPEN, "ENOTDIR", True, False),
        (Intent.MKDIR, "EEXIST", True, False),
        (Intent.CREATE, "EEXIST", True, False),
        (Intent.REMOVE, "ENOTEMPTY", True, False),
        (Intent.CREATE, "EROFS", False, True),
        (Intent.RENAME, "EBUSY", True, True),
        (Intent.LINK, "EXDEV", False, True),
    ],
)
def test_a_refusal_always_counts_and_the_hosts_own_answer_never_does(
    intent: Intent, errno: str, exists: bool, counts: bool
) -> None:
    violation = Judge(boundary()).take(access(intent, f"{P}/conf/x", errno=errno, exists=exists))
    assert (violation is not None) is counts


def test_busy_and_other_devices_under_a_write_grant_are_the_tasks_own() -> None:
    judge = Judge(boundary(bind(f"{P}/out", writable=True)))
    for intent, errno in ((Intent.REMOVE, "EBUSY"), (Intent.RENAME, "EBUSY"), (Intent.LINK, "EXDEV")):
        assert judge.take(access(intent, f"{P}/out", errno=errno)) is None


# grants


@pytest.mark.parametrize("operation", ["rmdir", "rename"])
def test_a_granted_directory_that_was_to_go_is_told_with_the_name_that_may(operation: str) -> None:
    edge = boundary(bind(f"{P}/out", writable=True), bind(f"{P}/lib"))
    (hint,) = hints(edge, *[access(Intent.REMOVE, f"{P}/out", operation=operation)] * 2)
    assert 'rm -rf out/*, and it stays; allow.write = ["out"] grants the name' in hint.line
    assert hints(edge, access(Intent.REMOVE, f"{P}/out/x")) == []
    (plain,) = hints(replace(edge, served=False), access(Intent.REMOVE, f"{P}/out"))
    assert "grants the name" not in plain.line


@pytest.mark.parametrize("survived", [True, False])
def test_a_name_of_one_run_is_to_be_ignored_or_made_elsewhere(survived: bool) -> None:
    judge = Judge(boundary(bind(f"{P}/lib")))
    for one in (
        access(Intent.CREATE, f"{P}/gen/.9f3a21.bun-build", exists=False),
        access(Intent.CREATE, f"{P}/gen/.4b7c99.bun-build", exists=False),
    ):
        judge.take(one)
    (hint,) = judge.hints(Aftermath(cwd=P, survived=survived))
    assert f'{"ignore" if survived else "allow"}.write = ["gen/*.bun-build"]' in hint.line
    assert "$TMPDIR" in hint.line
    assert hint.class_ == "ignore"


def test_a_write_at_the_root_that_was_meant_for_the_project_is_told_where_to_go() -> None:
    for granted in (bind(f"{P}/out", writable=True), Name(path=f"{P}/out/x", origin=GRANT)):
        (hint,) = hints(boundary(granted), access(Intent.CREATE, "/ws/out/x", exists=False))
        assert hint.line == (
            '/ws/out/x lies at the workspace root, and the task may write "out/x" of its project: have it written there'
        )
        assert hint.class_ == "tool-fault"
    elsewhere = hints(boundary(bind(f"{P}/out", writable=True)), access(Intent.CREATE, "/ws/gen/x", exists=False))
    assert '"../../gen/"' in lines(*elsewhere)


def test_an_output_of_another_task_is_that_tasks_to_write_and_to_make() -> None:
    edge = boundary(bind(f"{P}/lib"), declared=BUILD)
    (written,) = hints(edge, access(Intent.CREATE, "/ws/libs/money/dist/new.js", exists=False))
    assert "an output of libs/money#build: run that task, which alone writes it" in written.line
    (missing,) = hints(edge, access(Intent.OPEN, "/ws/libs/money/dist/a.js", exists=False))
    assert "an output of libs/money#build, which has not made it: run it" in missing.line
    assert (written.class_, missing.class_) == ("run-upstream", "run-upstream")


# outside the project


def test_files_come_before_directories_and_a_credential_store_is_only_named() -> None:
    found = hints(
        boundary(bind(P), Cover(path="/home/mel", origin=IMPLIED), directory=lambda path: path == "/ws/libs"),
        access(Intent.OPEN, "/home/mel/.npmrc"),
        access(Intent.OPEN, "/ws/libs"),
        access(Intent.OPEN, "/ws/base.toml"),
    )
    assert [hint.line for hint in found] == [
        (
            'outside the project, the task looked for /ws/base.toml, /ws/libs: allow.read = ["../../base.toml"] opens'
            " /ws/base.toml"
        ),
        (
            "/home/mel/.npmrc holds credentials, so no grant is suggested: pass what the task needs in a variable, by"
            " exec.env.passThrough"
        ),
    ]
    assert [hint.class_ for hint in found] == ["grant", "credential"]


def test_a_cached_task_is_told_of_the_entry_that_keys_a_read() -> None:
    edge = boundary(bind(P), cached=True, directory=lambda path: path == "/ws/libs")
    (file,) = hints(edge, access(Intent.OPEN, "/ws/!base.toml"))
    assert 'allow.read = ["../../!base.toml"] with cache.inputs.workspaceFiles = ["\\\\!base.toml"]' in file.line
    (directory,) = hints(edge, access(Intent.OPEN, "/ws/libs"))
    assert 'allow.read = ["../../libs/"] with cache.inputs.workspaceFiles = ["libs/**"]' in directory.line
    (outside,) = hints(
        boundary(Cover(path="/opt", origin=IMPLIED), bind(P), cached=True), access(Intent.OPEN, "/opt/x")
    )
    assert "workspaceFiles" not in outside.line


def test_a_write_to_the_shared_temporary_directory_is_told_of_the_tasks_own() -> None:
    (hint,) = hints(
        boundary(bind(P)),
        access(Intent.CREATE, "/tmp/x.log", exists=False),
        access(Intent.CREATE, "/var/tmp/y", exists=False),
    )
    assert hint.line.startswith("writing to /tmp/x.log, /var/tmp/y was refused")
    assert "$TMPDIR" in hint.line
    assert hint.class_ == "use-tmpdir"
    # a workspace may lie there itself
    around = boundary(bind(P), shared=("/ws",))
    assert "../../o/" in lines(*hints(around, access(Intent.CREATE, "/ws/o/x", exists=False)))


def test_what_is_left_out_of_the_notes_on_writes() -> None:
    silent = [
        access(Intent.CREATE, path, exists=False)
        for path in ("/dev/x", "/proc/1/oom_adj", "/sys/x", "/tmp/vx-1/task/f", "")
    ]
    assert hints(boundary(bind(P)), *silent) == []


@pytest.mark.parametrize(
    ("path", "intent", "grant"),
    [
        ("/home/mel/.nvm/versions/node/v22/bin/node", Intent.PROBE, "~/.nvm/versions/node/v22/"),
        (
            "/home/mel/.local/share/uv/python/cpython-3.12/bin/python3.12",
            Intent.EXEC,
            "~/.local/share/uv/python/cpython-3.12/",
        ),
        ("/home/mel/.local/bin/uv", Intent.EXEC, "~/.local/bin/uv"),
        ("/home/mel/bin/tool", Intent.EXEC, "~/bin/tool"),
    ],
)
def test_a_hermetic_task_is_told_of_an_interpreter_below_home(path: str, intent: Intent, grant: str) -> None:
    edge = boundary(bind(P), Cover(path="/home/mel", origin=IMPLIED), hermetic=True)
    (hint,) = hints(edge, access(intent, path))
    assert f'allow.read = ["{grant}"]' in hint.line
    assert "hermetic" in hint.line
    assert "hermetic" not in lines(*hints(replace(edge, hermetic=False), access(Intent.EXEC, path)))


# what was printed


@pytest.mark.parametrize(
    ("printed", "port"),
    [
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", 5432),
        ("AggregateError: connect ECONNREFUSED ::1:5432", 5432),
        ("net::ERR_CONNECTION_REFUSED at http://localhost:4173/", 4173),
        ("curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server", 8080),
        ("curl: (7) Failed to connect to localhost port 8080 after 0 ms: Could not connect to server", 8080),
        ("dial tcp [::1]:6379: connect: connection refused", 6379),
        ('connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused', 5432),
    ],
)
def test_a_loopback_port_that_refused_is_told_where_the_host_listens_on_it(printed: str, port: int) -> None:
    edge = boundary(bind(P))
    (hint,) = hints(edge, printed=printed, listens=lambda number: number == port)
    assert f'allow.network = ["localhost:{port}"]' in hint.line
    assert hints(edge, printed=printed) == []
    assert hints(replace(edge, ports=frozenset({port})), printed=printed, listens=lambda _: True) == []


@pytest.mark.parametrize(
    "printed",
    [
        "error TS5058: The specified path does not exist: 'tsconfig.json'.",
        "cat: tsconfig.json: No such file or directory",
        "Error: ENOENT: no such file or directory, open '/ws/apps/shop/tsconfig.json'",
        'Cannot find "./tsconfig.json"',
        "could not open ../shop/tsconfig.json",
    ],
)
def test_a_path_the_command_calls_missing_and_the_host_has_is_told(printed: str) -> None:
    edge = boundary(bind(f"{P}/lib"), cached=True)
    (hint,) = hints(edge, printed=f"starting\n{printed}\n", exists=lambda path: path == f"{P}/tsconfig.json")
    assert 'allow.read = ["tsconfig.json"] with cache.inputs.files = ["tsconfig.json"]' in hint.line
    assert hints(edge, printed=printed) == []
    seen = hints(edge, access(Intent.OPEN, f"{P}/tsconfig.json"), printed=printed, exists=lambda _: True)
    assert seen == []
    assert hints(boundary(bind(P)), printed=printed, exists=lambda _: True) == []


def test_a_credential_store_called_missing_is_not_suggested() -> None:
    edge = boundary(bind(P), Cover(path="/home/mel", origin=IMPLIED))
    (hint,) = hints(edge, printed="no such file: /home/mel/.npmrc", exists=lambda path: path == "/home/mel/.npmrc")
    assert "holds credentials" in hint.line
    assert "allow.read" not in hint.line
    assert hint.class_ == "credential"


def test_git_without_its_repository_is_told_of_the_nearest_one() -> None:
    edge = boundary(bind(P), directory=lambda path: path == "/ws/.git")
    said = "fatal: not a git repository (or any of the parent directories): .git"
    look = access(Intent.PROBE, "/ws/.git", operation="newfstatat")
    (hint,) = hints(edge, look, printed=said, exists=lambda path: path == "/ws/.git")
    assert 'since /ws/.git is hidden from the task: allow.read = ["../../.git"]' in hint.line
    # without git's words the wall is told of as any other
    (wall,) = hints(edge, look, printed="no .git here")
    assert "is walled off" in wall.line


@pytest.mark.parametrize("path", ["/ws/.git", "/work/.git"])
def test_a_repository_outside_the_workspace_is_hidden_on_purpose(path: str) -> None:
    # a file there points to a repository elsewhere, as in a linked worktree
    edge = boundary(bind(P), Cover(path="/work", origin=IMPLIED))
    cwd = P if path == "/ws/.git" else "/work/x"
    hint, *_ = hints(edge, printed="fatal: not a git repository", exists=lambda place: place == path, cwd=cwd)
    assert "on purpose" in hint.line
    assert "allow.read" not in hint.line


def test_a_link_from_one_grant_into_another_is_told_why_it_cannot_be() -> None:
    (hint,) = hints(boundary(bind(P)), printed="ln: failed to create hard link: Invalid cross-device link")
    assert "copy" in hint.line


@pytest.mark.parametrize(
    "printed",
    [
        "sh: 1: Cannot fork",
        "bash: fork: retry: Resource temporarily unavailable",
        "  os.fork()\nBlockingIOError: [Errno 11] Resource temporarily unavailable",
        "RuntimeError: can't start new thread",
        "Error: spawn /usr/bin/node EAGAIN",
    ],
)
def test_a_task_that_had_all_processes_there_are_for_one_is_told_how_many(printed: str) -> None:
    (hint,) = hints(boundary(bind(P)), printed=printed, processes=lambda: 500)
    assert hint.line.startswith("one task gets 500 processes and threads")
    assert "ulimit -u" in hint.line
    assert hint.class_ is None
    # what the machine alone limits is not told of
    assert hints(boundary(bind(P)), printed=printed) == []
    assert hints(boundary(bind(P)), printed="read: Resource temporarily unavailable", processes=lambda: 500) == []


@pytest.mark.parametrize(("ended", "said"), [(1, "ended a process"), (3, "ended 3 processes")])
def test_a_machine_that_ran_out_of_memory_meanwhile_is_told(ended: int, said: str) -> None:
    (hint,) = hints(boundary(bind(P)), starved=lambda: ended)
    assert said in hint.line


def test_a_member_installed_by_its_sources_alone_is_told_of_its_project() -> None:
    package = Withheld(
        dir="/ws/libs/dates/src", name="dates", target="libs/dates/src", link="/ws/.venv/d.pth", project=False,
        owner="libs/dates",
    )  # fmt: skip
    edge = boundary(bind(P), packages=(package,), withheld=(package.dir,), asked=frozenset({package.dir}))
    (hint,) = hints(edge, access(Intent.PROBE, package.dir))
    assert "add a task of libs/dates that has a cache to dependsOn" in hint.line


@pytest.mark.parametrize(
    "printed", ["\0" * 100, "no such file " * 5000, "ENOENT '" + "a/" * 4000, "'" * 9000, "\n" * 9999]
)
def test_any_output_is_looked_at_and_none_is_too_long(printed: str) -> None:
    assert hints(boundary(bind(P)), printed=printed, exists=lambda _: False) == []
