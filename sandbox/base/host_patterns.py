"""Host patterns: the one grammar and the one canonical form of `allow.network` and `deny.network` entries.

    entry  = ( host | "*." name | "*" ) [ ":" port ]      a bare "*" in a deny list alone
           | label ":" port                               and without the port in a deny list
    host   = name | "localhost" | IPv4 | "[" IPv6 "]"
    name   = label "." label { "." label }
    port   = 1-65535, no leading zero

A name of one label is a service of a compose file or of a CI job. It takes a port, so that a word that was meant as
something else names no host.

Names are compared in one form only: lowercase ASCII, IPv6 compressed. Everything that could be read
as another spelling of an address (`0x7f.1`, `2130706433`, a trailing dot) is no pattern at all.
"""

from __future__ import annotations

from typing import NamedTuple

from sandbox.contract.errors import SandboxError

# Regular expressions are used only for entries that are no pattern: a check of small files would load `re` for them.
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdef")
_IN_LABELS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_MAX_LABEL = 63
_PARTS_OF_IPV4 = 4
_MAX_PART = 255
_URL = r"([a-zA-Z][a-zA-Z0-9+.-]*)://(?:[^/@]*@)?([^/?#]*)"

# Characters that no host has: one program's host is another's user, path, zone or escape.
_NEVER = frozenset(" /\\@?#%*,;<>\"'`{}|^&=+()!$~")
# Letters that the standards of 2003 and of 2008 read as different names (UTS 46, 4.1.1): ß is ss in the first.
_DEVIATIONS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")
#: The spellings of this machine in a task.
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_MAX_PORT = 65535
_MAX_NAME = 253
_SCHEME_PORTS = {"https": 443, "http": 80, "ssh": 22, "ftp": 21, "postgres": 5432, "postgresql": 5432, "redis": 6379}


class PatternRefused(SandboxError):
    """An entry that is no host pattern; `hint` is what to write instead, or empty."""


class Pattern(NamedTuple):
    """An entry in canonical form.

    Attributes:
        host: lowercase, ASCII; an IPv6 address without brackets; empty for a bare `*`.
        wildcard: whether strict subdomains of `host` are meant, or everything when `host` is empty.
        port: `None` for any.
    """

    host: str
    wildcard: bool = False
    port: int | None = None

    def __str__(self) -> str:
        """The one spelling of the pattern."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.wildcard:
            host = f"*.{host}" if host else "*"
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the pattern names this machine itself."""
        return self.host in LOOPBACK and not self.wildcard

    def matches(self, host: str, port: int | None) -> bool:
        """Whether the pattern covers a host in canonical form; a port of `None` asks for every port.

        A wildcard covers strict subdomains alone, and no address. A bare `*` covers everything.
        """
        if self.port is not None and port != self.port:
            return False
        if not self.wildcard:
            return host == self.host
        if not self.host:
            return True
        return host.endswith(f".{self.host}") and not is_address(host)

    def covers(self, other: Pattern) -> bool:
        """Whether the pattern means every host and port another pattern means."""
        if self.port not in {None, other.port}:
            return False
        if other.wildcard:
            return self.wildcard and (not self.host or f".{other.host}".endswith(f".{self.host}"))
        return self.matches(other.host, other.port)


def check_pattern(entry: str, *, allow: bool) -> Pattern:
    """The pattern an entry stands for.

    Args:
        entry: as written in the file.
        allow: whether it stands in an allow list, where a bare `*` is refused.

    Raises:
        PatternRefused: it is none.
    """
    if entry.startswith("!"):
        host = entry[1:].strip()
        raise PatternRefused("no entry takes another back", hint=_taken_back(host) if allow else f'write "{host}"')
    rest, port = _split_port(entry)
    if rest == "*":
        if allow:
            raise PatternRefused("a bare * is for deny.network alone", hint="name the hosts, or write network = true")
        return Pattern("", wildcard=True, port=port)
    if rest.startswith("["):
        return Pattern(_ipv6(rest), port=port)
    if is_single_label(rest.lower()):
        if allow and port is None:
            raise PatternRefused("a host has a dot, or a port, or is localhost", hint=_with_port(rest.lower()))
        return Pattern(rest.lower(), port=port)
    if port is None and _is_decimal(rest, _MAX_PORT):
        raise PatternRefused("a port alone is no host", hint=f'write "localhost:{rest}" for a server of this machine')
    wildcard = rest.startswith("*.")
    host = canonical_name(rest[2:] if wildcard else rest)
    if wildcard and (host == "localhost" or _is_ipv4(host)):
        raise PatternRefused("* stands before a domain of at least two names only", hint=f'write "{host}"')
    return Pattern(host, wildcard=wildcard, port=port)


