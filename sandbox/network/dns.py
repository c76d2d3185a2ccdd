"""The few DNS messages a front speaks, as code fed bytes: one question in, one answer out, nothing forwarded."""

from __future__ import annotations

import struct
from dataclasses import dataclass

A, PTR, AAAA = 1, 12, 28
IN = 1
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP = 0, 1, 2, 3, 4

#: Seconds an answer may be kept; a name keeps its address as long as the task lives.
TTL = 600

_HEADER = struct.Struct(">HHHHHH")
_QUESTION = struct.Struct(">HH")
_RECORD = struct.Struct(">HHHIH")
_QR, _OPCODE, _AA, _RD, _RA = 0x8000, 0x7800, 0x0400, 0x0100, 0x0080
_MAX_NAME = 255
_MAX_LABEL = 63


class Malformed(ValueError):
    """No answer to it is possible."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question.

    Attributes:
        name: as asked, without the dot at the end; empty for the root.
        code: what is wrong with it already, `NOERROR` when nothing is.
        question: its bytes, for the answer; empty when there is no single one.
    """

    id: int
    flags: int
    name: str
    kind: int
    code: int
    question: bytes


def parse(message: bytes) -> Query:
    """What is asked.

    Raises:
        Malformed: it is too short, or itself an answer.
    """
    if len(message) < _HEADER.size:
        raise Malformed("shorter than a header")
    number, flags, questions, *_ = _HEADER.unpack_from(message)
    if flags & _QR:
        raise Malformed("an answer")
    if flags & _OPCODE:
        return Query(number, flags, "", 0, NOTIMP, b"")
    if questions != 1:
        return Query(number, flags, "", 0, FORMERR, b"")
    try:
        name, end = _name(message, _HEADER.size)
        kind, class_ = _QUESTION.unpack_from(message, end)
    except (Malformed, IndexError, UnicodeDecodeError, struct.error):
        return Query(number, flags, "", 0, FORMERR, b"")
    code = NOERROR if class_ == IN else NOTIMP
    return Query(number, flags, name, kind, code, message[_HEADER.size : end + _QUESTION.size])


def _name(message: bytes, at: int) -> tuple[str, int]:
    labels, start = [], at
    while length := message[at]:
        label = message[at + 1 : at + 1 + length]
        at += 1 + length
        # a dot within a label would make another name of it; a question's name is never compressed
        if length > _MAX_LABEL or len(label) < length or b"." in label or at - start >= _MAX_NAME:
            raise Malformed("not a name")
        labels.append(label.decode("ascii"))
    return ".".join(labels), at + 1


def reply(query: Query, code: int, answers: tuple[bytes, ...] = ()) -> bytes:
    """An answer; `answers` are the data of records of the kind that was asked for."""
    flags = _QR | _AA | (query.flags & _RD) | _RA | code
    head = _HEADER.pack(query.id, flags, 1 if query.question else 0, len(answers), 0, 0)
    # the name is that of the question, at the end of the header
    records = (_RECORD.pack(0xC000 | _HEADER.size, query.kind, IN, TTL, len(data)) + data for data in answers)
    return head + query.question + b"".join(records)


def name_data(name: str) -> bytes:
    """A name as a record's data."""
    return b"".join(bytes((len(label),)) + label.encode("ascii") for label in name.split(".")) + b"\0"
