"""A task's terminal on macOS, driven by stand-ins: what is made here are the terminals of this machine."""

from __future__ import annotations

import os
import signal
import termios
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.macos import pty
from sandbox.macos.run import MacRun
from sandbox.terminal.terminal_modes import resize
from tests.support.fake_mac import FakeMac, Sessionless, mac_request
from tests.support.talks import Talk, in_background

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.contract.results import RunResult

# each runs a command in a terminal
pytestmark = pytest.mark.slow

_LONG = 60.0


class Mac:
    """Runs commands on terminals."""

    def __init__(self, root: Path) -> None:
        self.fake = FakeMac.at(root / "mac")
        self.project = root.resolve() / "ws" / "shop"
        self._temp = root / "temp"
        self.project.mkdir(parents=True)

    def run(self, command: str, **options: Any) -> RunResult:
        return self.made(command, **options)()

    def made(self, command: str, **options: Any) -> MacRun:
        request = mac_request(self.project, self._temp, workspace=self.project.parent, pty=True)
        options = {"timeout": _LONG, **options}
        return MacRun(Sessionless(), request, command, options, system=self.fake.tools)  # type: ignore[arg-type]


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


def test_all_three_streams_are_one_terminal_and_it_is_the_commands_own(mac: Mac) -> None:
    heard: list[bytes] = []
    result = mac.run(
        "for n in 0 1 2; do test -t $n || echo $n is none; done; echo err >&2; echo own >/dev/tty; stty size;"
        ' test "$(ps -o tty= $$)" = "$(tty | cut -c6-)" && echo same; exit 3',
        on_stdout=heard.append,
    )
    assert (result.exit_code, result.refusals) == (3, ()), result
    assert result.stdout == b"".join(heard) == b"err\r\nown\r\n24 80\r\nsame\r\n"
    assert result.stderr == b""


def test_the_variables_are_the_commands_and_nothing_of_what_led_it_there(mac: Mac) -> None:
    result = mac.run(
        'echo "$WHO|$PYTHONHOME"; ls /proc/self/fd | tr "\\n" " "', env={"WHO": "a\nb=c", "PYTHONHOME": "/x"}
    )
    # the last is the directory `ls` reads
    assert result.stdout == b"a\r\nb=c|/x\r\n0 1 2 3 ", result


def test_a_signal_nobody_asked_for_is_not_ignored(mac: Mac) -> None:
    line, _, ignored = mac.run("yes | head -n1; grep SigIgn /proc/self/status").stdout.split()
    # those above 31 are the C library's own
    assert (line, int(ignored, 16) & 0x7FFFFFFF) == (b"y", 0)


def test_every_reader_finds_what_is_left_and_then_the_end(mac: Mac) -> None:
    result = mac.run("head -n1; cat; cat; read line || echo over", stdin=b"one\ntwo\nthree")
    # what is typed by nobody at a terminal is not shown as it is read
    assert result.stdout.split() == [b"one", b"two", b"threeover"], result
    assert mac.run("cat; echo over").stdout == b"over\r\n"


def test_a_regular_file_can_be_typed(mac: Mac) -> None:
    words = mac.project / "words"
    words.write_text("one\ntwo\n", encoding="utf-8")
    with words.open("rb") as file:
        assert mac.run("cat", stdin=file.fileno()).stdout == b"one\r\ntwo\r\n"


def test_the_size_is_the_callers_and_follows_it(mac: Mac, screen: tuple[int, int], talk: Talk) -> None:
    _, near = screen
    run = mac.made(
        "trap 'stty size; exit 4' WINCH; stty size; echo ready; while :; do sleep 0.05; done",
        terminal=near,
        stdin=talk.stdin,
        on_stdout=talk.heard,
    )
    wait = in_background(run)
    talk.until("33 101")
    talk.until("ready")
    resize(near, 40, 90)
    run.signal(signal.SIGWINCH)
    result = wait()
    assert (result.exit_code, result.stdout.split(b"\r\n")[-2]) == (4, b"40 90")


def test_the_callers_terminal_passes_on_every_key_and_is_then_as_it_was(
    mac: Mac, screen: tuple[int, int], talk: Talk
) -> None:
    far, near = screen
    before = termios.tcgetattr(near)
    wait = in_background(
        mac.made("echo ready; read line; echo got $line", terminal=near, stdin=near, on_stdout=talk.heard)
    )
    talk.until("ready")
    assert not termios.tcgetattr(near)[3] & termios.ICANON
    os.write(far, b"words\r")
    # shown as it is typed, by the task's terminal
    assert wait().stdout == b"ready\r\nwords\r\ngot words\r\n"
    assert termios.tcgetattr(near) == before


