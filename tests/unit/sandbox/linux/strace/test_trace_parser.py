"""Lines as strace writes them, one shape at a time."""

from __future__ import annotations

import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.intents import Intent
from sandbox.linux.caller.resolve_path_as_caller import Walked, walk
from sandbox.linux.kernel.syscall_numbers import X86_64
from sandbox.linux.strace import trace_parser
from sandbox.linux.strace.trace_parser import LINE_LIMIT, TraceParser

if TYPE_CHECKING:
    from sandbox.contract.results import Access

MISSING = "= -1 ENOENT (No such file or directory)"
ROFS = "= -1 EROFS (Read-only file system)"


class Places:
    """What is named exists; names of shells are watched."""

    def __init__(self, *names: str, links: dict[str, str] | None = None) -> None:
        self.names = names
        self.links = links or {}

    def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked:  # noqa: ARG002  always
        return walk(self.links.get, path, base=base, follows=follows)

    def exists(self, path: str) -> bool:
        return path in self.names

    def is_closed_link(self, path: str) -> bool:
        return path.startswith("/proc/1/")

    def changes(self, call: str, intent: Intent, path: str) -> bool:  # noqa: ARG002  whatever is done to it
        return path.endswith("/.bashrc")


def read(
    *lines: str,
    root: int = 0,
    noted: bool = False,
    names: tuple[str, ...] = (),
    links: dict[str, str] | None = None,
) -> tuple[list[Access], TraceParser]:
    parser = TraceParser(X86_64, Places(*names, links=links), cwd="/ws/p", root=root, noted=noted)
    found = parser.feed("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    return found + parser.finish(), parser


def said(*lines: str, **options: object) -> list[tuple[str, str, str]]:
    """Call, path and errno of each access of a trace that could be read to its end."""
    found, parser = read(*lines, **options)  # type: ignore[arg-type]
    assert parser.incomplete == ""
    return [(a.operation, a.path, a.errno) for a in found]


def test_a_refused_open_is_one_access() -> None:
    (access,), _ = read(f'4100 openat(AT_FDCWD, "/ws/p/a.ini", O_RDONLY) {MISSING}')
    assert (access.pid, access.operation, access.intent) == (4100, "openat", Intent.OPEN)
    assert (access.asked, access.path, access.errno, access.exists) == ("/ws/p/a.ini", "/ws/p/a.ini", "ENOENT", False)


def test_calls_in_two_halves_are_paired_by_their_process() -> None:
    assert said(
        '4101 openat(AT_FDCWD, "/ws/p/b.ini", O_RDONLY <unfinished ...>',
        '4102 openat(AT_FDCWD, "/ws/p/c.ini", O_RDONLY <unfinished ...>',
        f"4101 <... openat resumed>) {MISSING}",
        "4102 <... openat resumed>) = -1 EACCES (Permission denied)",
    ) == [("openat", "/ws/p/b.ini", "ENOENT"), ("openat", "/ws/p/c.ini", "EACCES")]


@pytest.mark.parametrize(
    "lines",
    [
        ['1 openat(AT_FDCWD, "a", O_RDONLY <unfinished ...>', "1 <... openat resumed>) = 5"],
        ['1 openat(AT_FDCWD, "a", O_RDONLY <unfinished ...>', "1 +++ killed by SIGKILL +++"],
        [f"1 <... openat resumed>) {MISSING}"],
        ['1 stat("a", <unfinished ...>', f"1 <... openat resumed>) {MISSING}"],
        ['1 openat(AT_FDCWD, "/lib/x.so", O_RDONLY|O_CLOEXEC) = 3', "1 +++ exited with 0 +++"],
        ["1 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=2} ---", "1 --- stopped by SIGSTOP ---"],
        ["1 restart_syscall(<... resuming interrupted read ...>) = 0"],
        ['1 openat(AT_FDCWD, "a", O_RDONLY) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)'],
        ["1 openat(AT_FDCWD, NULL, O_RDONLY) = -1 EFAULT (Bad address)"],
        ['1 openat(AT_FDCWD</ws>, "a", O_RDONLY) = 3</ws/a>(deleted)'],
        ['1 openat(AT_FDCWD</ws>, "/tmp", O_RDWR|O_TMPFILE, 0600) = 3</tmp/#77>(deleted)'],
        ['1 openat(AT_FDCWD</ws>, "a", O_RDONLY) = 3</ws/a (deleted)>'],
        ['1 openat(AT_FDCWD, "a", O_RDONLY <unfinished ...>', "1 <... openat resumed>) = ? <unavailable>"],
        ["1 openat(AT_FDCWD, 0x7ffe, O_RDONLY) = -1 EFAULT (Bad address)"],
        ["1 fchdir(9) = -1 EBADF (Bad file descriptor)", ""],
    ],
)  # fmt: skip
def test_what_names_no_refused_path_is_nothing(lines: list[str]) -> None:
    assert said(*lines) == []


@pytest.mark.parametrize(
    ("line", "call", "intent"),
    [
        (
            'execve("./gen.sh", ["./gen.sh"], 0x7ffd /* 9 vars */) = -1 EACCES (Permission denied)',
            "execve",
            Intent.EXEC,
        ),
        (f'open("gen.sh", O_RDONLY) {MISSING}', "open", Intent.OPEN),
        (f'open("gen.sh", O_RDONLY|O_PATH) {MISSING}', "open", Intent.PROBE),
        (f'open("gen.sh", O_WRONLY|O_CREAT|O_TRUNC, 0666) {ROFS}', "open", Intent.CREATE),
        (f'creat("gen.sh", 0666) {ROFS}', "creat", Intent.CREATE),
        (f'access("gen.sh", R_OK) {MISSING}', "access", Intent.PROBE),
        (f'faccessat2(AT_FDCWD, "gen.sh", R_OK, AT_EACCESS) {MISSING}', "faccessat2", Intent.PROBE),
        (f'readlink("gen.sh", 0x7ffd, 99) {MISSING}', "readlink", Intent.PROBE),
        (f'readlinkat(AT_FDCWD, "gen.sh", 0x7ffd, 99) {MISSING}', "readlinkat", Intent.PROBE),
        (f'stat("gen.sh", 0x7ffd) {MISSING}', "stat", Intent.PROBE),
        (f'newfstatat(AT_FDCWD, "gen.sh", 0x7ffd, AT_SYMLINK_NOFOLLOW) {MISSING}', "newfstatat", Intent.PROBE),
        (f'statx(AT_FDCWD, "gen.sh", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7f) {MISSING}', "statx", Intent.PROBE),
        (f'mkdir("gen.sh", 0777) {ROFS}', "mkdir", Intent.MKDIR),
        (f'unlinkat(AT_FDCWD, "gen.sh", 0) {ROFS}', "unlinkat", Intent.REMOVE),
        (f'symlink("target", "gen.sh") {ROFS}', "symlink", Intent.CREATE),
        (f'chmod("gen.sh", 0755) {ROFS}', "chmod", Intent.ATTRIBUTES),
        (f'utimensat(AT_FDCWD, "gen.sh", [{{tv_sec=1, tv_nsec=2}}, UTIME_NOW], 0) {ROFS}', "utimensat", Intent.TIMES),
        (f'chdir("gen.sh") {MISSING}', "chdir", Intent.PROBE),
    ],
)
def test_every_family_of_calls_is_read(line: str, call: str, intent: Intent) -> None:
    (access,), parser = read(f"4104 {line}")
    assert (access.operation, access.intent, access.path) == (call, intent, "/ws/p/gen.sh")
    assert parser.incomplete == ""


def test_a_rename_and_a_link_name_two_places_while_there_is_something_to_move() -> None:
    line = f'1 renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE) {ROFS}'
    assert said(line, names=("/ws/p/a",)) == [("renameat2", "/ws/p/a", "EROFS"), ("renameat2", "/ws/p/b", "EROFS")]
    assert said(line) == [("renameat2", "/ws/p/a", "EROFS")]
    found, _ = read(f'1 link("a", "b") {ROFS}', names=("/ws/p/a",))
    assert [access.intent for access in found] == [Intent.PROBE, Intent.LINK]


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        (r"\303\251.txt", "é.txt"),
        (r"q\"t.txt", 'q"t.txt'),
        (r"b\\s.txt", "b\\s.txt"),
        (r"n\nl\tt", "n\nl\tt"),
        (r"\x41\x7f", "A\x7f"),
        (r"\1770", "\x7f0"),
        (r"\33[1m", "\x1b[1m"),
        (r"a\377b", os.fsdecode(b"a\xffb")),
        ("= 3", "= 3"),
        (") = -1 EACCES (Permission denied)", ") = -1 EACCES (Permission denied)"),
        (", O_WRONLY|O_CREAT", ", O_WRONLY|O_CREAT"),
        ("<unfinished ...>", "<unfinished ...>"),
        ("<... openat resumed>", "<... openat resumed>"),
        ("+++ exited with 0 +++", "+++ exited with 0 +++"),
    ],
)
def test_a_path_is_a_c_string_whatever_it_spells(spelled: str, name: str) -> None:
    (access,), parser = read(f'7 openat(AT_FDCWD, "{spelled}", O_RDONLY) {MISSING}')
    assert (access.asked, access.errno, access.intent) == (name, "ENOENT", Intent.OPEN)
    assert said(f'7 openat(AT_FDCWD, "{spelled}", O_RDONLY) = 3') == []
    assert parser.incomplete == ""


