"""The rooms of a proxy that are code fed bytes, and the judges that are code fed names."""

from __future__ import annotations

from ipaddress import IPv4Address

import dns.message
import dns.rcode
import pytest

from sandbox.base import host_patterns
from sandbox.proxy.io import library_path
from sandbox.proxy.io.dialler import excepted
from sandbox.proxy.io.http_port import refusal_text, split_authority
from sandbox.proxy.policy import address_guard
from sandbox.proxy.policy.host_rules import HostRules
from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED, Policy
from sandbox.proxy.policy.stand_in_addresses import NAMES_LIMIT, NoAddressLeft, StandInAddresses
from sandbox.proxy.protocol import dns_messages


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.COM.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("a。example。com", "a.example.com"),
        ("\uff41.example.com", "a.example.com"),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("intranet", "intranet"),
        ("LOCALHOST", "localhost"),
    ],
)
def test_a_host_has_one_form_however_it_is_presented(text: str, host: str) -> None:
    assert host_patterns.canonical_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "a..b",
            "a.b..",
            "127.1",
            "0",
            "0x7f.1",
            "017700000001",
            "1.2.3.4.5",
            "1.2.3.256",
            "a\0.b.c",
            "a b.c",
        ),
        *("a\r\n.b.c", "u@b.c", "b.c/d", "b.c#d", "b.c?d", "b.c%2e", "*.b.c", "[::1", "::1]", "[::1]x", "fe80::1%eth0"),
        *("a\u200b.b.c\u202e", "a" * 64 + ".b.c", "a." * 127 + "bc.d", "-a.b.c", "a.b\\c"),
        *("straße.example", "STRAẞE.example", "βόλος.example", "a\u200c.b.c"),
    ],
)
def test_what_programs_read_in_different_ways_is_no_host(text: str) -> None:
    with pytest.raises(host_patterns.PatternRefused):
        host_patterns.canonical_host(text)


def test_lists_are_judged_deny_first_by_host_and_port() -> None:
    rules = HostRules(
        Policy(
            allow=("pkg.test", "*.acme.test:8443", "[::1]:443", "10.0.0.1", "deep.evil.test"),
            deny=("ads.acme.test", "*:22", "*.evil.test:80"),
        )
    )
    judged = {
        ("pkg.test", 1): "",
        ("files.pkg.test", 1): NOT_ALLOWED,
        ("xpkg.test", 1): NOT_ALLOWED,
        ("a.acme.test", 8443): "",
        ("a.b.acme.test", 8443): "",
        ("acme.test", 8443): NOT_ALLOWED,
        ("a.acme.test", 443): NOT_ALLOWED,
        ("ads.acme.test", 8443): DENIED,
        ("pkg.test", 22): DENIED,
        ("other.test", 22): DENIED,
        ("::1", 443): "",
        ("::1", 80): NOT_ALLOWED,
        ("10.0.0.1", 5432): "",
        ("deep.evil.test", 80): DENIED,
        ("deep.evil.test", 443): "",
    }
    assert {target: rules.refusal(*target) for target in judged} == judged
    assert rules.ports("a.acme.test") == (22, 80, 443, 8443)
    assert rules.addresses() == ("10.0.0.1",)
    assert [rules.lookup_refusal(h) for h in ("pkg.test", "ads.acme.test", "x.acme.test", "no.test")] == [
        "",
        DENIED,
        "",
        NOT_ALLOWED,
    ]


#: Where Amazon, Google, Azure, Oracle, Alibaba, Tencent, Scaleway, Linode and OpenStack answer their machines.
METADATA = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "168.63.129.16",
    "192.0.0.192",
    "100.100.100.200",
    "169.254.0.23",
    "169.254.42.42",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd20:ce::23",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "fd00:a9fe:a9fe::1",
    "fd00:100::100:200",
    "fe80::a9fe:a9fe",
)


def test_nothing_listed_allows_nothing() -> None:
    assert HostRules(Policy()).refusal("localhost", 80) == NOT_ALLOWED
    assert HostRules(Policy(allow=("a.test",), deny=("*",))).refusal("a.test", 80) == DENIED


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("10.1.2.3", ""),
        ("192.168.1.1", ""),
        ("93.184.216.34", ""),
        ("2606:2800:220:1::1", ""),
        ("fd00::1", ""),
        ("192.0.2.7", "an address of this machine"),
        ("2001:db8::7", "an address of this machine"),
        ("127.255.0.1", "a loopback address"),
        ("0.1.2.3", "an unspecified address"),
        ("255.255.255.255", "a multicast address"),
        ("::", "an unspecified address"),
        ("ff02::1", "a multicast address"),
        ("::127.0.0.1", "a loopback address inside another"),
        ("::ffff:169.254.169.254", "a cloud's metadata address inside another"),
        ("64:ff9b::c000:207", "an address of this machine inside another"),
        ("64:ff9b:1::7f00:1", "a loopback address inside another"),
        ("2002:a9fe:a9fe::1", "a cloud's metadata address inside another"),
        ("2001:0:7f00:1::", "a loopback address inside another"),
        ("fd00::5efe:7f00:1", "a loopback address inside another"),
        ("64:ff9b::808:808", ""),
        ("64:ff9b:1::808:808", ""),
        ("64:ff9b:1:808:8:800::", ""),
        ("64:ff9b:1:7f00:0:100::", "a loopback address inside another"),
        ("64:ff9b:1:a9:fe:a9fe::", "a cloud's metadata address inside another"),
        ("2001:db8:64::a9fe:a9fe", "a cloud's metadata address inside another"),
        ("2001:db8:a83f:8110::", "a cloud's metadata address inside another"),
        ("2001:db8:64:a9:fe:a9fe::", "a cloud's metadata address inside another"),
        ("2001:db8:64:7f:0:100::", ""),
        ("::ffff:0:127.0.0.1", "a loopback address inside another"),
        ("2002:a83f:8110::", "a cloud's metadata address inside another"),
        ("fec0:0:0:ffff::1", "a site-local address"),
        ("feff::1", "a site-local address"),
    ],
)
def test_the_guard_says_what_an_address_is(address: str, kind: str) -> None:
    assert address_guard.kind(address, frozenset({"192.0.2.7", "2001:db8::7"})) == kind


