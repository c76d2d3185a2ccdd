"""The proxy's loop runs until it is stopped, or until nothing is left to do at once."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from sandbox.proxy.io.idle_loop import IdleLoop

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def _loop() -> Iterator[IdleLoop]:
    loop = IdleLoop()
    try:
        yield loop
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_idle(100)
        loop.close()


def test_a_loop_with_nothing_to_do_is_idle_at_once() -> None:
    with _loop() as loop:
        assert loop.run_until_idle(1)


def test_everything_that_follows_from_what_is_ready_is_done_before_the_loop_is_idle() -> None:
    done: list[bytes] = []

    async def echo(sock: socket.socket) -> None:
        while data := await loop.sock_recv(sock, 1):
            done.append(data)
            await loop.sock_sendall(sock, data)

    with _loop() as loop:
        one, other = socket.socketpair()
        with one, other:
            other.setblocking(False)
            one.sendall(b"abc")
            task = loop.create_task(echo(other))
            assert loop.run_until_idle(1000)
            assert (b"".join(done), one.recv(8)) == (b"abc", b"abc")
            assert not task.done()
            # what comes later is work for the next time
            one.shutdown(socket.SHUT_WR)
            assert loop.run_until_idle(1000)
            assert task.done()


def test_a_loop_that_always_has_something_to_do_is_stopped_and_not_idle() -> None:
    turns = 0

    def again() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(again)

    with _loop() as loop:
        handle = loop.call_soon(again)
        assert not loop.run_until_idle(50)
        assert 45 <= turns <= 55
        handle.cancel()


def test_neither_a_timer_nor_a_thread_is_waited_for() -> None:
    with _loop() as loop:
        release = threading.Event()
        later = loop.call_later(3600, pytest.fail, "nobody waits for it")
        worked = loop.run_in_executor(None, release.wait)
        assert loop.run_until_idle(1000)
        assert not worked.done()
        release.set()
        assert loop.run_until_complete(worked)
        later.cancel()
        loop.run_until_complete(loop.shutdown_default_executor())


def test_a_loop_waits_again_once_it_has_been_idle() -> None:
    with _loop() as loop:
        assert loop.run_until_idle(10)
        timer = threading.Timer(0.05, loop.call_soon_threadsafe, (loop.stop,))
        timer.start()
        loop.run_forever()
        timer.join()
