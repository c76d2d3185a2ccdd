"""Classic BPF over `struct seccomp_data`: blocks of instructions that fit together, and their assembly.

A block is a list of instructions in which every path ends in a return. Blocks can therefore be laid one after the
other and reached by jumps forward, and none runs into the next. Sources: `include/uapi/linux/filter.h`,
`include/uapi/linux/seccomp.h`, `Documentation/userspace-api/seccomp_filter.rst`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP = 0x05  # BPF_JMP | BPF_JA
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_SET = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
TRACE = 0x7FF00000
ERRNO = 0x00050000

NUMBER = 0  # the offsets of fields in struct seccomp_data
ARCH = 4
ARGUMENTS = 16

MAX_INSTRUCTIONS = 4096
_SHORT = 255


class Instruction(NamedTuple):
    """A `struct sock_filter`; its jumps count instructions from the next one."""

    code: int
    jt: int
    jf: int
    k: int


Block = list[Instruction]


def returns(verdict: int) -> Block:
    """A block that gives a verdict at once."""
    return [Instruction(RETURN, 0, 0, verdict)]


def refuse(errno: int) -> int:
    """The verdict that makes the call fail with `errno`."""
    return ERRNO | errno


def load_low(argument: int) -> Instruction:
    """The load of an argument's low 32 bits, all that the kernel looks at where it takes an `int`."""
    return Instruction(LOAD, 0, 0, ARGUMENTS + 8 * argument)


def load_high(argument: int) -> Instruction:
    """The load of an argument's high 32 bits."""
    return Instruction(LOAD, 0, 0, ARGUMENTS + 8 * argument + 4)


def if_any_set(argument: int, then: int, otherwise: int) -> Block:
    """A block that gives `then` where a 64-bit argument, such as a pointer, is anything but 0."""
    return [
        load_low(argument),
        Instruction(JUMP_EQUAL, 0, 2, 0),
        load_high(argument),
        Instruction(JUMP_EQUAL, 1, 0, 0),
        *returns(then),
        *returns(otherwise),
    ]


def if_any_bit(argument: int, bits: int, then: int, otherwise: int) -> Block:
    """A block that gives `then` where the low 32 bits of an argument have any of `bits`."""
    return [load_low(argument), Instruction(JUMP_SET, 0, 1, bits), *returns(then), *returns(otherwise)]


def if_any_bit_else(argument: int, bits: int, then: Block, otherwise: Block) -> Block:
    """A block that goes on in one of two, by whether the low 32 bits of an argument have any of `bits`."""
    if len(then) > _SHORT:
        raise ValueError(f"a jump over {len(then)} instructions, a conditional one reaches {_SHORT}")
    return [load_low(argument), Instruction(JUMP_SET, 0, len(then), bits), *then, *otherwise]


def if_one_of(argument: int, values: tuple[int, ...], then: int, otherwise: int) -> Block:
    """A block that gives `then` where the low 32 bits of an argument equal one of at most 200 values."""
    last = len(values) - 1
    tests = [Instruction(JUMP_EQUAL, last - i, 0 if i < last else 1, value) for i, value in enumerate(values)]
    return [load_low(argument), *tests, *returns(then), *returns(otherwise)]


def select(entries: list[tuple[int, Block]], otherwise: int) -> Block:
    """A block that finds the accumulator among entries by binary search and goes on in the entry's block.

    Args:
        entries: numbers and their blocks, sorted by number, each number once.
        otherwise: the verdict where no entry has the number.
    """
    if not entries:
        return returns(otherwise)
    if len(entries) == 1:
        number, block = entries[0]
        return [Instruction(JUMP_EQUAL, 1, 0, number), *returns(otherwise), *block]
    middle = len(entries) // 2
    left, right = select(entries[:middle], otherwise), select(entries[middle:], otherwise)
    return [*_skip(JUMP_AT_LEAST, entries[middle][0], len(left)), *left, *right]


def _skip(code: int, k: int, length: int) -> Block:
    """A jump over `length` instructions where the test holds; a conditional jump reaches 255, JA any number."""
    if length <= _SHORT:
        return [Instruction(code, length, 0, k)]
    return [Instruction(code, 0, 1, k), Instruction(JUMP, 0, 0, length)]


def assemble(block: Block) -> bytes:
    """The program as `struct sock_filter[]`: little endian, 8 bytes an instruction.

    Raises:
        ValueError: the program has more than 4096 instructions (BPF_MAXINSNS), which the kernel refuses.
    """
    if not 0 < len(block) <= MAX_INSTRUCTIONS:
        raise ValueError(f"a filter of {len(block)} instructions, the kernel takes 1 to {MAX_INSTRUCTIONS}")
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in block)