@pytest.mark.parametrize("address", METADATA)
def test_a_clouds_metadata_address_is_known_in_whatever_it_is_wrapped(address: str) -> None:
    assert address_guard.kind(address, frozenset()) == "a cloud's metadata address"
    if ":" in address:
        return
    number = int(IPv4Address(address))
    prefixes = ("::ffff:", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:", "2001:db8::5efe:")
    for around in (f"2002:{number >> 16:x}:{number & 65535:x}::1", *(prefix + address for prefix in prefixes)):
        assert address_guard.kind(around, frozenset()) != "", around


def test_stand_ins_are_one_a_name_and_there_is_an_end_to_them() -> None:
    names = StandInAddresses()
    assert names.give("a.test") == ("127.64.0.1", "fd76:7863:6f6e:64::1", True)
    assert names.give("a.test") == ("127.64.0.1", "fd76:7863:6f6e:64::1", False)
    given = {names.give(f"n{number}.test")[0] for number in range(NAMES_LIMIT - 1)}
    assert len(given) == NAMES_LIMIT - 1
    assert not any(address.endswith((".0", ".255")) for address in given)
    with pytest.raises(NoAddressLeft):
        names.give("more.test")
    assert names.host("127.64.0.1") == names.host("fd76:7863:6f6e:64::1") == "a.test"
    assert names.host("127.64.99.1") == "127.64.99.1"


@pytest.mark.parametrize("kind", ["A", "AAAA", "TXT", "HTTPS"])
def test_queries_are_read_and_answered_as_another_implementation_does(kind: str) -> None:
    sent = dns.message.make_query("Www.Example.COM", kind, use_edns=True)
    query = dns_messages.parse(sent.to_wire())
    assert (query.name, query.id, query.code) == ("Www.Example.COM", sent.id, dns_messages.NOERROR)
    data = {"A": "127.64.0.1", "AAAA": "::1"}.get(kind)
    answer = dns.message.from_wire(dns_messages.reply(query, dns_messages.NOERROR, (data,) if data else ()))
    assert sent.is_response(answer)
    assert [str(rrset) for rrset in answer.answer] == {
        "A": ["Www.Example.COM. 600 IN A 127.64.0.1"],
        "AAAA": ["Www.Example.COM. 600 IN AAAA ::1"],
    }.get(kind, [])
    refused = dns.message.from_wire(dns_messages.reply(query, dns_messages.NXDOMAIN))
    assert refused.rcode() is dns.rcode.NXDOMAIN


def test_a_label_with_a_dot_in_it_is_no_name() -> None:
    message = b"\0\1\1\0\0\1\0\0\0\0\0\0" + b"\x09evil.pypi\3org\0" + b"\0\1\0\1"
    assert dns_messages.parse(message).code == dns_messages.FORMERR


def test_the_hosts_exceptions_from_its_proxy_are_suffixes_ports_and_networks() -> None:
    entries = (".inner.test", "exact.test", "*.star.test", "ported.test:8080", "10.0.0.0/8", "[::1]")
    hosts = [("a.inner.test", 80), ("inner.test", 80), ("a.exact.test", 80), ("x.star.test", 80)]
    hosts += [("ported.test", 8080), ("10.9.9.9", 80), ("::1", 80)]
    assert all(excepted(host, port, entries) for host, port in hosts)
    others = [("xinner.test", 80), ("ported.test", 80), ("11.0.0.1", 80), ("test", 80), ("::2", 80)]
    assert not any(excepted(host, port, entries) for host, port in others)
    assert excepted("any.test", 1, ("*",))
    assert not excepted("any.test", 1, ("", ".", "*."))


def test_an_authority_is_a_host_and_a_port() -> None:
    assert split_authority("a.test:80", None) == ("a.test", 80)
    assert split_authority("[::1]:443", None) == ("[::1]", 443)
    assert split_authority("a.test", 80) == ("a.test", 80)
    for text in ("", ":80", "a.test", "a.test:", "a.test:0", "a.test:65536", "a.test:-1", "a.test:80:80", "::1:80"):
        with pytest.raises(ValueError, match="names no"):
            split_authority(text, None)


def test_a_refusal_says_what_would_help_only_where_something_does() -> None:
    assert 'allow.network = ["a.test:443"]' in refusal_text("a.test:443", NOT_ALLOWED)
    assert "allow.network" not in refusal_text("a.test:443", DENIED)
    assert "127.0.0.1 is a loopback address" in refusal_text("a.test:443", "127.0.0.1 is a loopback address")


def test_the_library_is_found_outside_of_where_one_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    found = library_path.directory()
    assert found
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(str(tmp_path))
    import os

    for name in ("h11", "dns"):
        os.mkdir(name)
        with open(f"{name}/__init__.py", "w", encoding="ascii"):
            pass
    assert library_path.directory() == found
