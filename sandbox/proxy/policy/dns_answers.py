"""Answers to a task's DNS queries: stand-ins for names it may reach, refusals for others; none is forwarded. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import host_patterns
from sandbox.proxy.policy.stand_in_addresses import NoAddressLeft
from sandbox.proxy.protocol import dns_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.proxy.policy.host_rules import HostRules
    from sandbox.proxy.policy.stand_in_addresses import StandInAddresses

_REVERSE = (".in-addr.arpa", ".ip6.arpa")
_LOOPBACK = {dns_messages.A: "127.0.0.1", dns_messages.AAAA: "::1"}


class DnsAnswers:
    """The answerer of one task's queries.

    Args:
        listen: called with a name and its new addresses before the task learns of them; true where IPv6 works.
        own_name: this machine's own name, which means the task's own loopback.
        report: called with a refused name and the reason.
    """

    def __init__(
        self,
        rules: HostRules,
        names: StandInAddresses,
        *,
        listen: Callable[[str, str, str], bool],
        own_name: str,
        report: Callable[[str, str], None],
    ) -> None:
        self._rules = rules
        self._names = names
        self._listen = listen
        self._own_name = own_name.lower()
        self._report = report
        self._six: dict[str, bool] = {}

    def answer(self, message: bytes) -> bytes | None:
        """The answer to a message, `None` where no answer is possible."""
        try:
            query = dns_messages.parse(message)
        except dns_messages.MalformedQuery:
            return None
        if query.code != dns_messages.NOERROR:
            return dns_messages.reply(query, query.code)
        asked = query.name.lower()
        if query.kind == dns_messages.PTR or asked.endswith(_REVERSE):
            return self._reversed(query, asked)
        if not asked:
            return dns_messages.reply(query, dns_messages.NOERROR)
        if asked in ("localhost", self._own_name) or asked.endswith(".localhost"):
            return dns_messages.reply(query, dns_messages.NOERROR, _known(_LOOPBACK, query.kind))
        return self._named(query)

    def _named(self, query: dns_messages.Query) -> bytes:
        try:
            host = host_patterns.canonical_host(query.name)
        except host_patterns.PatternRefused as refused:
            self._report(ascii(query.name)[1:-1], refused.message)
            return dns_messages.reply(query, dns_messages.NXDOMAIN)
        reason = self._rules.lookup_refusal(host)
        if reason:
            self._report(host_patterns.spelled(host, 0).removesuffix(":0"), reason)
            # NXDOMAIN is the one answer after which programs ask no other server
            return dns_messages.reply(query, dns_messages.NXDOMAIN)
        try:
            four, six, fresh = self._names.give(host)
        except NoAddressLeft:
            self._report(host, "one more name than a task can look up")
            return dns_messages.reply(query, dns_messages.SERVFAIL)
        if fresh:
            self._six[host] = self._listen(host, four, six)
        addresses = {dns_messages.A: four}
        if self._six.get(host):
            addresses[dns_messages.AAAA] = six
        return dns_messages.reply(query, dns_messages.NOERROR, _known(addresses, query.kind))

    def _reversed(self, query: dns_messages.Query, asked: str) -> bytes:
        """The answer to a reverse lookup: a stand-in's name. Other addresses have no name, and are not reported."""
        labels = asked.removesuffix(_REVERSE[0]).split(".")
        name = self._names.host(".".join(reversed(labels)))
        if (
            query.kind == dns_messages.PTR
            and asked.endswith(_REVERSE[0])
            and not host_patterns.is_address(name)
            and "." in name
        ):
            known = name != ".".join(reversed(labels))
            return (
                dns_messages.reply(query, dns_messages.NOERROR, (name,))
                if known
                else dns_messages.reply(query, dns_messages.NXDOMAIN)
            )
        return dns_messages.reply(query, dns_messages.NXDOMAIN)


def _known(addresses: dict[int, str], kind: int) -> tuple[str, ...]:
    return (addresses[kind],) if kind in addresses else ()