def test_an_argument_that_spells_a_result_is_none() -> None:
    assert said(f'1 execve("/bin/sh", ["sh", "-c", "x) {MISSING}"], 0x7f /* 1 var */) = 0') == []


@pytest.mark.parametrize("cut", ['"/ws/p/a"...', '"\\303"...'])
def test_a_path_cut_short_is_said(cut: str) -> None:
    found, parser = read(f"1 openat(AT_FDCWD, {cut}, O_RDONLY) {MISSING}")
    assert (found, parser.incomplete) == ([], "a path in the trace is cut short")


def test_a_path_strace_could_not_read_is_said_unless_the_call_could_not_either() -> None:
    _, parser = read(f"1 openat(AT_FDCWD, 0x7ffe1234, O_RDONLY) {MISSING}")
    assert "could not be read" in parser.incomplete


# where a process stands


def test_relative_paths_follow_each_chdir() -> None:
    assert said('1 chdir("lib") = 0', f'1 openat(AT_FDCWD, "k.txt", O_RDONLY) {MISSING}') == [
        ("openat", "/ws/p/lib/k.txt", "ENOENT")
    ]
    assert said('1 chdir("lib" <unfinished ...>', "1 <... chdir resumed>) = 0", f'1 stat("k", 0x1) {MISSING}') == [
        ("stat", "/ws/p/lib/k", "ENOENT")
    ]


