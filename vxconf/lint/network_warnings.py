"""Warnings about granted hosts, ports and sockets that probably do not do what their author meant; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import known_sockets
from sandbox.base.host_facts import Kind
from sandbox.base.host_patterns import PatternRefused, check_pattern, is_address
from vxconf.diagnostics.diagnostic import quoted
from vxconf.validate.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.base.host_facts import Files
    from sandbox.base.host_patterns import Pattern
    from vxconf.diagnostics.diagnostic import Diagnostic
    from vxconf.document.document import Document
    from vxconf.resolve.judge_block import JudgedBlock
    from vxconf.resolve.task_model import Entry, SandboxModel

# domains below which anybody can rent a server
_STRANGERS = (
    *("s3.amazonaws.com", "cloudfront.net", "elasticbeanstalk.com", "lambda-url.us-east-1.on.aws"),
    *("blob.core.windows.net", "azurewebsites.net", "azureedge.net", "azurefd.net", "cloudapp.azure.com"),
    *("appspot.com", "run.app", "cloudfunctions.net", "storage.googleapis.com", "bc.googleusercontent.com"),
    *("workers.dev", "pages.dev", "r2.dev", "trycloudflare.com", "vercel.app", "netlify.app", "herokuapp.com"),
    *("onrender.com", "fly.dev", "railway.app", "deno.dev", "glitch.me", "replit.app", "ondigitalocean.app"),
    *("ngrok.io", "ngrok.app", "ngrok-free.app", "loca.lt", "duckdns.org", "nip.io", "sslip.io", "b-cdn.net"),
)

_Found = tuple[str, "Entry", str, str]


def warnings_of_network(
    block: SandboxModel, judged: JudgedBlock, document: Document, *, files: Files
) -> tuple[Diagnostic, ...]:
    """The warnings about the hosts, ports and sockets of one block, the same on every platform.

    Args:
        block: the block as the file says it.
        judged: the block, judged.
        document: the file that holds the block, for places.
        files: the host's file system.
    """
    allowed = tuple(_patterns(block.network, allow=True)) if block.network and block.network is not True else ()
    denied = tuple(_patterns(block.deny_network, allow=False))
    found = [
        *_denied(allowed, denied),
        *_covered("allow", allowed),
        *_covered("deny", denied),
        *_own_ports(block, allowed),
        *_credentials(allowed),
        *_strangers(allowed),
        *_sockets(judged, files),
    ]
    return tuple(
        Finding(
            code=code,
            path=entry.path,
            message=f"{entry.path[-3]}.{entry.path[-2]} {quoted(entry.text)} {what}",
            help=remedy,
        ).to_diagnostic(document)
        for code, entry, what, remedy in found
    )


def _patterns(entries: Iterable[Entry], *, allow: bool) -> Iterator[tuple[Pattern, Entry]]:
    for entry in entries:
        try:
            yield check_pattern(entry.text, allow=allow), entry
        except PatternRefused:  # VX103 reports it
            continue


_Listed = tuple[tuple["Pattern", "Entry"], ...]


def _denied(allowed: _Listed, denied: _Listed) -> Iterator[_Found]:
    """Entries that a wider entry of the deny list takes back (VX409); a rule reports the same entry in both lists."""
    whole = {deny for deny, _ in denied}
    if any(str(deny) == "*" for deny in whole):
        return
    for pattern, entry in allowed:
        taken = next((by for deny, by in denied if deny != pattern and deny.covers(pattern)), None)
        if taken is not None and pattern not in whole:
            what = f"does nothing: deny.network {quoted(taken.text)} refuses it first"
            yield "VX409", entry, what, "remove one of the two"


def _covered(side: str, listed: _Listed) -> Iterator[_Found]:
    for index, (pattern, entry) in enumerate(listed):
        for other, (above, cover) in enumerate(listed):
            if other == index or (above == pattern and other > index) or not above.covers(pattern):
                continue
            if above == pattern:
                if entry.text != cover.text:
                    yield "VX404", entry, f"means the same as {quoted(cover.text)} before it", "remove one of the two"
                break
            if side == "allow" and _opens_more(pattern, above):
                continue
            what = f"is already covered by {side}.network {quoted(cover.text)}"
            yield "VX404", entry, what, "remove it, or narrow the other"
            break


def _opens_more(pattern: Pattern, above: Pattern) -> bool:
    """Whether an entry with a port opens more than a wider one without: under strace it needs no proxy."""
    if pattern.port is None or above.port is not None:
        return False
    from sandbox.proxy.policy.host_rules import USUAL_PORTS

    return pattern.is_loopback or pattern.port not in USUAL_PORTS


def _own_ports(block: SandboxModel, allowed: _Listed) -> Iterator[_Found]:
    own = block.local_binding if isinstance(block.local_binding, tuple) else ()
    for pattern, entry in allowed:
        if pattern.is_loopback and pattern.port in own:
            what = f"opens nothing of the host's: allow.localBinding makes {pattern.port} the task's own port"
            yield "VX411", entry, what, "remove one of the two"


def _credentials(allowed: _Listed) -> Iterator[_Found]:
    addresses = [(pattern, entry) for pattern, entry in allowed if is_address(pattern.host)]
    if not addresses:
        return
    from sandbox.proxy.policy.address_guard import kind

    for pattern, entry in addresses:
        if "metadata" in kind(pattern.host, frozenset()):
            yield "VX405", entry, "opens the metadata service, which hands out this machine's keys", "leave it out"


def _strangers(allowed: _Listed) -> Iterator[_Found]:
    for pattern, entry in allowed:
        if pattern.wildcard and any(f".{domain}".endswith(f".{pattern.host}") for domain in _STRANGERS):
            what = "covers servers that anybody may have there, who then hears all that the task sends them"
            yield "VX414", entry, what, "name the hosts the task needs"


def _sockets(judged: JudgedBlock, files: Files) -> Iterator[_Found]:
    resolution = judged.resolution
    granted = resolution.config.unix_sockets
    for index, path in enumerate(granted if isinstance(granted, tuple) else ()):
        entry = resolution.origin(f"unixSockets[{index}]")[0]
        what = known_sockets.control(path) or known_sockets.control(entry.text)
        if what is not None:
            yield "VX410", entry, f"opens {what}", "leave it out unless the task is trusted with all of that"
        elif files.kind(path) is Kind.DIRECTORY:
            yield "VX412", entry, "names a directory, and a socket is granted by its own path", "name the socket in it"
