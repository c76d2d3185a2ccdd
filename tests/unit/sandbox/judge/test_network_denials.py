"""What counts of refused connections; the whole report of a mixed attempt is `fixtures/accesses/connections.json`."""

from __future__ import annotations

import dataclasses

import pytest

from sandbox.contract.config import Ignore
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access, Hint, Violation
from sandbox.judge.boundary import Boundary
from sandbox.judge.failure_facts import Aftermath
from sandbox.judge.ignore_lists import IgnoreLists
from sandbox.judge.judge import Judge
from sandbox.judge.network_denials import NetworkDenials, never_suggested
from sandbox.planning.operations import Cover, Origin
from sandbox.planning.path_reach import Plan
from sandbox.proxy.policy.policy import DENIED, NOT_ALLOWED, UNTOLD

P = "/ws/apps/shop"


BOUNDARY = Boundary(
    plan=Plan(operations=(), workspace="/ws", project=P), project=P, workspace="/ws", home="/home/mel", temp="/tmp/t"
)


def judge(*ignored: str) -> NetworkDenials:
    return NetworkDenials(BOUNDARY, IgnoreLists(Ignore(network=ignored), BOUNDARY))


def dial(target: str, reason: str = NOT_ALLOWED, *, refused: bool = True) -> Access:
    return Access(
        pid=7,
        operation="network-outbound",
        intent=Intent.CONNECT,
        asked=target,
        path="",
        exists=False,
        refused=refused,
        reason=reason,
    )


def knock(path: str, *, operation: str = "connect", exists: bool = True) -> Access:
    return Access(
        pid=7,
        operation=operation,
        intent=Intent.CONNECT,
        asked=path,
        path=path,
        exists=exists,
        refused=True,
        errno="EPERM",
        reason="no grant opens it",
    )


def network(judge: NetworkDenials) -> tuple[str, ...]:
    fix = judge.completed(None)
    return fix.allow.network if fix is not None else ()


def test_a_refused_host_is_a_violation_with_host_port_and_reason_each_once() -> None:
    asked = judge()
    found = [asked.take(dial(t)) for t in ("files.test:443", "files.test:443", "files.test:80")]
    assert found == [
        Violation(
            kind="network",
            operation="network-outbound",
            target="files.test:443",
            path="",
            errno="",
            line="deny network-outbound files.test:443 (not on the allow list)",
        ),
        None,
        Violation(
            kind="network",
            operation="network-outbound",
            target="files.test:80",
            path="",
            errno="",
            line="deny network-outbound files.test:80 (not on the allow list)",
        ),
    ]


def test_a_connection_that_was_let_through_is_no_violation() -> None:
    assert judge().take(dial("files.test:443", "", refused=False)) is None


@pytest.mark.parametrize(
    ("entry", "silenced"),
    [
        ("files.test:443", True),
        ("FILES.test:443", True),
        ("*.test:443", True),
        ("files.test:*", True),
        ("files.{test,org}:443", True),
        ("*", True),
        ("files.test", False),
        ("files.test:44", False),
        ("files.test:80", False),
        ("xfiles.test:443", False),
    ],
)
def test_a_refused_host_is_silenced_by_its_exact_text_or_a_glob(entry: str, silenced: bool) -> None:
    assert (judge(entry).take(dial("files.test:443")) is None) is silenced


def test_a_list_for_files_silences_no_host() -> None:
    both = Judge(BOUNDARY, ignore=Ignore(read=("files.test:443", "**"), write=("**",), system_info=("*",)))
    assert both.take(dial("files.test:443")) is not None
    assert Judge(BOUNDARY, ignore=Ignore(network=("files.test:443",))).take(dial("files.test:443")) is None


def test_the_brackets_of_an_address_are_no_pattern() -> None:
    assert judge("[::1]:*").take(dial("[::1]:80")) is None
    assert judge("[::1]:80").take(dial("1:80")) is not None


def test_what_an_entry_would_allow_is_suggested_and_what_deny_took_back_is_not() -> None:
    asked = judge()
    for access in (dial("files.test:443"), dial("b.test:80", DENIED), dial("c.test:80", "resolves to 127.0.0.1")):
        assert asked.take(access) is not None
    assert network(asked) == ("files.test:443",)


@pytest.mark.parametrize("target", ["intranet", "a..b:80", "2130706433:80", "host\u2024test:1:2"])
def test_what_no_list_can_hold_is_not_suggested(target: str) -> None:
    asked = judge()
    assert asked.take(dial(target)) is not None
    assert asked.completed(None) is None


@pytest.mark.parametrize(("target", "is_told"), [("redis", True), ("redis:6379", False), ("a.test", False)])
def test_a_name_without_a_dot_that_was_looked_up_is_told_the_port(target: str, *, is_told: bool) -> None:
    asked = judge()
    assert asked.take(dial(target)) is not None
    assert any('allow.network = ["redis:5432"]' in hint.line for hint in asked.hints()) is is_told


@pytest.mark.parametrize(
    "target",
    [
        "169.254.169.254:80",
        "169.254.7.7:443",
        "[fe80::1]:80",
        "[fd00:ec2::254]:80",
        "[fd20:ce::254]:80",
        "168.63.129.16:80",
        "[::ffff:169.254.169.254]:80",
        "[::ffff:100.100.100.200]:80",
        "metadata.google.internal:80",
        "METADATA.google.internal",
    ],
)
def test_a_metadata_or_link_local_address_is_never_suggested_and_the_report_says_so(target: str) -> None:
    asked = judge()
    assert asked.take(dial(target)) is not None
    assert asked.completed(None) is None
    (hint,) = asked.hints()[-1:]
    assert hint.line.startswith(target)
    asked.take(dial("files.test:443"))
    fix = asked.completed(None)
    assert fix is not None
    assert (fix.allow.network, fix.withheld) == (("files.test:443",), (target,))