@pytest.mark.parametrize("answer", [MISSING, "= -1 EACCES (Permission denied)"])
def test_a_failed_chdir_moves_nothing_and_is_a_look_itself(answer: str) -> None:
    found = said(f'1 chdir("nope") {answer}', f'1 stat("k", 0x1) {MISSING}')
    assert [(call, path) for call, path, _ in found] == [("chdir", "/ws/p/nope"), ("stat", "/ws/p/k")]


def test_an_fchdir_goes_where_the_descriptor_was_opened_and_nowhere_else() -> None:
    look = f'1 stat("k", 0x1) {MISSING}'
    opened = '1 openat(AT_FDCWD, "deep", O_RDONLY|O_DIRECTORY) = 3'
    assert said(opened, "1 fchdir(3) = 0", look) == [("stat", "/ws/p/deep/k", "ENOENT")]
    assert said("1 fchdir(3</ws/q>) = 0", look) == [("stat", "/ws/q/k", "ENOENT")]
    assert said("1 fchdir(4) = 0", look) == [("stat", "/ws/p/k", "ENOENT")]


@pytest.mark.parametrize(
    ("flags", "place"),
    [
        ("SIGCHLD", "/ws/p/k"),
        ("CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM", "/ws/p/lib/k"),
    ],
)
def test_a_child_keeps_the_directory_of_its_birth_unless_it_shares_it(flags: str, place: str) -> None:
    assert said(
        f"1 clone(child_stack=NULL, flags={flags}, child_tidptr=0x7f) = 2",
        '1 chdir("lib") = 0',
        f'2 open("k", O_RDONLY) {MISSING}',
    ) == [("open", place, "ENOENT")]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("vfork( <unfinished ...>", "<... vfork resumed>) = 2"),
        ("fork( <unfinished ...>", "<... fork resumed>) = 2"),
        ("clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88 <unfinished ...>", "<... clone3 resumed>) = 2"),
        ("clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>", "<... clone resumed>) = 2"),
    ],
)
def test_a_child_that_speaks_before_its_birth_is_told_stands_where_its_parent_does(begin: str, end: str) -> None:
    lines = ['1 chdir("lib") = 0', f"1 {begin}", '2 chdir("sub") = 0', f'2 stat("k", 0x1) {MISSING}', f"1 {end}"]
    assert said(*lines, f'1 stat("k", 0x1) {MISSING}') == [
        ("stat", "/ws/p/lib/sub/k", "ENOENT"),
        ("stat", "/ws/p/lib/k", "ENOENT"),
    ]