def test_a_key_reaches_what_is_in_the_foreground(mac: Mac, talk: Talk) -> None:
    run = mac.made(
        "set -m; trap 'echo outer' INT; sh -c \"trap 'echo inner; exit 5' INT; echo ready;"
        ' while :; do sleep 0.05; done"; echo $?',
        stdin=talk.stdin,
        on_stdout=talk.heard,
    )
    wait = in_background(run)
    talk.until("ready")
    run.signal(signal.SIGINT)
    result = wait()
    assert result.stdout.split() == [b"ready", b"inner", b"5"], result


def test_typed_keys_are_signals(mac: Mac, talk: Talk) -> None:
    wait = in_background(
        mac.made(
            "trap 'echo caught; exit 6' INT; echo ready; while :; do sleep 0.05; done",
            stdin=talk.stdin,
            on_stdout=talk.heard,
        )
    )
    talk.until("ready")
    talk.say("\x03")
    result = wait()
    assert (result.exit_code, b"caught" in result.stdout) == (6, True)


def test_what_ends_a_command_reaches_its_foreground_too(mac: Mac, talk: Talk) -> None:
    run = mac.made(
        "set -m; trap 'echo told' TERM; sh -c 'echo ready; exec sleep 1000'; echo status $?",
        on_stdout=talk.heard,
    )
    wait = in_background(run)
    talk.until("ready")
    run.signal(signal.SIGTERM)
    result = wait()
    assert b"told" in result.stdout, result
    assert b"status 143" in result.stdout, result


def test_time_runs_out_on_a_terminal(mac: Mac) -> None:
    result = mac.run("sleep 1000", timeout=0.5)
    assert (result.exit_code, result.timed_out, result.signal) == (124, True, "SIGTERM")


def test_a_child_that_holds_the_terminal_does_not_hold_the_run_and_hears_it_hang_up(mac: Mac) -> None:
    result = mac.run(
        "setsid sh -c 'echo $$ > pid; echo held; while echo more; do sleep 0.02; done 2>/dev/null; mkfifo gone' &"
        " until test -s pid; do sleep 0.02; done; echo over"
    )
    assert (result.exit_code, b"over\r\n" in result.stdout) == (0, True)
    gone = threading.Event()
    for _ in range(3000):
        if (mac.project / "gone").exists():
            break
        gone.wait(0.01)
    assert (mac.project / "gone").exists()


def test_all_that_is_shown_arrives_however_much(mac: Mac) -> None:
    result = mac.run("seq 1 60000; printf end")
    assert result.stdout.split() == [*(str(n).encode() for n in range(1, 60001)), b"end"]


def test_output_goes_to_a_descriptor_and_its_end_hangs_the_terminal_up(mac: Mac, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        assert mac.run("echo shown; echo err >&2", stdout=file.fileno()).exit_code == 0
    assert (tmp_path / "out").read_bytes() == b"shown\r\nerr\r\n"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = mac.run("trap 'exit 9' HUP; while :; do echo on; sleep 0.02; done", stdout=writing)
    finally:
        os.close(writing)
    assert result.exit_code == 9


def test_a_profile_that_is_refused_is_told_by_name(mac: Mac) -> None:
    mac.fake.having("malformed")
    result = mac.run("touch ran")
    assert (result.exit_code, result.started) == (125, False)
    assert "macOS refused the profile" in result.refusals[0].message
    assert not (mac.project / "ran").exists()


def test_a_run_that_is_stopped_ends(mac: Mac, talk: Talk) -> None:
    run = mac.made("echo ready; sleep 1000", on_stdout=talk.heard)
    wait = in_background(run)
    talk.until("ready")
    run.stop()
    assert wait().signal == "SIGKILL"


def test_a_terminal_nobody_can_wait_for_is_refused_and_let_go_of(monkeypatch: pytest.MonkeyPatch, mac: Mac) -> None:
    made: list[int] = []
    make = os.openpty

    def kept() -> tuple[int, int]:
        made.extend(make())
        return made[-2], made[-1]

    monkeypatch.setattr(pty, "_HIGHEST", 2)
    monkeypatch.setattr(os, "openpty", kept)
    result = mac.run("touch ran")
    assert result.exit_code == 125
    assert "too many files" in result.refusals[0].message
    assert not (mac.project / "ran").exists()
    assert [fd for fd in made if os.isatty(fd)] == []
    assert len(made) == 2
