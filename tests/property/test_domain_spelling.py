"""Laws: the tests of a host's parts say what the grammar's regular expressions would."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.base import host_patterns

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_PORT = r"[1-9][0-9]{0,4}"
_NUMERIC = r"[0-9]+|0x[0-9a-f]*"
_IPV4 = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}"

_octets = st.one_of(
    st.integers(0, 300).map(str), st.sampled_from(["", "00", "01", "0x1", "\u0663", "1\n", "-1", "+1", "1_0"])
)
_texts = st.one_of(
    st.text("abz019_-.x\n\u00e9\u0661", max_size=70),
    st.text("a-", min_size=61, max_size=65),
    st.lists(_octets, min_size=3, max_size=5).map(".".join),
    st.integers(0, 10**7).map(str),
    st.text("0123456789abcdefgx", max_size=6).map("0x".__add__),
)


@settings(max_examples=80)
@given(_texts)
def test_a_label_a_number_and_an_address_are_what_the_grammar_says(text: str) -> None:
    assert host_patterns._is_label(text) == bool(re.fullmatch(_LABEL, text))
    assert host_patterns._is_number(text) == bool(re.fullmatch(_NUMERIC, text))
    assert host_patterns._is_ipv4(text) == bool(re.fullmatch(_IPV4, text))


@settings(max_examples=80)
@given(_texts)
def test_a_port_is_a_number_in_one_spelling(text: str) -> None:
    known = bool(re.fullmatch(_PORT, text)) and int(text) <= 65535
    try:
        pattern = host_patterns.check_pattern(f"example.org:{text}", allow=True)
    except host_patterns.PatternRefused:
        assert not known
    else:
        assert known
        assert pattern.port == int(text)
