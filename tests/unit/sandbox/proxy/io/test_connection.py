"""A connection between coroutines: who waits hears that it was closed, and who is cancelled takes nothing."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from sandbox.proxy.io.connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def _pair() -> AsyncIterator[tuple[Connection, socket.socket]]:
    one, other = socket.socketpair()
    with Connection(one) as connection, other:
        yield connection, other


async def _begun(coroutine: object) -> asyncio.Task[object]:
    """A task that has come to its first wait."""
    assert asyncio.iscoroutine(coroutine)
    task: asyncio.Task[object] = asyncio.create_task(coroutine)
    await asyncio.sleep(0)
    return task


def test_who_waits_for_a_connection_hears_that_it_was_closed() -> None:
    async def main() -> None:
        async with _pair() as (connection, _):
            filled = memoryview(bytes(1 << 22))
            reading, writing = await _begun(connection.recv(1)), await _begun(connection.send(filled))
            connection.close()
            for task in (reading, writing):
                with pytest.raises(ConnectionAbortedError):
                    await task
            with pytest.raises(OSError, match="Bad file descriptor"):
                await connection.recv(1)

    asyncio.run(main())


def test_a_cancelled_reader_takes_nothing_and_does_not_end_the_wait_of_the_next_one() -> None:
    async def main() -> None:
        async with _pair() as (connection, other):
            first = await _begun(connection.recv(1))
            first.cancel()
            second = await _begun(connection.recv(1))
            assert first.cancelled()
            other.sendall(b"x")
            assert await asyncio.wait_for(second, 10) == b"x"

    asyncio.run(main())


def test_a_number_that_is_given_again_is_watched_again() -> None:
    async def main() -> None:
        for _ in range(3):
            async with _pair() as (connection, other):
                reading = await _begun(connection.recv(1))
                number = connection.fd
                connection.close()
                with pytest.raises(ConnectionAbortedError):
                    await reading
                other.close()
                # the lowest free number is taken (open(2))
                async with _pair() as (again, peer):
                    assert number in (again.fd, peer.fileno())
                    reading = await _begun(again.recv(1))
                    peer.sendall(b"y")
                    assert await asyncio.wait_for(reading, 10) == b"y"

    asyncio.run(main())


def test_a_buffer_that_is_passed_on_may_be_overwritten_while_the_rest_waits() -> None:
    async def main() -> None:
        async with _pair() as (connection, other):
            buffer = bytearray(b"a" * (1 << 22))
            passing = await _begun(connection.pass_on(memoryview(buffer)))
            assert not passing.done()
            buffer[:] = b"b" * len(buffer)
            got, left = b"", len(buffer)
            other.setblocking(False)
            while left:
                try:
                    got = other.recv(1 << 16)
                except BlockingIOError:
                    await asyncio.sleep(0)
                    continue
                assert set(got) == set(b"a")
                left -= len(got)
            await passing

    asyncio.run(main())
