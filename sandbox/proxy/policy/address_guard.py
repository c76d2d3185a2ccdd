"""Addresses that no name may lead to: this machine's own, and those that mean another machine on each network. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# addresses at which clouds give their machines credentials
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"))
)
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("::/96"))
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})
_LOW = 0xFFFFFFFF
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
    return ""


def _kind(address: IPv4Address | IPv6Address, own: frozenset[str]) -> str:
    if address in _METADATA:
        return "a cloud's metadata address"
    if address.is_unspecified or (isinstance(address, IPv4Address) and address.packed[0] == 0):
        return "an unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
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
    if any(address in network for network in _TRANSLATED) or (number >> 32) & _LOW in _ISATAP:
        yield IPv4Address(number & _LOW)
