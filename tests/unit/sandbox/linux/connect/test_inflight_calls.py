"""Whether a call that was let go has picked its socket, asked of real threads."""

from __future__ import annotations

import contextlib
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.connect import inflight_calls
from sandbox.linux.connect.inflight_calls import InflightCalls
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of Linux")

_MACHINE = platform.machine()
_PATIENCE = 20.0


@pytest.fixture
def inflight() -> InflightCalls:
    numbers = ARCHITECTURES[_MACHINE].numbers
    return InflightCalls(frozenset(numbers[name] for name in ("sendto", "sendmsg", "sendmmsg")))


@pytest.fixture
def spinning() -> Iterator[int]:
    loop = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # until it has begun, it stands in one call after the other
        assert process.stdout.readline() == b"\n"
        yield process.pid
        process.kill()


def test_nothing_on_its_way_is_settled_at_once(inflight: InflightCalls) -> None:
    assert inflight.settle(0.0)


def test_one_that_sleeps_in_another_call_is_past_it(inflight: InflightCalls) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        inflight.let_go(process.pid)
        assert inflight.settle(_PATIENCE)
        process.kill()


def test_one_that_is_gone_is_past_it(inflight: InflightCalls) -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    inflight.let_go(process.pid)
    assert inflight.settle(_PATIENCE)


def test_one_that_arrived_elsewhere_is_forgotten(inflight: InflightCalls, spinning: int) -> None:
    inflight.let_go(spinning)
    inflight.arrived(spinning)
    assert inflight.settle(0.0)


def test_one_that_runs_is_past_it_after_a_while(
    inflight: InflightCalls, spinning: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # how long it ran before it is asked again is up to who else is running
    ran = [5, 5, 5, 5 + inflight_calls._PICKED, 6 + inflight_calls._PICKED]
    monkeypatch.setattr(inflight_calls, "_ran", lambda _thread: ran.pop(0))
    inflight.let_go(spinning)
    assert not inflight.settle(0.0)
    assert inflight.settle(_PATIENCE)
    assert ran == []


def test_the_processor_time_of_one_that_runs_is_counted(inflight: InflightCalls, spinning: int) -> None:
    inflight.let_go(spinning)
    assert inflight.settle(_PATIENCE)


def test_one_that_cannot_run_is_not(inflight: InflightCalls, spinning: int) -> None:
    # a stopped thread stands outside its call: no longer than here does this hold anybody up
    inflight.let_go(spinning)
    subprocess.run(["kill", f"-{signal.SIGSTOP.value}", str(spinning)], check=True)
    assert inflight.settle(_PATIENCE)


def test_one_blocked_in_its_send_is_past_it(inflight: InflightCalls) -> None:
    one, other = socket.socketpair()
    numbers: list[int] = []

    def send() -> None:
        numbers.append(threading.get_native_id())
        with contextlib.suppress(OSError):
            one.sendmsg([bytes(8 << 20)])

    thread = threading.Thread(target=send)
    thread.start()
    deadline = time.monotonic() + _PATIENCE
    while not numbers and time.monotonic() < deadline:
        time.sleep(0.001)
    inflight.let_go(numbers[0])
    assert inflight.settle(_PATIENCE)
    other.close()
    with one:
        thread.join()
