from __future__ import annotations

import pytest

from sandbox.linux.kernel import bpf


def test_an_instruction_is_eight_little_endian_bytes() -> None:
    assert bpf.assemble([bpf.Instruction(0x15, 1, 2, 0xC000003E)]) == bytes([0x15, 0, 1, 2, 0x3E, 0, 0, 0xC0])


def test_a_program_longer_than_the_kernel_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="4097 instructions"):
        bpf.assemble(bpf.returns(bpf.ALLOW) * 4097)
    with pytest.raises(ValueError, match="0 instructions"):
        bpf.assemble([])


def test_a_jump_over_more_than_255_instructions_goes_by_a_long_one() -> None:
    long = bpf.returns(bpf.NOTIFY) * 300
    block = bpf.select([(1, long), (2, long)], bpf.ALLOW)
    assert block[0] == bpf.Instruction(bpf.JUMP_AT_LEAST, 0, 1, 2)
    assert block[1] == bpf.Instruction(bpf.JUMP, 0, 0, 302)
    assert all(i.jt <= 255 and i.jf <= 255 for i in block)
    assert bpf.assemble(block)


def test_nothing_to_select_from_is_the_default() -> None:
    assert bpf.select([], bpf.ALLOW) == bpf.returns(bpf.ALLOW)