def test_of_two_births_at_a_time_each_child_finds_its_parent() -> None:
    found = said(
        "1 fork() = 2",
        '1 chdir("a") = 0',
        '2 chdir("b") = 0',
        "1 vfork( <unfinished ...>",
        "2 vfork( <unfinished ...>",
        f'3 stat("k", 0x1) {MISSING}',
        f'4 stat("k", 0x1) {MISSING}',
        "1 <... vfork resumed>) = 4",
        "2 <... vfork resumed>) = 3",
    )
    assert sorted(found) == [("stat", "/ws/p/a/k", "ENOENT"), ("stat", "/ws/p/b/k", "ENOENT")]


def test_the_number_of_an_ended_process_may_be_anothers() -> None:
    lines = [
        "1 fork() = 2",
        '2 chdir("lib") = 0',
        "2 +++ exited with 0 +++",
        "1 fork() = 2",
        f'2 stat("k", 0) {MISSING}',
    ]
    assert said(*lines) == [("stat", "/ws/p/k", "ENOENT")]


def test_a_thread_that_executes_takes_the_place_of_the_first() -> None:
    lines = [
        "1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_THREAD) = 2",
        '2 chdir("lib") = 0',
        '2 execve("/bin/x", ["x"], 0x1 /* 1 var */ <unfinished ...>',
        "1 +++ superseded by execve in pid 2 +++",
        "1 <... execve resumed>) = 0",
        f'1 stat("k", 0x1) {MISSING}',
    ]
    assert said(*lines) == [("stat", "/ws/p/lib/k", "ENOENT")]


# directories a path is relative to


@pytest.mark.parametrize(
    ("directory", "asked", "path"),
    [
        ("AT_FDCWD</ws/p/lib>", "i", "/ws/p/lib/i"),
        ("4</ws/p/x>", "/ws/p/abs", "/ws/p/abs"),
        ("4</ws/p/x>", "i", "/ws/p/x/i"),
        ('4</ws/q"d>', "i", '/ws/q"d/i'),
        ("4</ws/a>b>", "i", "/ws/a>b/i"),
        (r"4</ws/a\76b\303\251>", "i", "/ws/a>bé/i"),
        ("4</ws/p/gone (deleted)>", "i", "/ws/p/gone/i"),
        ("4</ws/p/gone>(deleted)", "i", "/ws/p/gone/i"),
        ("4</ws/a, b>", "i", "/ws/a, b/i"),
    ],
)
def test_a_noted_directory_is_where_a_path_starts(directory: str, asked: str, path: str) -> None:
    line = f'1 openat({directory}, "{asked}", O_RDONLY) {MISSING}'
    assert said(line, noted=True) == [("openat", path, "ENOENT")]


@pytest.mark.parametrize("name", ["a, b", 'q"d', "a>b", "(x", "{x", "[x, y"])
def test_the_second_directory_of_a_call_may_be_called_anything_as_well(name: str) -> None:
    line = f'1 renameat2(4</ws/{name}>, "i", 5</ws/p/{name}>, "j", RENAME_NOREPLACE) {ROFS}'
    assert said(line, noted=True, names=(f"/ws/{name}/i",)) == [
        ("renameat2", f"/ws/{name}/i", "EROFS"),
        ("renameat2", f"/ws/p/{name}/j", "EROFS"),
    ]


