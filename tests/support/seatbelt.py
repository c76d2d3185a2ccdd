"""An evaluator of the part of seatbelt's profile language that profiles here use: text in, answers out.

It shares no code with what writes profiles. What it takes from public descriptions: a profile is a list of rules, the
last that matches decides, `(deny default)` decides where none does; a rule's operations may end in `*`; filters are
alternatives unless `require-all` holds them together; `subpath` is a path and everything below, `literal` a path alone,
`regex` an expression searched in the path. Whether a rule for `file-read-metadata` outranks one for `file-read*`
whatever their order is told differently in different places, so both readings can be asked for.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import NamedTuple

#: Operations known to be seatbelt's; a profile that names another would not compile.
OPERATIONS = frozenset(
    [
        "default",
        "file-read*",
        "file-read-data",
        "file-read-metadata",
        "file-read-xattr",
        "file-write*",
        "file-write-create",
        "file-write-data",
        "file-write-unlink",
        "file-write-mode",
        "file-write-times",
        "file-ioctl",
        "process-exec*",
        "process-exec",
        "process-exec-interpreter",
        "process-fork",
        "process-info*",
        "process-info-pidinfo",
        "signal",
        "sysctl-read",
        "system-info",
        "system-socket",
        "mach-lookup",
        "user-preference-read",
        "ipc-posix-sem",
        "ipc-posix-shm",
        "iokit-open",
        "network-outbound",
        "network-inbound",
        "network-bind",
        "pseudo-tty",
    ]
)


class Symbol(str):
    """A bare word."""

    __slots__ = ()


class Pattern(str):
    """A regular expression written `#"..."`."""

    __slots__ = ()


class MistakeError(Exception):
    """The text is no profile."""


def read(text: str) -> list[object]:
    """The forms of a text."""
    forms, at = _forms(text, 0, depth=0)
    assert at == len(text)
    return forms


def _forms(text: str, at: int, *, depth: int) -> tuple[list[object], int]:
    found: list[object] = []
    while at < len(text):
        if text[at] == ")":
            if depth == 0:
                raise MistakeError("a parenthesis too many")
            return found, at + 1
        if text[at] == "(":
            inner, at = _forms(text, at + 1, depth=depth + 1)
            found.append(inner)
            continue
        word, at = _word(text, at)
        if word is not None:
            found.append(word)
    if depth:
        raise MistakeError("a parenthesis too few")
    return found, at


def _word(text: str, at: int) -> tuple[str | None, int]:
    if text[at].isspace():
        return None, at + 1
    if text[at] == ";":
        end = text.find("\n", at)
        return None, len(text) if end == -1 else end
    if text.startswith('#"', at):
        end = text.index('"', at + 2)
        return Pattern(text[at + 2 : end]), end + 1
    if text[at] == '"':
        return _string(text, at + 1)
    end = at
    while end < len(text) and not text[end].isspace() and text[end] not in '()";':
        end += 1
    return Symbol(text[at:end]), end


def _string(text: str, at: int) -> tuple[str, int]:
    found: list[str] = []
    while at < len(text):
        character = text[at]
        if character == '"':
            return "".join(found), at + 1
        if character == "\\":
            at += 1
            character = {"n": "\n", "t": "\t", "r": "\r"}.get(text[at], text[at])
        found.append(character)
        at += 1
    raise MistakeError("a string without an end")


class Rule(NamedTuple):
    action: str
    operations: tuple[str, ...]
    filters: tuple[list[object], ...]
    message: str


@dataclass
class Profile:
    """A profile, read.

    Attributes:
        rules: in order, the default first.
    """

    rules: list[Rule] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Profile:
        forms = read(text)
        if not forms or forms[0] != ["version", "1"]:
            raise MistakeError("no version")
        profile = cls()
        for form in forms[1:]:
            assert isinstance(form, list)
            profile.rules.append(_rule(form))
        if profile.rules[0].operations != ("default",):
            raise MistakeError("no default")
        return profile

    def allows(self, operation: str, subject: str = "", *, directory: bool = False, by_operation: bool = False) -> bool:
        """Whether an operation on a path, an address or a name is allowed.

        Args:
            operation: without a star.
            subject: a path, `localhost:80`, a service, ...
            directory: whether a directory is at the path.
            by_operation: let a rule that names the operation itself outrank every one that names its family.
        """
        last: dict[bool, str] = {}
        for rule in self.rules:
            about = [one for one in rule.operations if _about(one, operation)]
            if about and (not rule.filters or any(_matches(f, subject, directory=directory) for f in rule.filters)):
                exact = by_operation and operation in about
                last[exact] = rule.action
        return last.get(True, last.get(False, self.rules[0].action)) == "allow"

    def strings(self) -> list[str]:
        """Every name and path it says anything about."""
        found: list[str] = []
        todo: list[object] = [one for rule in self.rules for one in rule.filters]
        while todo:
            form = todo.pop()
            if isinstance(form, list):
                todo.extend(form)
            else:
                found.append(str(form))
        return found


def _rule(form: list[object]) -> Rule:
    action, *rest = form
    if action not in {"allow", "deny"}:
        raise MistakeError(f"{action} is no action")
    operations = tuple(str(one) for one in rest if isinstance(one, Symbol))
    lists = [one for one in rest if isinstance(one, list)]
    message = next((str(one[2]) for one in lists if one[:2] == ["with", "message"]), "")
    filters = tuple(one for one in lists if one[0] != "with")
    unknown = set(operations) - OPERATIONS
    if unknown or not operations:
        raise MistakeError(f"no operations: {unknown}")
    for one in filters:
        _check(one)
    return Rule(str(action), operations, filters, message)


_FILTERS = frozenset(
    [
        "literal",
        "subpath",
        "regex",
        "require-all",
        "vnode-type",
        "target",
        "sysctl-name",
        "sysctl-name-prefix",
        "global-name",
        "info-type",
        "iokit-registry-entry-class",
        "socket-domain",
        "socket-protocol",
        "local",
        "remote",
        "unix-socket",
        "path-regex",
        "extension",
    ]
)


def _check(form: list[object]) -> None:
    if not isinstance(form[0], Symbol) or form[0] not in _FILTERS:
        raise MistakeError(f"{form[0]} is no filter")
    for one in form[1:]:
        if isinstance(one, list):
            _check(one)


def _about(rule: str, operation: str) -> bool:
    return rule == operation or (rule.endswith("*") and operation.startswith(rule[:-1]))


def _matches(form: list[object], subject: str, *, directory: bool) -> bool:
    name, *words = form
    match name:
        case "require-all":
            return all(_matches(one, subject, directory=directory) for one in words if isinstance(one, list))
        case "vnode-type":
            return words == ["DIRECTORY"] and directory
        case "literal":
            return subject == words[0]
        case "subpath":
            return subject == words[0] or subject.startswith(str(words[0]).rstrip("/") + "/")
        case "regex" | "path-regex":
            return searched(str(words[0]), subject)
        case "sysctl-name-prefix":
            return subject.startswith(str(words[0]))
        case "local" | "remote" if isinstance(words[0], list):
            return _matches(words[0], subject, directory=directory)
        case "unix-socket":
            return all(_matches(one, subject, directory=directory) for one in words if isinstance(one, list))
        case "local" | "remote":
            return words[0] == "ip" and _is_address(str(words[1]), subject)
        case _:
            return subject == words[0]


def _is_address(pattern: str, subject: str) -> bool:
    host, _, port = pattern.rpartition(":")
    its_host, _, its_port = subject.rpartition(":")
    loopback = its_host in {"localhost", "127.0.0.1", "::1"}
    return (host == "*" or loopback) and port in {"*", its_port}


def searched(expression: str, subject: str) -> bool:
    """Whether an expression is found in a text, as the dialect has it."""
    return _compiled(expression).search(subject) is not None


@functools.cache
def _compiled(expression: str) -> re.Pattern[str]:
    # the dialect's `$` is the end and nothing else, but for one escaped or in brackets
    return re.compile(_ENDS.sub(lambda found: r"\Z" if found[0] == "$" else found[0], expression))


_ENDS = re.compile(r"\\.|\[\^?\]?[^\]]*\]|\$", re.DOTALL)