def test_a_greeting_whose_name_cannot_be_told_is_explained_and_not_cured_by_an_entry_for_it() -> None:
    asked = judge()
    violation = asked.take(dial("files.test:443", f"{UNTOLD}: an alert comes before it"))
    assert violation is not None
    assert "an alert comes before it" in violation.line
    assert asked.completed(None) is None
    (hint,) = asked.hints()
    assert all(word in hint.line for word in ("files.test:443", "greets", "its address"))


@pytest.mark.parametrize(
    "target", ["files.test:443", "10.0.0.7:5432", "[fd00::1]:22", "127.0.0.1:5432", "1.2.3.4", "x", "a:b:c"]
)
def test_other_hosts_may_be_suggested(target: str) -> None:
    assert not never_suggested(target)


@pytest.mark.parametrize("operation", ["connect", "sendto", "sendmsg", "sendmmsg"])
def test_a_refused_socket_of_the_hosts_is_a_violation_once_by_its_place(operation: str) -> None:
    asked = judge()
    violation = asked.take(knock("/srv/app.sock", operation=operation))
    assert violation is not None
    assert (violation.kind, violation.operation, violation.path) == ("network", operation, "/srv/app.sock")
    assert violation.errno == "EPERM"
    assert asked.take(knock("/srv/app.sock")) is None
    assert asked.completed(None) is None


def test_a_socket_that_is_not_there_is_the_hosts_own_answer() -> None:
    assert judge().take(knock("/srv/app.sock", exists=False)) is None


@pytest.mark.parametrize(
    "path",
    [
        "/run/nscd/socket",
        "/run/systemd/userdb/io.systemd.Machine",
        "/run/systemd/resolve/io.systemd.Resolve",
        "/dev/log",
    ],
)
def test_what_every_look_up_of_a_user_or_host_asks_is_no_news(path: str) -> None:
    assert judge().take(knock(path)) is None


@pytest.mark.parametrize(
    ("entry", "silenced"),
    [
        ("/srv/app.sock", True),
        ("/srv/*.sock", True),
        ("../../srv/app.sock", False),
        ("app.sock", False),
        ("/srv", False),
    ],
)
def test_a_refused_socket_is_silenced_by_its_path_in_the_list_for_the_network(entry: str, silenced: bool) -> None:
    assert (judge(entry).take(knock("/srv/app.sock")) is None) is silenced
    assert Judge(BOUNDARY, ignore=Ignore(read=(entry,), write=(entry,))).take(knock("/srv/app.sock")) is not None


@pytest.mark.parametrize(
    ("path", "entry", "known"),
    [
        ("/run/docker.sock", '"/run/docker.sock"', "Docker"),
        ("/home/mel/.gnupg/S.gpg-agent", '"~/.gnupg/S.gpg-agent"', "GnuPG"),
        (f"{P}/app.sock", '"app.sock"', "socket of the host's"),
        ("/ws/libs/app.sock", '"/ws/libs/app.sock"', "socket of the host's"),
    ],
)
def test_a_hint_says_what_a_socket_commands_and_the_entry_for_it(path: str, entry: str, known: str) -> None:
    asked = judge()
    asked.take(knock(path))
    hint = asked.hints()[-1]
    assert f"allow.unixSockets = [{entry}] opens it" in hint.line
    assert known in hint.line


def test_a_socket_whose_name_no_list_can_hold_gets_no_entry() -> None:
    asked = judge()
    asked.take(knock("/srv/it's.sock"))
    assert "allow.unixSockets" not in asked.hints()[-1].line


@pytest.mark.parametrize(
    ("access", "helps"),
    [
        (dial("files.test:443"), "grant"),
        (dial("b.test:80", DENIED), "ignore"),
        (dial("intranet:80"), "grant"),
        (dial("intranet"), "tool-fault"),
        (dial("metadata:80"), "credential"),
        (dial("c.test:80", "resolves to a loopback address"), "tool-fault"),
        (dial("169.254.169.254:80"), "credential"),
        (knock("/srv/app.sock"), "grant"),
        (knock("/srv/it's.sock"), "tool-fault"),
    ],
)
def test_a_violation_says_what_helps(access: Access, helps: str) -> None:
    violation = judge().take(access)
    assert violation is not None
    assert violation.class_ == helps


def test_a_refused_connection_is_reason_enough_for_a_failure() -> None:
    covered = Plan(operations=(Cover(path="/ws", origin=Origin(reason="a wall")),), workspace="/ws", project=P)
    whole = Judge(dataclasses.replace(BOUNDARY, plan=covered))
    after = Aftermath(cwd=P, printed="No tests found")
    assert any("own directory" in hint.line for hint in whole.hints(after))
    assert whole.take(dial("files.test:443")) is not None
    assert not any("own directory" in hint.line for hint in whole.hints(after))


def test_what_there_is_to_note_of_a_dial_that_nobody_answered_is_told_once_beside_a_failure() -> None:
    asked = judge()
    reason = 'the host listens on this port, which allow.network = ["localhost:5432"] would open'
    for target in ("127.0.0.1:5432", "127.0.0.1:5432"):
        assert asked.take(dial(target, reason, refused=False)) is None
    (hint,) = asked.hints()
    assert hint.line == f"127.0.0.1:5432: {reason}"
    assert asked.completed(None) is None
    other = Hint(line='nothing listens inside: allow.network = ["localhost:5432"] lets it reach the host\'s')
    assert asked.hints((other,)) == ()
    assert asked.hints((Hint(line='allow.network = ["localhost:54321"]'),)) != ()