def test_an_unnoted_directory_is_what_its_descriptor_was_last_opened_on() -> None:
    opens = ['1 openat(AT_FDCWD, "a", O_RDONLY) = 3', '1 openat(AT_FDCWD, "b", O_RDONLY) = 3', "1 fork() = 2"]
    look = f'2 openat(3, "i", O_RDONLY) {MISSING}'
    assert said(*opens, look) == [("openat", "/ws/p/b/i", "ENOENT")]
    found, parser = read(look)
    assert (found, parser.incomplete) == ([], "a directory could not be placed (descriptor 3 of process 2)")


def test_what_is_noted_to_be_no_directory_holds_no_path() -> None:
    assert said('1 openat(3<pipe:[8]>, "i", O_RDONLY) = -1 ENOTDIR (Not a directory)', noted=True) == []


def test_a_working_directory_strace_could_not_note_is_said() -> None:
    _, parser = read(f'1 openat(AT_FDCWD, "i", O_RDONLY) {MISSING}', noted=True)
    assert "could not be placed" in parser.incomplete


def test_whether_a_link_would_be_followed_is_read_from_the_flags() -> None:
    for line, follows in (
        (f'open("l", O_RDONLY|O_NOFOLLOW) {MISSING}', False),
        (f'open("l", O_WRONLY|O_CREAT|O_EXCL, 0666) {ROFS}', False),
        (f'newfstatat(AT_FDCWD, "l", 0x1, 0) {MISSING}', True),
        (f'newfstatat(AT_FDCWD, "l", 0x1, AT_SYMLINK_NOFOLLOW|AT_NO_AUTOMOUNT) {MISSING}', False),
        (f'newfstatat(AT_FDCWD, "l", 0x1, 0x100 /* AT_SYMLINK_NOFOLLOW */) {MISSING}', False),
        (f'lstat("l", 0x1) {MISSING}', False),
    ):
        (access,), _ = read(f"1 {line}")
        assert access.follows is follows, line


def test_the_links_of_a_process_that_is_gone_are_known() -> None:
    assert said('1 chdir("lib") = 0', f'1 open("/proc/self/cwd/new", O_WRONLY|O_CREAT, 0666) {ROFS}') == [
        ("open", "/ws/p/lib/new", "EROFS")
    ]
    assert said(f'1 open("/proc/self/root/ws/a", O_RDONLY) {MISSING}') == [("open", "/ws/a", "ENOENT")]
    for name in ("self/fd/5", "4711/cwd", "4711/root", "self/task/7/fd/5", "self/task/7/cwd", "self/task/7/root"):
        _, parser = read(f'1 open("/proc/{name}/new", O_WRONLY|O_CREAT, 0666) {ROFS}', names=("/proc/1", "/proc/self"))
        assert "could not be followed" in parser.incomplete, name
    # the entry of a process that is ending outlives its links, and a link of the task's own may lead there
    for name, place in (("cwd", "/ws/p/lib/new"), ("root", "/new")):
        found, parser = read(
            '1 chdir("lib") = 0',
            f'1 open("/tmp/l/new", O_WRONLY|O_CREAT, 0666) {ROFS}',
            names=("/proc/1", "/proc/self"),
            links={"/tmp/l": f"/proc/self/{name}"},
        )
        assert ([access.path for access in found], parser.incomplete) == ([place], "")
    # what the kernel let the caller not follow either led it nowhere
    _, parser = read('1 open("/proc/1/root/etc/passwd", O_RDONLY) = -1 EACCES (Permission denied)')
    assert parser.incomplete == ""


class Turning(Places):
    """A link that leads somewhere else each time, and one that leads where the caller stands."""

    def __init__(self) -> None:
        super().__init__("/ws/p/l")
        self.turn = 0

    def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked:
        self.turn += 1
        self.links = {"/ws/p/l": f"/ws/{self.turn}"}
        return super().walk(pid, path, base=base, follows=follows)


@pytest.mark.parametrize("spelled", ['AT_FDCWD</ws/p>, "l/x"', 'AT_FDCWD</ws/p>, "/ws/p/l/x"'])
def test_a_call_made_again_through_a_link_is_followed_again(spelled: str) -> None:
    parser = TraceParser(X86_64, Turning(), cwd="/ws/p", noted=True)
    line = f"1 openat({spelled}, O_RDONLY) {MISSING}\n".encode()
    found = parser.feed(line * 3)
    assert len({access.path for access in found}) == 3


