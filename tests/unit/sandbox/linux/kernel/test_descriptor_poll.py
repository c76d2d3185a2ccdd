"""Descriptors that are waited for, and those that rest meanwhile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.kernel.descriptor_poll import DescriptorPoll

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONG = 600.0


class Pipe:
    """What is written to it is heard through a `DescriptorPoll`."""

    def __init__(self, watching: DescriptorPoll) -> None:
        self.reads, self._writes = os.pipe()
        self.heard: list[bytes] = []
        watching.watch(self.reads, lambda _: self.heard.append(os.read(self.reads, 99)))

    def say(self, what: bytes) -> None:
        os.write(self._writes, what)

    def close(self) -> None:
        os.close(self._writes)


@pytest.fixture
def watching() -> DescriptorPoll:
    return DescriptorPoll()


@pytest.fixture
def pipe(watching: DescriptorPoll) -> Iterator[Pipe]:
    made = Pipe(watching)
    yield made
    os.close(made.reads)


def test_what_is_there_is_handed_to_its_handler_and_nothing_else_is_called(
    watching: DescriptorPoll, pipe: Pipe
) -> None:
    other = Pipe(watching)
    assert not watching.wait(0)
    pipe.say(b"a")
    assert watching.wait(None)
    assert (pipe.heard, other.heard) == ([b"a"], [])
    watching.unwatch(pipe.reads)
    watching.unwatch(pipe.reads)
    pipe.say(b"b")
    assert not watching.wait(0)
    assert pipe.heard == [b"a"]


def test_what_rests_is_not_heard_until_it_has_rested_and_then_all_at_once(watching: DescriptorPoll, pipe: Pipe) -> None:
    other = Pipe(watching)
    watching.rest(pipe.reads, _LONG)
    pipe.say(b"a")
    assert not watching.wait(0)
    other.say(b"o")
    assert watching.wait(_LONG)
    pipe.say(b"b")
    assert (pipe.heard, other.heard) == ([], [b"o"])
    watching.rest(pipe.reads, 0.01)
    while not pipe.heard:
        watching.wait(None)
    assert pipe.heard == [b"ab"]


def test_a_rest_ends_a_longer_wait_and_not_the_other_way_round(watching: DescriptorPoll, pipe: Pipe) -> None:
    pipe.say(b"a")
    watching.rest(pipe.reads, 0.01)
    while not watching.wait(_LONG):
        pass
    watching.rest(pipe.reads, _LONG)
    assert not watching.wait(0.001)
    assert pipe.heard == [b"a"]


def test_the_end_of_what_rests_is_told_at_once(watching: DescriptorPoll, pipe: Pipe) -> None:
    watching.rest(pipe.reads, _LONG)
    pipe.say(b"last")
    pipe.close()
    assert watching.wait(_LONG)
    assert watching.wait(_LONG)
    assert pipe.heard == [b"last", b""]


def test_what_is_watched_no_longer_rests_no_longer(watching: DescriptorPoll, pipe: Pipe) -> None:
    watching.rest(pipe.reads, 0.0)
    watching.unwatch(pipe.reads)
    assert not watching.wait(0)
