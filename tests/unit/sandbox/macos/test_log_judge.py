"""From denials of the log to violations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox.base import paths
from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.judge.boundary import Boundary
from sandbox.macos.denial_log import LoggedDenial
from sandbox.macos.log_judge import LogJudge
from sandbox.planning.macos.plan_of_request import plan
from sandbox.request.build import build
from sandbox.request.request import WorkspaceFacts
from tests.support.memory_files import MemoryFiles

if TYPE_CHECKING:
    from sandbox.contract.results import Violation

HOME, WS, SHOP = "/Users/mel", "/Users/mel/ws", "/Users/mel/ws/apps/shop"
FACTS = HostFacts(platform="macos", home=HOME, temp_root="/private/tmp/vx-501")


def _judge(
    *,
    project: str = SHOP,
    withheld: tuple[str, ...] = (),
    mask: str = "",
    files: MemoryFiles | None = None,
    **fields: Any,
) -> LogJudge:
    files = files or MemoryFiles.of(
        f"{SHOP}/lib/a.py", f"{SHOP}/notes.md", f"{WS}/libs/money/src/c.py", f"{WS}/.git/HEAD", "/private/etc/hosts"
    )
    config = ResolvedSandboxConfig(platform="macos", workspace=WS, project=project, **fields)
    request = build(config, WorkspaceFacts(root=WS), files=files, facts=FACTS)
    planned = plan(request, files)
    boundary = Boundary(
        plan=planned,
        project=project,
        workspace=WS,
        home=HOME,
        withheld=withheld,
        walls=request.walls,
        stores=request.stores,
        executed=planned.executed.protects,
        canonical=lambda path: paths.canonical(path, files),
        mask=lambda text: text.replace(mask, "***") if mask else text,
    )
    return LogJudge(boundary, config)


def _denied(judge: LogJudge, operation: str, target: str) -> Violation | None:
    return judge.take(LoggedDenial(process="tool", pid=9, operation=operation, target=target))


def test_a_refused_read_in_the_project_is_a_violation_with_its_path() -> None:
    found = _denied(_judge(), "file-read-data", f"{SHOP}/lib/a.py")
    assert found is not None
    assert (found.kind, found.target, found.path, found.errno) == (
        "read",
        f"{SHOP}/lib/a.py",
        f"{SHOP}/lib/a.py",
        "EPERM",
    )


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (f"{SHOP}/x", True),
        (SHOP, True),
        (f"{SHOP}per/x", False),
        (f"{WS}/libs/money/src/c.py", False),
        (f"{WS}/base.toml", False),
    ],
)
def test_only_what_is_in_the_project_is_reported(path: str, kept: bool) -> None:
    assert (_denied(_judge(), "file-read-data", path) is not None) is kept


def test_a_withheld_package_is_reported_as_the_project_is() -> None:
    judge = _judge(withheld=(f"{WS}/libs/money",))
    assert _denied(judge, "file-read-data", f"{WS}/libs/money/src/c.py") is not None
    assert _denied(judge, "file-read-data", f"{WS}/libs/money-x") is None


def test_a_boundary_of_everything_keeps_everything() -> None:
    assert _denied(_judge(withheld=("/",)), "file-read-data", f"{WS}/base.toml") is not None


@pytest.mark.parametrize(
    "operation", ["system-info", "sysctl-read", "mach-lookup", "iokit-open", "process-info-pidinfo"]
)
def test_what_has_no_path_is_kept_whatever_the_boundary(operation: str) -> None:
    assert _denied(_judge(), operation, "vfs.disk-space") is not None


@pytest.mark.parametrize(
    ("operation", "target", "list_", "kind"),
    [
        ("file-read-data", f"{SHOP}/x", "read", "read"),
        ("file-read-metadata", f"{SHOP}/x", "read", "read"),
        ("file-write-create", f"{SHOP}/x", "write", "write"),
        ("file-write-data", f"{SHOP}/x", "write", "write"),
        ("system-info", "x", "system_info", "systemInfo"),
        ("sysctl-read", "x", "system_info", "systemInfo"),
        ("network-outbound", "x.test:443", "network", "network"),
        ("mach-lookup", "x", "", "other"),
    ],
)
def test_each_kind_is_silenced_by_its_own_list_and_no_other(operation: str, target: str, list_: str, kind: str) -> None:
    for name in ("read", "write", "system_info", "network"):
        judge = _judge(ignore=Ignore(**{name: (target,)}))
        found = _denied(judge, operation, target)
        assert (found is None) is (name == list_), name
        if found is not None:
            assert found.kind == kind


def test_an_ignored_pattern_is_anchored_and_follows_links() -> None:
    files = MemoryFiles.of(f"{SHOP}/real/", links={f"{SHOP}/link": "real"})
    judge = _judge(files=files, ignore=Ignore(write=("*.part", "link/**"), read=("~/none",)))
    assert _denied(judge, "file-write-create", f"{SHOP}/a.part") is None
    assert _denied(judge, "file-write-create", f"{SHOP}/real/x") is None
    assert _denied(judge, "file-write-create", f"{SHOP}/sub/a.part") is not None


def test_a_record_through_a_link_is_judged_where_it_leads_and_shown_as_logged() -> None:
    files = MemoryFiles.of(f"{SHOP}/real/x", links={f"{HOME}/alias": SHOP})
    found = _denied(_judge(files=files), "file-read-data", f"{HOME}/alias/real/x")
    assert found is not None
    assert (found.path, found.target) == (f"{SHOP}/real/x", f"{HOME}/alias/real/x")


def test_times_of_what_may_be_read_are_no_violation() -> None:
    judge = _judge(allow_read=(f"{SHOP}/lib/",))
    assert _denied(judge, "file-write-times", f"{SHOP}/lib/a.py") is None
    assert _denied(judge, "file-write-data", f"{SHOP}/lib/a.py") is not None


def test_the_unanswerable_loopback_retry_is_noise_under_a_network_or_a_binding() -> None:
    assert _denied(_judge(local_binding=True), "network-outbound", "") is None
    assert _denied(_judge(network=("a.test",)), "network-outbound", "") is None
    found = _denied(_judge(), "network-outbound", "")
    assert found is not None
    assert found.kind == "network"


def test_a_front_refuses_by_name_and_once() -> None:
    judge = _judge(network=("a.test",))
    found = judge.connection("b.test:443", "not on the allow list")
    assert found is not None
    assert found.line == "deny network-outbound b.test:443 (not on the allow list)"
    assert judge.connection("b.test:443", "not on the allow list") is None


def test_a_refused_socket_is_told_by_its_path() -> None:
    files = MemoryFiles.of("/private/var/run/docker.sock=", f"{SHOP}/")
    found = _denied(_judge(files=files), "network-outbound", "/private/var/run/docker.sock")
    assert found is not None
    assert (found.kind, found.path) == ("network", "/private/var/run/docker.sock")


def test_the_same_denial_is_told_once() -> None:
    judge = _judge()
    for operation, target in (("file-read-data", f"{SHOP}/x"), ("mach-lookup", "com.a.b")):
        assert _denied(judge, operation, target) is not None
        assert _denied(judge, operation, target) is None


def test_a_refusal_nothing_explains_is_told_all_the_same() -> None:
    judge = _judge(project=WS, allow_read=(f"{WS}/lib/",))
    found = _denied(judge, "file-read-data", WS)
    assert found is not None
    assert (found.kind, found.path) == ("read", WS)


def test_looks_at_a_wall_are_silent_and_opens_in_it_are_not() -> None:
    judge = _judge(project=WS)
    assert _denied(judge, "file-read-metadata", f"{WS}/.git") is None
    assert _denied(judge, "file-read-data", f"{WS}/.git/HEAD") is not None


def test_a_write_to_a_name_other_programs_execute_says_so() -> None:
    found = _denied(_judge(allow_write=(f"{SHOP}/gen/",)), "file-write-create", f"{SHOP}/gen/.bashrc")
    assert found is not None
    assert "other programs execute" in found.line


def test_secrets_are_masked() -> None:
    judge = _judge(mask="hunter2")
    for operation, target in (("file-read-data", f"{SHOP}/hunter2"), ("mach-lookup", "hunter2")):
        found = _denied(judge, operation, target)
        assert found is not None
        assert "hunter2" not in f"{found.line}{found.target}{found.path}"


def test_the_fix_names_what_was_refused() -> None:
    judge = _judge()
    _denied(judge, "file-read-data", f"{SHOP}/notes.md")
    fix = judge.files.fix()
    assert fix is not None
    assert fix.allow.read == ("notes.md",)