@pytest.mark.parametrize(
    "linked",
    ['symlink("a", "l") = 0', 'rename("m", "l") = 0', 'linkat(AT_FDCWD</ws/p>, "m", AT_FDCWD</ws/p>, "l", 0) = 0'],
)
def test_what_was_no_link_may_become_one(linked: str) -> None:
    places = Turning()
    parser = TraceParser(X86_64, places, cwd="/ws/p", noted=True)
    line = f'1 openat(AT_FDCWD</ws/p>, "k/x", O_RDONLY) {MISSING}\n'.encode()
    before = parser.feed(line * 3)
    after = parser.feed(f"1 {linked}\n".encode() + line)
    assert (len(before), len(after)) == (1, 1)


def test_a_directory_left_again_on_the_way_is_a_look_at_it() -> None:
    found, _ = read(f'1 open("hidden/../a", O_RDONLY) {MISSING}')
    assert [(a.intent, a.path) for a in found] == [(Intent.PROBE, "/ws/p/hidden"), (Intent.OPEN, "/ws/p/a")]


def test_a_name_nobody_may_write_counts_though_the_call_succeeded() -> None:
    found, _ = read(
        '1 openat(AT_FDCWD</ws/p>, ".bashrc", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</ws/p/.bashrc>',
        '1 openat(AT_FDCWD</ws/p>, ".bashrc", O_RDONLY) = 3</ws/p/.bashrc>',
        '1 openat(AT_FDCWD</ws/p>, "other", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</ws/p/other>',
        '1 rename("x", ".bashrc") = 0',
        names=("/ws/p/.bashrc",),
    )
    assert [(a.operation, a.intent, a.path) for a in found] == [
        ("openat", Intent.WRITE, "/ws/p/.bashrc"),
        ("rename", Intent.RENAME, "/ws/p/.bashrc"),
    ]


def test_a_name_nobody_may_write_is_the_one_the_file_has_whatever_was_asked_for() -> None:
    found, _ = read(
        '1 openat(AT_FDCWD</ws/p>, "link", O_WRONLY|O_CREAT, 0666) = 3</ws/p/other>',
        '1 openat(AT_FDCWD</ws/p>, "sub/../.bashrc", O_WRONLY|O_APPEND) = 3</ws/p/.bashrc>',
        '1 openat(AT_FDCWD</ws/p>, ".bashrc", O_RDONLY <unfinished ...>',
        "1 <... openat resumed>) = 3</ws/p/.bashrc>",
        '1 openat(AT_FDCWD</ws/p>, ".bashrc", O_RDWR) = 3</ws/p/.bashrc>(deleted)',
        '1 openat(AT_FDCWD</ws/p>, ".bashrc", O_PATH|O_RDWR) = 3</ws/p/.bashrc>',
        noted=True,
        names=("/ws/p/.bashrc",),
    )
    assert [(a.intent, a.asked, a.path) for a in found] == [
        (Intent.WRITE, "sub/../.bashrc", "/ws/p/.bashrc"),
        (Intent.WRITE, ".bashrc", "/ws/p/.bashrc"),
    ]


# connections


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ('connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}, 16)', "192.0.2.1:80"),
        (
            (
                "connect(3<TCPv6:[1]>, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0),"
                ' inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28)'
            ),
            "[2001:db8::1]:443",
        ),
        (
            (
                'sendto(3, "sin_port=htons(1)"..., 5, MSG_NOSIGNAL,'
                ' {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.53")}, 16)'
            ),
            "192.0.2.53:53",
        ),
        (
            (
                'sendmsg(3, {msg_name={sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.53")},'
                ' msg_namelen=16, msg_iov=[{iov_base=""..., iov_len=5}], msg_iovlen=1, msg_flags=0}, 0)'
            ),
            "192.0.2.53:53",
        ),
        ('connect(3, {sa_family=AF_UNIX, sun_path="/run/a\\"b.sock"}, 110)', '/run/a"b.sock'),
    ],
)
def test_a_connection_that_came_to_nothing_names_its_target(call: str, asked: str) -> None:
    (access,), _ = read(f"1 {call} = -1 ENETUNREACH (Network is unreachable)")
    assert (access.intent, access.asked, access.errno) == (Intent.CONNECT, asked, "ENETUNREACH")


