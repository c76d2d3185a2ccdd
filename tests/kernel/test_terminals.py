"""The grant `pty`: a real terminal for the command, and what a command gets without it."""

from __future__ import annotations

import os
import shutil
import signal
import termios
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import Ready, Session
from sandbox.terminal.terminal_modes import resize
from tests.kernel.conftest import Workspace, shown
from tests.support.talks import Talk, in_background

if TYPE_CHECKING:
    from sandbox import RunResult

PTY = {"pty": True}
_FAKE_INPUT = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 0xFFFFFFFF << 32):
    for fd in (0, os.open("/dev/tty", os.O_RDWR)):
        answer = libc.syscall(16 if os.uname().machine == "x86_64" else 29, fd, ctypes.c_ulong(request), b"x")
        print(answer, errno.errorcode[ctypes.get_errno()])
"""


def terminal(shop: Workspace, command: str, **options: Any) -> RunResult:
    return shop.run(command, fields=PTY, **options)


def test_all_three_streams_are_one_terminal_and_it_is_the_commands_own(shop: Workspace) -> None:
    result = terminal(
        shop,
        "tty; for n in 0 1 2; do test -t $n || echo $n is none; done; echo err >&2; echo own >/dev/tty;"
        " stty size; ps -o tty= $$; cat lib/cart.py",
        read=["lib/"],
    )
    assert (result.exit_code, result.violations, result.refusals) == (0, (), ()), shown(result)
    assert result.stdout.decode().split() == ["/dev/pts/0", "err", "own", "24", "80", "pts/0", "cart"]
    assert result.stderr == b""
    assert result.trace == "complete"


def test_without_the_grant_there_is_none_but_what_the_task_makes_itself(shop: Workspace) -> None:
    out = shop.passes(
        "for n in 0 1 2; do test -t $n && echo $n is one; done; (: </dev/tty) 2>/dev/null || echo none;"
        " ls /dev/pts; script -qec 'tty; test -t 0 && echo inner' /dev/null </dev/null;"
        " python3 -c 'import pty; print(pty.spawn([\"tty\"]))'"
    )
    assert out.split() == ["none", "ptmx", "/dev/pts/0", "inner", "/dev/pts/0", "0"]


def test_of_the_hosts_terminals_a_task_finds_none(quick_shop: Workspace, screen: tuple[int, int]) -> None:
    name = os.ttyname(screen[1])
    result = terminal(quick_shop, "ls /dev/pts", stdin=screen[1], terminal=screen[1])
    assert result.stdout.decode().split() == ["0", "ptmx"], (name, shown(result))


def test_every_reader_finds_what_is_left_and_then_the_end(shop: Workspace) -> None:
    result = terminal(shop, "head -n1; cat; cat; read line || echo over", stdin=b"one\ntwo\nthree")
    # what is typed by nobody at a terminal is not shown as it is read
    assert result.stdout.decode().split() == ["one", "two", "threeover"], shown(result)


def test_an_input_at_its_end_ends_an_interactive_shell(quick_shop: Workspace) -> None:
    result = terminal(quick_shop, "env PS1= bash --norc --noprofile -i; cat", stdin=b"echo $((40 + 2))\n")
    assert (result.exit_code, result.refusals) == (0, ()), shown(result)
    assert b"42" in result.stdout


def test_a_regular_file_can_be_typed(quick_shop: Workspace) -> None:
    with open(quick_shop.project / "notes.md", "rb") as file:
        assert terminal(quick_shop, "cat", stdin=file.fileno()).stdout == b"notes\r\n"


def test_a_lot_of_output_comes_whole_and_in_order(quick_shop: Workspace) -> None:
    heard: list[bytes] = []
    result = terminal(quick_shop, "seq 1 200000", on_stdout=heard.append)
    assert result.stdout.replace(b"\r", b"") == b"".join(b"%d\n" % n for n in range(1, 200001))
    assert b"".join(heard) == result.stdout


def test_what_is_typed_for_long_arrives_whole(quick_shop: Workspace) -> None:
    lines = b"".join(b"line %d\n" % n for n in range(50000))
    result = terminal(quick_shop, "sha256sum", stdin=lines)
    plain = quick_shop.run("sha256sum", stdin=lines)
    assert result.stdout.split() == plain.stdout.split(), shown(result)


def test_job_control_works_and_control_c_reaches_the_foreground_alone(shop: Workspace, talk: Talk) -> None:
    wait = in_background(
        lambda: terminal(
            shop,
            "exec env PS1='ready> ' bash --norc --noprofile -i",
            stdin=talk.stdin,
            on_stdout=talk.heard,
            capture=False,
        )
    )

    def say(text: str) -> None:
        # what is typed while a shell takes the terminal back from a job may be dropped
        talk.until("ready> ")
        talk.say(text)

    # `exec`: a signal that comes while dash forks is lost on what it forks, and dash waits on
    say("sh -c 'echo up-$((1+1)); exec sleep 1000'\n")
    talk.until("up-2")
    talk.say("\x03")
    say("echo status-$?-end\n")
    talk.until("status-130-end")
    say("sleep 1000 &\n")
    say("jobs; echo jobs-$((3+4))\n")
    talk.until("Running")
    talk.until("jobs-7")
    say("sh -c 'echo stop-$((2+2)); exec sleep 1000'\n")
    talk.until("stop-4")
    talk.say("\x1a")
    talk.until("Stopped")
    say("kill %1 %2; exit 7\n")
    # the first time a shell may only say that jobs are left
    talk.say("exit 7\n")
    result = wait()
    assert result.exit_code == 7, shown(result)


def test_an_interrupt_sent_to_the_session_is_the_foregrounds(quick_shop: Workspace, talk: Talk) -> None:
    with Session() as session:
        request = quick_shop.request(pty=True)
        wait = in_background(
            lambda: session.run(
                request,
                command="exec env PS1='ready> ' bash --norc --noprofile -i",
                stdin=talk.stdin,
                on_stdout=talk.heard,
                capture=False,
            )
        )
        talk.say("sh -c 'trap \"echo trapped-$((5+5)); exit 3\" INT; echo up-$((1+1)); sleep 1000 & wait'\n")
        talk.until("up-2")
        session.signal(signal.SIGINT)
        talk.until("trapped-10")
        talk.until("ready> ")
        talk.say("exit 9\n")
        assert wait().exit_code == 9


def test_a_termination_reaches_the_commands_traps(quick_shop: Workspace, talk: Talk) -> None:
    with Session() as session:
        request = quick_shop.request(pty=True)
        wait = in_background(
            lambda: session.run(
                request,
                command="trap 'echo bye-$((1+2)); exit 4' TERM; echo up; sleep 1000 & wait",
                stdin=talk.stdin,
                on_stdout=talk.heard,
            )
        )
        talk.until("up")
        session.signal(signal.SIGTERM)
        assert wait().exit_code == 4
        talk.until("bye-3")


def test_the_callers_terminal_gives_its_size_and_modes_and_is_raw_meanwhile(
    quick_shop: Workspace, screen: tuple[int, int], talk: Talk
) -> None:
    far, near = screen
    modes = termios.tcgetattr(near)
    modes[6][termios.VERASE] = b"\x15"
    termios.tcsetattr(near, termios.TCSANOW, modes)
    before = termios.tcgetattr(near)
    with Session() as session:
        request = quick_shop.request(pty=True)
        wait = in_background(
            lambda: session.run(
                request,
                command="trap 'stty size; exit 5' WINCH; stty size; stty -a; echo up; while :; do sleep 0.1; done",
                stdin=near,
                terminal=near,
                on_stdout=talk.heard,
            )
        )
        talk.until("33 101")
        talk.until("erase = ^U")
        talk.until("up")
        assert not termios.tcgetattr(near)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
        resize(far, 44, 120)
        session.signal(signal.SIGWINCH)
        talk.until("44 120")
        assert wait().exit_code == 5
    assert termios.tcgetattr(near) == before


def test_keys_of_the_callers_terminal_reach_the_foreground(
    quick_shop: Workspace, screen: tuple[int, int], talk: Talk
) -> None:
    far, near = screen
    before = termios.tcgetattr(near)
    wait = in_background(
        lambda: terminal(
            quick_shop, "echo up; exec sleep 1000", stdin=near, terminal=near, on_stdout=talk.heard, capture=False
        )
    )
    talk.until("up")
    os.write(far, b"\x03")
    result = wait()
    assert (result.signal, result.exit_code) == ("SIGINT", 130), shown(result)
    assert termios.tcgetattr(near) == before


def test_a_size_alone_leaves_the_callers_terminal_as_it_is(
    quick_shop: Workspace, screen: tuple[int, int], talk: Talk
) -> None:
    _, near = screen
    before = termios.tcgetattr(near)
    wait = in_background(
        lambda: terminal(quick_shop, "stty size; cat", stdin=talk.stdin, terminal=near, on_stdout=talk.heard)
    )
    talk.until("33 101")
    assert termios.tcgetattr(near) == before
    talk.say("typed\n\x04")
    result = wait()
    assert result.stdout == b"33 101\r\ntyped\r\n", "what comes from elsewhere is not shown as it is read"


def test_nobody_looking_any_more_is_a_hangup(quick_shop: Workspace) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = terminal(quick_shop, "trap 'exit 9' HUP; while :; do echo more; done", stdout=writing)
    finally:
        os.close(writing)
    assert result.exit_code == 9, shown(result)


def test_a_descriptor_gets_what_is_shown(quick_shop: Workspace) -> None:
    reading, writing = os.pipe()
    result = terminal(quick_shop, "echo out; echo err >&2", stdout=writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"out\r\nerr\r\n"
    assert (result.stdout, result.stderr) == (b"", b"")


def test_a_command_that_takes_too_long_or_is_killed_ends_with_its_terminal(quick_shop: Workspace, talk: Talk) -> None:
    slow = terminal(quick_shop, "sleep 1000", timeout=0.2)
    assert (slow.exit_code, slow.timed_out) == (124, True), shown(slow)
    with Session() as session:
        request = quick_shop.request(pty=True)
        wait = in_background(
            lambda: session.run(request, command="trap '' TERM; echo up; sleep 1000", on_stdout=talk.heard)
        )
        talk.until("up")
        session.signal(signal.SIGKILL)
        assert wait().signal == "SIGKILL"


def test_no_descriptor_of_a_terminal_outlives_its_run(quick_shop: Workspace) -> None:
    terminal(quick_shop, "echo x")
    before = len(os.listdir("/proc/self/fd"))
    for command in ("cat", "exit 3", "sleep 1000 & echo x", "kill -9 $$"):
        terminal(quick_shop, command)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_background_child_that_keeps_the_terminal_ends_with_the_task(quick_shop: Workspace) -> None:
    result = terminal(quick_shop, "setsid sleep 1000 & sleep 1000 & echo over")
    assert (result.exit_code, result.stdout) == (0, b"over\r\n"), shown(result)


def test_nothing_can_be_typed_into_the_terminal_from_inside(shop: Workspace) -> None:
    (shop.project / "fake.py").write_text(_FAKE_INPUT, encoding="utf-8")
    result = terminal(shop, "python3 fake.py", read=["fake.py"])
    assert result.stdout.split() == [b"-1", b"EPERM"] * 8, shown(result)


def test_a_server_has_one_too(quick_shop: Workspace) -> None:
    with Session() as session:
        server = session.start(
            quick_shop.request(pty=True),
            command="test -t 1 && echo ready on $(tty); exec sleep 1000",
            ready=Ready(output="ready on /dev/pts/0", timeout=60),
        )
        server.wait_ready()
        assert server.stop().signal == "SIGTERM"


@pytest.mark.skipif(shutil.which("script") is None, reason="script is not installed")
def test_programs_that_make_terminals_of_their_own_work_in_one(shop: Workspace, talk: Talk) -> None:
    command = "script -qec 'tty; stty size' /dev/null; python3 -c 'import pty; pty.spawn([\"tty\"])'"
    result = terminal(shop, command, stdin=talk.stdin)
    assert result.stdout.decode().split() == ["/dev/pts/1", "24", "80", "/dev/pts/1"], shown(result)
