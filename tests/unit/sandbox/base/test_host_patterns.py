"""Host patterns: what an entry may be, on which side, and its one canonical form."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sandbox.base.host_patterns import Pattern, PatternRefused, canonical_name, check_pattern
from tests.conftest import REPOSITORY

BOTH = [
    ("example.org", "example.org"),
    ("EXAMPLE.org", "example.org"),
    ("api.example.co.uk", "api.example.co.uk"),
    ("_x.example.org", "_x.example.org"),
    ("*.example.org", "*.example.org"),
    ("*.a.b", "*.a.b"),
    ("example.org:443", "example.org:443"),
    ("*.example.org:8443", "*.example.org:8443"),
    ("example.org:65535", "example.org:65535"),
    ("localhost", "localhost"),
    ("LocalHost:4173", "localhost:4173"),
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1:80", "127.0.0.1:80"),
    ("[::1]", "[::1]"),
    ("[0:0::0:1]:443", "[::1]:443"),
    ("[2001:DB8::A]", "[2001:db8::a]"),
    ("bücher.example", "xn--bcher-kva.example"),
    ("BÜCHER.example", "xn--bcher-kva.example"),
    ("\uff45xample.org", "example.org"),
    ("postgres:5432", "postgres:5432"),
    ("Object_Store-1:9000", "object_store-1:9000"),
]
DENY_ONLY = [("*", "*"), ("*:22", "*:22")]
NEITHER = [
    *("*.com", "*.", "*.localhost", "a.*.com", "ex*mple.org", "*.a..b", "*.example.org.", "*.*.example.org", "**"),
    *("*.127.0.0.1", "*:0", "*.example.org:0"),
    *(
        "-intranet:80",
        "2130706433:80",
        "0x7f000001:80",
        "*.intranet:80",
        ".example.org",
        "example.org.",
        ".",
        "..",
        "a..b",
    ),
    *("https://example.org", "example.org/x", "http:example.org", "10.0.0.0/8", "//example.org", "https://"),
    *("example.org:0", "example.org:65536", "example.org:0443", "example.org:", "example.org:443:80", "example.org:+1"),
    *("example.org:\uff14\uff14\uff13", "example.org:1e3", "example.org: 80"),
    *("::1", "::1:443", "[::1]x", "[::1", "[]", "[1.2.3.4]", "[::1%eth0]", "[::1]:", "[::1]:0"),
    *("", " ", "example .org", "example.org\n", "example.org\x00", "exam\u202eple.org", "user@example.org"),
    *("2130706433", "0x7f.1", "127.1", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "example.0x7f", "a.1"),
    *("-a.example.org", "a-.example.org", "a" * 64 + ".org", ".".join(["a" * 60] * 5), "é" * 100_000 + ".org"),
]


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize(("entry", "canonical"), BOTH)
def test_entry_is_accepted_on_both_sides_in_its_canonical_form(entry: str, canonical: str, *, allow: bool) -> None:
    pattern = check_pattern(entry, allow=allow)
    assert str(pattern) == canonical
    assert check_pattern(str(pattern), allow=allow) == pattern


@pytest.mark.parametrize(("entry", "canonical"), DENY_ONLY)
def test_bare_star_is_for_deny_alone(entry: str, canonical: str) -> None:
    assert str(check_pattern(entry, allow=False)) == canonical
    with pytest.raises(PatternRefused) as refused:
        check_pattern(entry, allow=True)
    assert "deny" in refused.value.message


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize("entry", NEITHER, ids=lambda e: repr(e)[:40])
def test_entry_is_refused_on_both_sides(entry: str, *, allow: bool) -> None:
    with pytest.raises(PatternRefused) as refused:
        check_pattern(entry, allow=allow)
    assert refused.value.message
    assert not refused.value.message.endswith(".")


@pytest.mark.parametrize(
    ("entry", "spellings"),
    [
        ("https://pkg.test", ["pkg.test", "pkg.test:443"]),
        ("http://u:p@pkg.test:8080/simple?x", ["pkg.test", "pkg.test:8080"]),
        ("https://[::1]:8443/x", ["[::1]", "[::1]:8443"]),
        ("pkg.test/simple", ["pkg.test"]),
        ("user@acme.test", ["acme.test"]),
        (".acme.test", ["acme.test"]),
        ("acme.test:0", ["acme.test", "acme.test:443"]),
        ("http:acme.test", ["acme.test"]),
        ("[fe80::1%eth0]", ["[fe80::1]"]),
    ],
)
def test_the_remedy_of_a_refused_entry_is_accepted(entry: str, spellings: list[str]) -> None:
    with pytest.raises(PatternRefused) as refused:
        check_pattern(entry, allow=True)
    for spelling in spellings:
        assert f'"{spelling}"' in refused.value.hint
        check_pattern(spelling, allow=True)


def test_a_name_of_one_label_takes_a_port_where_it_is_allowed() -> None:
    assert check_pattern("Redis", allow=False) == Pattern("redis")
    for entry, remedy in (
        ("!x.test", 'under deny.network, "x.test"'),
        ("redis", '"redis:6379"'),
        ("intranet", "its address"),
        ("8080", '"localhost:8080"'),
    ):
        with pytest.raises(PatternRefused) as refused:
            check_pattern(entry, allow=True)
        assert remedy in refused.value.hint
    assert check_pattern("redis:6379", allow=True).covers(check_pattern("REDIS:6379", allow=True))


def test_a_pattern_is_its_parts() -> None:
    assert check_pattern("*.Example.org:8443", allow=True) == Pattern("example.org", wildcard=True, port=8443)
    assert check_pattern("[::1]", allow=True) == Pattern("::1")
    assert canonical_name("127.0.0.1") == "127.0.0.1"


def test_the_grammar_needs_no_socket() -> None:
    code = (
        "import sys; from sandbox.base.host_patterns import check_pattern; check_pattern('[::1]:443', allow=True);"
        "assert not {'socket', 'subprocess', 'ssl'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {_root()!r}); {code}"], check=True
    )


def _root() -> str:

    return str(REPOSITORY)