@pytest.mark.parametrize(("kind", "told"), [("SOCK_DGRAM|SOCK_CLOEXEC", 0), ("SOCK_STREAM", 1)])
def test_a_datagram_socket_is_connected_without_anything_leaving(kind: str, told: int) -> None:
    connect = '{sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.53")}, 16)'
    accesses, _ = read(
        f"1 socket(AF_INET, {kind}, IPPROTO_IP) = 3<socket:[77]>",
        f"1 connect(9<socket:[77]>, {connect} = -1 ENETUNREACH (Network is unreachable)",
    )
    assert len(accesses) == told


# the end, and what is none of strace's


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        (["5 exit_group(0) = ?", "5 +++ exited with 0 +++"], True),
        (["5 exit_group(0 <unfinished ...>"], True),
        (["5 exit_group(1)                     = ?"], True),
        (["5 +++ killed by SIGTERM +++"], True),
        (["5 +++ killed by SIGSEGV (core dumped) +++"], True),
        (["5 clone(child_stack=0x1, flags=CLONE_VM|CLONE_THREAD) = 6", "6 exit_group(0) = ?"], True),
        (["5 fork() = 6", "6 exit_group(0) = ?", "6 +++ exited with 0 +++"], False),
        (['5 open("exit_group(0) = ?", O_RDONLY) = 3'], False),
        (['5 execve("/bin/sh", ["exit_group(0)"], 0x1 /* 0 vars */) = 0'], False),
        ([], False),
    ],
)
def test_only_the_commands_own_process_ends_the_trace(lines: list[str], ended: bool) -> None:
    assert read(*lines, root=5)[1].ended is ended


@pytest.mark.parametrize(
    "line",
    [
        "1 ???()                             = ?",
        "1 ???( <unfinished ...>",
        "1 <... ??? resumed>) = ?",
        '1 openat(AT_FDCWD</ws>, "/ws/secret", O_RDONLY|O_CLOEXEC) = -1 (errno 18446744073709551359)',
    ],
)
def test_a_process_killed_in_a_call_did_nothing_by_it_and_the_trace_is_whole(line: str) -> None:
    found, parser = read("1 getpid() = 1", line, "1 +++ killed by SIGKILL +++")
    assert (found, parser.incomplete) == ([], "")


@pytest.mark.parametrize(
    "line",
    [
        "1 ???() = 3",
        "1 ???(1) = ?",
        '1 openat(AT_FDCWD</ws>, "/ws/secret", O_RDONLY|O_CLOEXEC) = -1 (errno 9999)',
        "nonsense",
        "1 ???",
        "1 openat(",
        '1 openat(AT_FDCWD, "a',
        "1 +++ what +++",
        "\x00\x01",
        "1 <... resumed>",
        "open(x",
    ],
)
def test_what_is_none_of_straces_lines_is_said(line: str) -> None:
    found, parser = read("1 getpid() = 1", line)
    assert (found, parser.incomplete != "", parser.ended) == ([], True, False)


def test_a_trace_that_stops_in_a_line_is_said() -> None:
    parser = TraceParser(X86_64, Places(), cwd="/ws/p")
    assert parser.feed(b'1 openat(AT_FDCWD, "a", O_RDONLY) = -1 ENOENT (No such') == []
    assert parser.finish() == []
    assert parser.incomplete == "the trace ends in the middle of a line"


def test_a_line_without_end_is_dropped_and_said() -> None:
    parser = TraceParser(X86_64, Places(), cwd="/ws/p")
    for _ in range(20):
        parser.feed(b"x" * LINE_LIMIT)
    found = parser.feed(f'\n1 open("a", O_RDONLY) {MISSING}\n'.encode())
    assert [access.path for access in found] == ["/ws/p/a"]
    assert parser.incomplete == "a line of the trace is too long"


def test_what_cannot_be_walked_is_said_and_the_rest_is_read() -> None:
    class Failing(Places):
        def walk(self, pid: int, path: str, *, base: str, follows: bool) -> Walked:
            if path == "bad":
                raise PermissionError("no")
            return super().walk(pid, path, base=base, follows=follows)

    parser = TraceParser(X86_64, Failing(), cwd="/ws/p")
    found = parser.feed(f'1 open("bad", O_RDONLY) {MISSING}\n1 open("a", O_RDONLY) {MISSING}\n'.encode())
    assert [access.path for access in found] == ["/ws/p/a"]
    assert "could not be read (PermissionError" in parser.incomplete


