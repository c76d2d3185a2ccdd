"""Hosts that documents, fixtures and tests name are examples, which nobody owns and nobody is asked about."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Where a reader looks for an example to copy; `.example`, `.test`, `.invalid` and `localhost` are free to use there.
_LOOKED_AT = ("docs", "fixtures", "schema", "tests", "scripts", "vxconf/cli/commands/init.py")

#: Domains that RFC 2606 keeps for examples.
_EXAMPLES = ("example.com", "example.net", "example.org", "example.co.uk")

#: Real names that have to be there, each with the reason.
_REAL = {
    "json-schema.org": "the draft a schema is written in is named by this address",
    "pre-commit.com": "a link to the tool of which `vxconf-check` is a hook",
    "amazonaws.com": "VX414 warns of domains below which anybody gets a server, this one among them",
    "workers.dev": "VX414, as above",
    "ngrok.io": "VX414, as above",
    "raw.githubusercontent.com": "the name under which SARIF's authors publish the schema that is kept in tests/data",
}

#: What a document may link to: standards, manuals and formats.
_REFERENCES = ("docs.kernel.org", "git.kernel.org", "keepachangelog.com", "man7.org", "rfc-editor.org")

#: A whole host, also behind `*.`; no part of a path, an escape or a pattern.
_HOST = re.compile(
    r"(?:(?<![\w.\\*-])|(?<=\*\.))(?:[a-z0-9_-]+\.)+(?:com|org|net|io|dev|ai|app|cloud|co\.uk|gov|edu)(?![\w-]|\.\w)",
    re.IGNORECASE,
)
#: Dotted names that are no hosts: modules of ours, tasks of a file, an application of macOS.
_NO_HOST = re.compile(r"(?:sandbox|vxconf|tasks)\.|.*\bXcode\.app$")


def _files() -> Iterator[Path]:
    yield from sorted(REPOSITORY.glob("*.md"))
    for name in _LOOKED_AT:
        path = REPOSITORY / name
        yield from [path] if path.is_file() else sorted(path.rglob("*"))


def _below(host: str, domains: tuple[str, ...] | dict[str, str]) -> str | None:
    return next((domain for domain in domains if host == domain or host.endswith(f".{domain}")), None)


def _real_hosts(text: str) -> set[str]:
    """What a text names of hosts that may be somebody's."""
    named = {match[0].lower() for match in _HOST.finditer(text) if not _NO_HOST.match(match[0])}
    return {host for host in named if not _below(host, _EXAMPLES + _REFERENCES)}


def test_every_host_is_an_example() -> None:
    wrong = defaultdict(set)
    needed = set()
    for path in _files():
        if not path.is_file() or path.suffix == ".pyc":
            continue
        for host in _real_hosts(path.read_text(encoding="utf-8", errors="replace")):
            reason = _below(host, _REAL)
            if reason is None:
                wrong[str(path.relative_to(REPOSITORY))].add(host)
            elif path.name != "test_repository_hosts.py":
                needed.add(reason)
    assert dict(wrong) == {}, "name registry.example.org, or a name below .test or .example"
    assert needed == set(_REAL), "a name of the list that nobody needs any more"


@pytest.mark.parametrize("domain", ["org", "com", "io"])
@pytest.mark.parametrize("text", ['network = ["{}"]', "see https://{}/simple", "*.{}:443", "user@{}", "It is {}."])
def test_a_real_host_would_be_found(text: str, domain: str) -> None:
    registry = f"registry.npmjs.{domain}"
    assert _real_hosts(text.format(registry)) == {registry}


@pytest.mark.parametrize("text", ["cdn.example.org", "a.test", "tasks.dev", "sandbox.proxy.io", "10.0.0.1", "x.organ"])
def test_an_example_is_none(text: str) -> None:
    assert _real_hosts(text) == set()
