from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox.base.task_environment_variables import (
    JAVA_FLAGS,
    MARKER,
    PROXIES,
    RESERVED,
    names_git,
    search_path,
    task_environment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

P = "/ws/apps/shop"
PROXY = {**PROXIES, MARKER: "1", "JAVA_TOOL_OPTIONS": JAVA_FLAGS}
OWN = f"{P}/node_modules/.bin:{P}/.venv/bin:/ws/node_modules/.bin:/ws/.venv/bin"


def environment(
    host: Mapping[str, str],
    *,
    define: Mapping[str, str] | None = None,
    pass_through: tuple[str, ...] = (),
    git: bool = False,
) -> dict[str, str]:
    return task_environment(
        host, define=define or {}, pass_through=pass_through, project=P, workspace="/ws", temp="/tmp/t", grants_git=git
    )


def test_only_what_a_program_needs_of_the_host_passes() -> None:
    passed = {
        "HOME": "/home/mel",
        "USER": "mel",
        "LOGNAME": "mel",
        "SHELL": "/bin/zsh",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "LC_TIME": "C",
        "TZ": "UTC",
        "TERM": "xterm",
        "CI": "1",
    }
    host = {**passed, "PATH": "/usr/bin", "SSH_AUTH_SOCK": "/x", "LD_PRELOAD": "/y", "LCX": "z", "BUILD_NUMBER": "t"}
    assert environment(host) == {**passed, "PATH": f"{OWN}:/usr/bin", "TMPDIR": "/tmp/t", **PROXY}


def test_a_host_without_anything_gives_a_path_and_a_temporary_directory() -> None:
    assert environment({}) == {"PATH": f"{OWN}:/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp/t", **PROXY}


def test_a_task_takes_what_it_names_and_defines_the_rest() -> None:
    host = {"BUILD_NUMBER": "t", "NODE_ENV": "test", "OTHER": "x"}
    found = environment(host, define={"NODE_ENV": "production"}, pass_through=("BUILD_NUMBER", "NODE_ENV", "ABSENT"))
    assert found["BUILD_NUMBER"] == "t"
    assert found["NODE_ENV"] == "production"
    assert "OTHER" not in found
    assert "ABSENT" not in found


@pytest.mark.parametrize("host", ["", ":/usr/bin:", ".:/usr/bin", "bin:./x:/usr/bin", "/usr/bin:/usr/bin"])
def test_a_relative_or_empty_entry_never_names_programs(host: str) -> None:
    found = search_path(host, project=P, workspace="/ws").split(":")
    assert all(entry.startswith("/") for entry in found)
    assert len(found) == len(set(found))
    assert "/usr/bin" in found


def test_taking_the_hosts_path_does_not_bring_its_relative_entries_back() -> None:
    assert environment({"PATH": ".:/usr/bin"}, pass_through=("PATH",))["PATH"] == f"{OWN}:/usr/bin"


def test_a_path_the_task_defines_is_the_tasks_own() -> None:
    assert environment({"PATH": "/usr/bin"}, define={"PATH": "/opt/bin"})["PATH"] == "/opt/bin"


def test_a_project_at_the_root_names_its_programs_once() -> None:
    assert search_path("/bin", project="/ws", workspace="/ws") == "/ws/node_modules/.bin:/ws/.venv/bin:/bin"


def test_every_name_of_the_temporary_directory_that_is_set_is_the_tasks_own() -> None:
    both = environment({"TMP": "/a", "TEMP": "/b", "TMPDIR": "/c"}, define={"TMPDIR": "/mine"})
    assert {both[name] for name in ("TMP", "TEMP", "TMPDIR")} == {"/tmp/t"}
    one = environment({}, define={"TMP": "/mine"})
    assert (one["TMP"], one["TMPDIR"], "TEMP" in one) == ("/tmp/t", "/tmp/t", False)


def test_names_a_task_cannot_set_are_data() -> None:
    assert {"TMPDIR", "TMP", "TEMP", *PROXIES, MARKER} < RESERVED
    mine = environment({}, define=dict.fromkeys(RESERVED, "/mine"), pass_through=tuple(RESERVED))
    assert "/mine" not in mine.values()


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY"])
def test_a_proxy_variable_names_the_tasks_own_front_in_both_spellings(name: str, lower: bool) -> None:
    found = environment({name: "http://corp:8080", name.lower(): "http://corp:8080"}, pass_through=(name, name.lower()))
    assert found[name.lower() if lower else name] == "http://127.0.0.1:3128"


def test_tools_with_spellings_of_their_own_are_told_of_the_front() -> None:
    found = environment({})
    assert found["FTP_PROXY"] == found["ftp_proxy"] == "socks5h://127.0.0.1:1080"
    assert found["RSYNC_PROXY"] == "127.0.0.1:3128"
    assert found["DOCKER_HTTP_PROXY"] == found["DOCKER_HTTPS_PROXY"] == "http://127.0.0.1:3128"
    assert [found[f"CLOUDSDK_PROXY_{part}"] for part in ("TYPE", "ADDRESS", "PORT")] == ["http", "127.0.0.1", "3128"]
    assert found["NODE_USE_ENV_PROXY"] == "1"


def test_the_front_is_passed_by_for_loopback_alone() -> None:
    found = environment({"NO_PROXY": "10.0.0.0/8"}, pass_through=("NO_PROXY",), define={"no_proxy": "*"})
    assert found["NO_PROXY"] == found["no_proxy"] == "localhost,127.0.0.1,::1"


def test_a_proxys_user_and_password_of_the_tasks_do_not_survive() -> None:
    found = environment({}, define={"CLOUDSDK_PROXY_USERNAME": "mel", "CLOUDSDK_PROXY_PASSWORD": "x"})
    assert not any(name.startswith(("CLOUDSDK_PROXY_USER", "CLOUDSDK_PROXY_PASS")) for name in found)


def test_java_gets_the_front_and_exactly_the_tasks_own_options() -> None:
    host = {"JAVA_TOOL_OPTIONS": "-Dhost=1"}
    assert environment(host)["JAVA_TOOL_OPTIONS"] == JAVA_FLAGS
    assert environment(host, pass_through=("JAVA_TOOL_OPTIONS",))["JAVA_TOOL_OPTIONS"] == f"{JAVA_FLAGS} -Dhost=1"
    mine = environment(host, define={"JAVA_TOOL_OPTIONS": "-Xmx64m  -Da=b"})
    assert mine["JAVA_TOOL_OPTIONS"] == f"{JAVA_FLAGS} -Xmx64m  -Da=b"
    assert environment(host, define={"JAVA_TOOL_OPTIONS": ""})["JAVA_TOOL_OPTIONS"] == JAVA_FLAGS


def test_git_finds_its_repository_through_mounts_where_a_grant_names_one() -> None:
    name = "GIT_DISCOVERY_ACROSS_FILESYSTEM"
    assert environment({}, git=True)[name] == "1"
    assert name not in environment({name: "1"})
    assert environment({}, define={name: "0"}, git=True)[name] == "0"


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("/ws/.git/config", True),
        ("/ws/sub/.git", True),
        ("/ws/.git/", True),
        ("/ws/.github", False),
        ("/ws/x.git", False),
    ],
)
def test_a_grant_names_git_by_a_whole_component(grant: str, expected: bool) -> None:
    assert names_git(["/ws/lib", grant]) is expected