def is_single_label(name: str) -> bool:
    """Whether a lowercase name is a single label that no program reads as an address; `localhost` is none."""
    return name != "localhost" and _is_label(name) and not _is_number(name)


def is_address(host: str) -> bool:
    """Whether a host in canonical form is an IP address rather than a name."""
    return ":" in host or _is_ipv4(host)


def _is_label(text: str) -> bool:
    return 0 < len(text) <= _MAX_LABEL and _IN_LABELS.issuperset(text) and text[0] != "-" != text[-1]


def _is_number(text: str) -> bool:
    """Whether some program would read a name's last label as a part of an address."""
    return (text != "" and _DIGITS.issuperset(text)) or (text.startswith("0x") and _HEX.issuperset(text[2:]))


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == _PARTS_OF_IPV4 and all(_is_decimal(part, _MAX_PART) for part in parts)


def _is_decimal(text: str, most: int) -> bool:
    """Whether a text is a number up to `most` in its only spelling."""
    plain = 0 < len(text) <= len(str(most)) and _DIGITS.issuperset(text) and (text[0] != "0" or text == "0")
    return plain and int(text) <= most


def canonical_name(name: str) -> str:
    """A host name or IPv4 address in the form it is compared in.

    Raises:
        PatternRefused: it is neither.
    """
    if not name:
        raise PatternRefused("the host is missing", hint='name the host: "example.org", or "localhost:8080" for a port')
    if len(name) > _MAX_NAME:
        raise PatternRefused(f"a host has at most {_MAX_NAME} characters")
    lower = name.lower() if name.isascii() else _idna(name)
    if lower == "localhost" or _is_ipv4(lower):
        return lower
    if "*" in lower:
        raise PatternRefused("* stands alone before the first dot only", hint='write "*.example.org"')
    if lower.startswith(".") or lower.endswith("."):
        bare = lower.strip(".")
        raise PatternRefused("a host neither begins nor ends with a dot", hint=f'write "{bare}"' if bare else "")
    labels = lower.split(".")
    if len(labels) == 1:
        raise PatternRefused("a host has a dot, or is localhost", hint="write the whole name, with its domain")
    if _is_number(labels[-1]):
        raise PatternRefused("an IPv4 address has four numbers from 0 to 255", hint='write it like "127.0.0.1"')
    if len(lower) > _MAX_NAME or not all(map(_is_label, labels)):
        raise PatternRefused("a host is made of letters, digits, - and _ between single dots")
    return lower


def _taken_back(host: str) -> str:
    return f'no entry takes another back: list it under deny.network, "{host}"'


def _with_port(label: str) -> str:
    """The advice for a name of one label without a port."""
    service = f"{label}:{_SCHEME_PORTS.get(label, 80)}"
    return f'write the whole name, with its domain; a service of this network by its port, "{service}", or its address'