def test_the_same_refusal_many_times_is_told_once() -> None:
    found, _ = read(*[f'{1 + n % 7} open("a{n % 50}", O_RDONLY) {MISSING}' for n in range(50_000)])
    assert len(found) == 50


@pytest.mark.slow
def test_processes_without_end_and_calls_without_end_take_no_memory_without_end() -> None:
    """What is kept is bounded; lines of many processes that never end are the worst there is."""
    parser = TraceParser(X86_64, Places(), cwd="/ws/p", root=1)
    tracemalloc.start()
    try:
        for start in range(1, 3 * trace_parser.SPLIT_LIMIT, 1000):
            lines = "".join(
                f'{n} openat(AT_FDCWD, "{n:01000}", O_RDONLY <unfinished ...>\n' for n in range(start, start + 1000)
            )
            parser.feed(lines.encode())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # half of what all of it would take
    assert peak < 1.5 * trace_parser.SPLIT_LIMIT * 2000
    assert parser.incomplete == "too many calls at a time"


@pytest.mark.parametrize("call", ["rename", "link", "symlink"])
def test_a_second_path_is_placed_anew_each_time_though_the_first_is_absolute(call: str) -> None:
    line = f'10 {call}("/tmp/a", "b") {ROFS}'
    found = said(line, '10 chdir("/ws/q") = 0', line, line, root=10, names=("/tmp/a",))
    assert [path for _, path, _ in found if path != "/tmp/a"] == ["/ws/p/b", "/ws/q/b"]


def test_what_a_link_of_dev_leads_to_is_asked_for_each_process() -> None:
    line = f'open("/dev/fd/5/a", O_RDONLY) {MISSING}'
    assert len(said(f"10 {line}", '10 chdir("/ws/q") = 0', f"10 {line}", root=10)) == 2


def test_a_thread_that_leaves_the_shared_working_directory_takes_nobody_with_it() -> None:
    thread = "1 clone(child_stack=NULL, flags=CLONE_FS|CLONE_FILES|CLONE_VM|CLONE_THREAD) = 2"
    moved = '2 chdir("/elsewhere") = 0'
    own, shared = f'1 open("a", O_RDONLY) {MISSING}', f'2 open("a", O_RDONLY) {MISSING}'
    told = said(thread, "2 unshare(CLONE_FS) = 0", moved, own, shared, root=1)
    assert [path for _, path, _ in told] == ["/ws/p/a", "/elsewhere/a"]
    told = said(thread, "2 unshare(CLONE_FILES) = 0", moved, own, root=1)
    assert [path for _, path, _ in told] == ["/elsewhere/a"]


def test_a_descriptor_that_is_not_open_leads_nowhere_and_leaves_no_hole() -> None:
    assert said('10 openat(99, "a", O_RDONLY) = -1 EBADF (Bad file descriptor)', noted=True) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/home/mel/.aws", rb'7 openat(AT_FDCWD</ws/p>, "/home/mel/.aws", O_RDONLY|O_DIRECTORY) = 3</home/mel/.aws>'),
        ("/home/mel/.aws", rb"[pid 7] <... openat resumed>) = 3</home/mel/.aws>"),
        ("/home/\u00e9/.aws", rb'7 openat(AT_FDCWD</ws/p>, ".", O_RDONLY) = 3</home/\303\251/.aws>'),
        ("/home/mel/.aws", rb'7 openat(AT_FDCWD</ws/p>, "x", O_RDONLY) = 3</home/mel/.aws/x>'),
        ("/home/mel/.aws", rb'7 openat(AT_FDCWD</ws/p>, "x", O_RDONLY) = -1 ENOENT (/home/mel/.aws)'),
    ],
)
def test_an_open_of_a_directory_that_shows_nothing_is_told_though_it_succeeded(path: str, line: bytes) -> None:
    parser = TraceParser(X86_64, Places(), cwd="/ws/p", root=7, noted=True, emptied=(path,))
    found = [(one.pid, one.intent, one.path) for one in parser.feed(line + b"\n") if one.path == path]
    assert found == ([(7, Intent.OPEN, path)] if line.endswith(b".aws>") else [])
