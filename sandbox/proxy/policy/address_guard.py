"""Addresses that no name may lead to: this machine's own, and those that mean another machine on each network. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Addresses at which clouds give their machines credentials. Those of the link are in no other network, and are listed
# for what they are called.
_METADATA4 = frozenset(
    map(
        IPv4Address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "169.254.0.23",
            "169.254.10.10",
            "169.254.42.42",
            "100.100.100.200",
            "168.63.129.16",
        ),
    )
)
# the networks in which they number such services
_METADATA = (
    IPv4Network("192.0.0.0/24"),  # Oracle's 192.0.0.192; the rest is nobody's server (RFC 6890)
    IPv6Network("fd00:ec2::/32"),  # Amazon
    IPv6Network("fd20:ce::/32"),  # Google
    IPv6Network("fd00:c1::/64"),  # Oracle
    IPv6Network("fd00:42::/64"),  # Scaleway
    IPv6Network("fd00:a9fe:a9fe::/64"),  # Linode
    IPv6Network("fd00:100::/64"),  # Alibaba
    IPv6Network("fe80::a9fe:a9fe/128"),  # OpenStack
)
# prefixes behind which translators expect an IPv4 address (RFC 6052, 8215, 7915), or once did
_TRANSLATED = (
    IPv6Network("64:ff9b::/96"),
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0:0/96"),
)
_LOCALLY_TRANSLATED = IPv6Network("64:ff9b:1::/48")
# the lengths that a translator's prefix may have, and the first bit of an octet that no address lies in (RFC 6052, 2.2)
_PREFIXES = (32, 40, 48, 56, 64, 96)
_OCTET = 64
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})
_LOW = 0xFFFFFFFF
_CREDENTIALS = "a cloud's metadata address"
_BROADCAST = IPv4Address("255.255.255.255")


def kind(address: str, own: frozenset[str]) -> str:
    """The reason against an address, as a noun with its article; empty for an ordinary address.

    Args:
        address: IPv4 or IPv6, without a zone.
        own: the addresses of this machine's interfaces, in canonical form.
    """
    parsed = ip_address(address)
    found = _kind(parsed, own)
    if found or isinstance(parsed, IPv4Address):
        return found
    for inner in _embedded(parsed):
        if found := _kind(inner, own):
            return f"{found} inside another"
    # a network may translate behind a prefix of its own, which is not known here
    if not _METADATA4.isdisjoint(_translated(parsed)):
        return f"{_CREDENTIALS} inside another"
    return ""


def inside(address: str) -> tuple[str, ...]:
    """The IPv4 addresses that an IPv6 address may be another spelling of."""
    parsed = ip_address(address)
    return () if isinstance(parsed, IPv4Address) else tuple(map(str, _embedded(parsed)))


def _kind(address: IPv4Address | IPv6Address, own: frozenset[str]) -> str:
    if address in _METADATA4 or any(address in network for network in _METADATA):
        return _CREDENTIALS
    if address.is_unspecified or (isinstance(address, IPv4Address) and address.packed[0] == 0):
        return "an unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if isinstance(address, IPv6Address) and address.is_site_local:
        return "a site-local address"
    if address.is_multicast or address == _BROADCAST:
        return "a multicast address"
    if str(address) in own:
        return "an address of this machine"
    return ""


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Every IPv4 address that a translator or a tunnel could take an IPv6 address for."""
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _LOCALLY_TRANSLATED:
        # the bits that another length takes for an address are mostly zeros
        yield from (inner for inner in _translated(address) if inner.packed[0])
    if any(address in network for network in _TRANSLATED) or (number >> 32) & _LOW in _ISATAP:
        yield IPv4Address(number & _LOW)


def _translated(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that a translator takes an IPv6 address for, by the length of its prefix."""
    bits = f"{int(address):0128b}"
    for length in _PREFIXES:
        behind = bits[length:] if length > _OCTET else bits[length:_OCTET] + bits[_OCTET + 8 :]
        yield IPv4Address(int(behind[:32], 2))