def canonical_host(text: str) -> str:
    """A host as a client presents it, in the form patterns are compared in.

    A trailing dot, capitals and international spellings are read as what they stand for, an IPv4 address inside an
    IPv6 one as itself. A name of one label is kept as it is.

    Args:
        text: without a port; an IPv6 address with or without brackets.

    Raises:
        PatternRefused: it is no host, or one that programs read in different ways.
    """
    if not text.isprintable() or any(char in _NEVER for char in text):
        raise PatternRefused("a host holds no blank, control character, user, path or zone")
    if text.startswith("["):
        if not text.endswith("]"):
            raise PatternRefused("an IPv6 address stands alone in brackets")
        return _embedded(_ipv6(text))
    if ":" in text:
        return _embedded(_ipv6(f"[{text}]"))
    lower = text.lower() if text.isascii() else _idna(text)
    bare = lower.removesuffix(".")
    return bare if is_single_label(bare) else canonical_name(bare)


def spelled(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _embedded(address: str) -> str:
    from ipaddress import IPv6Address

    mapped = IPv6Address(address).ipv4_mapped
    return address if mapped is None else str(mapped)


def _split_port(entry: str) -> tuple[str, int | None]:
    _refuse_urls(entry)
    if entry.startswith("["):
        rest, bracket, tail = entry.partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise PatternRefused(
                "an IPv6 address stands alone in brackets", hint='write it like "[::1]" or "[::1]:443"'
            )
        return rest + bracket, _port(tail[1:], rest + bracket) if tail else None
    host, colon, port = entry.partition(":")
    if not colon:
        return host, None
    if ":" in port and _is_ipv6(entry):
        raise PatternRefused("an IPv6 address needs brackets", hint='write it like "[::1]" or "[::1]:443"')
    return host, _port(port, host)


def _refuse_urls(entry: str) -> None:
    if "://" in entry:
        import re

        url = re.match(_URL, entry)
        if url:
            raise PatternRefused("a host pattern is no URL", hint=_host_alone(url[1], url[2]))
    if "/" in entry:
        host, _, tail = entry.partition("/")
        if tail.isdecimal():
            raise PatternRefused("address ranges cannot be listed", hint="list the hosts by name")
        raise PatternRefused("a host pattern has no path", hint=f'write the host alone: "{host}"' if host else "")
    if "@" in entry:
        raise PatternRefused("a host pattern has no user", hint=f'write the host alone: "{entry.rpartition("@")[2]}"')
    if any(char.isspace() or not char.isprintable() for char in entry):
        raise PatternRefused("a host pattern holds no blank or control character", hint="remove it")


def _host_alone(scheme: str, authority: str) -> str:
    """The advice to write what a URL's authority names, empty where it names no host."""
    host = authority.partition("]")[0] + "]" if authority.startswith("[") else authority.partition(":")[0]
    if not host:
        return ""
    port = authority[len(host) + 1 :] or str(_SCHEME_PORTS.get(scheme.lower(), ""))
    spellings = (host, f"{host}:{port}") if port else (host,)
    return "write the host alone: " + " or ".join(f'"{spelling}"' for spelling in spellings)


def _port(text: str, host: str) -> int:
    if text != "0" and _is_decimal(text, _MAX_PORT):
        return int(text)
    if "." in text or host in _SCHEME_PORTS:
        raise PatternRefused("a port is a number from 1 to 65535", hint=f'write the host alone: "{text}"')
    why = "a port is a number from 1 to 65535"
    raise PatternRefused(why, hint=f'{why}: write "{host}" or "{host}:443"')


def _is_ipv6(text: str) -> bool:
    from ipaddress import AddressValueError, IPv6Address

    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _ipv6(bracketed: str) -> str:
    from ipaddress import AddressValueError, IPv6Address

    text = bracketed[1:-1]
    try:
        if "%" in text:
            raise PatternRefused("an IPv6 address has no zone here", hint=f'write "[{text.partition("%")[0]}]"')
        return IPv6Address(text).compressed
    except AddressValueError:
        raise PatternRefused("the brackets hold no IPv6 address", hint='write it like "[::1]"') from None


def _idna(name: str) -> str:
    if not _DEVIATIONS.isdisjoint(name):
        raise PatternRefused("the name holds a letter that programs read in two ways", hint="write it as xn--…")
    try:
        return name.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise PatternRefused("the name cannot be an internationalized one") from None
