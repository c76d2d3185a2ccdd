"""The DNS messages that a proxy speaks, through dnspython: one question in, one answer out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dns import flags, message, name, opcode, rcode, rdata, rdataclass, rdatatype, rrset

if TYPE_CHECKING:
    from dns.message import Message

A, PTR, AAAA = int(rdatatype.A), int(rdatatype.PTR), int(rdatatype.AAAA)
NOERROR, FORMERR, SERVFAIL = int(rcode.NOERROR), int(rcode.FORMERR), int(rcode.SERVFAIL)
NXDOMAIN, NOTIMP = int(rcode.NXDOMAIN), int(rcode.NOTIMP)

#: Seconds that an answer may be kept; a name keeps its address as long as the task lives.
TTL = 600

_HEADER_SIZE = 12
_IS_ANSWER = 0x80


class MalformedQuery(ValueError):
    """A message that no answer is possible to."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question.

    Attributes:
        message: the question as dnspython reads it, without the parts that are malformed.
        name: the name asked for, without the dot at the end; empty for the root.
        kind: the type of record asked for, 0 when there is no single question.
        code: the error that the question already has, `NOERROR` where it has none.
    """

    message: Message
    name: str
    kind: int
    code: int

    @property
    def id(self) -> int:
        """The number that the answer has to carry."""
        return self.message.id


def parse(raw: bytes) -> Query:
    """The question in a message.

    Raises:
        MalformedQuery: the message is too short, or itself an answer.
    """
    if len(raw) < _HEADER_SIZE:
        raise MalformedQuery("shorter than a header")
    if raw[2] & _IS_ANSWER:
        raise MalformedQuery("an answer")
    bare = message.Message(id=int.from_bytes(raw[:2], "big"))
    bare.flags = flags.Flag(int.from_bytes(raw[2:4], "big") & (flags.RD | flags.CD))
    if opcode.from_flags(int.from_bytes(raw[2:4], "big")) != opcode.QUERY:
        return Query(bare, "", 0, NOTIMP)
    try:
        read = message.from_wire(raw, question_only=True)
        (asked,) = read.question
        text = _text(asked.name)
    except Exception:  # noqa: BLE001  the sender may be hostile, and is told in any case
        return Query(bare, "", 0, FORMERR)
    return Query(read, text, int(asked.rdtype), NOERROR if asked.rdclass == rdataclass.IN else NOTIMP)


def _text(asked: name.Name) -> str:
    labels = [label for label in asked.labels if label]
    if any(b"." in label for label in labels):
        # a dot inside a label would make another name of it
        raise MalformedQuery("not a name")
    return b".".join(labels).decode("ascii")


def reply(query: Query, code: int, answers: tuple[str, ...] = ()) -> bytes:
    """An answer whose records are of the kind that was asked for, as text: addresses, or a name for `PTR`."""
    answer = message.make_response(query.message, recursion_available=True)
    answer.flags |= flags.AA
    answer.set_rcode(rcode.Rcode(code))
    if answers:
        kind = rdatatype.RdataType(query.kind)
        records = [rdata.from_text(rdataclass.IN, kind, _absolute(text, query.kind)) for text in answers]
        answer.answer.append(rrset.from_rdata_list(query.message.question[0].name, TTL, records))
    return answer.to_wire()


def _absolute(text: str, kind: int) -> str:
    return f"{text}." if kind == PTR else text
