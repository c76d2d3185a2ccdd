"""The executor's side of an attempt, with a warden that says what it is told to and is gone."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from sandbox.linux.run.attempt import Attempt
from sandbox.linux.warden_messages import Failed, Spec, encode
from sandbox.terminal.output_stream import OutputStream

if TYPE_CHECKING:
    from sandbox.linux.run.attempt import Report

WHY = Failed(reason="no nested sandbox is made for this task", hint="weakerWhenNested = true")


def _attempted(words: bytes) -> Report:
    """The report of an attempt whose warden sent these words and was gone before the spec was sent."""

    def hand_over(descriptors: list[int]) -> None:
        with socket.socket(fileno=os.dup(descriptors[0])) as warden:
            warden.sendall(words)

    spec = Spec(operations=(), boundary=(), command=("true",), environment={}, cwd="/")
    attempt = Attempt(spec, stdin=None, stdout=OutputStream(), stderr=OutputStream(), on_access=lambda _: None)
    return attempt.run(hand_over)


def test_the_words_of_a_warden_that_is_gone_before_it_is_spoken_to_are_heard() -> None:
    assert _attempted(encode(WHY)).failed == WHY


@pytest.mark.parametrize("words", [b"", encode(WHY)[:-3]], ids=["none", "cut short"])
def test_a_warden_that_is_gone_without_a_whole_word_has_said_none(words: bytes) -> None:
    report = _attempted(words)
    assert (report.started, report.finished, report.failed) == (None, None, None)
