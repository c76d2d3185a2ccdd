"""Explanations of hosts, ports and sockets, and answers of `--why` with the line that decides."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import make_tree
from vxconf.cli.commands import explain

if TYPE_CHECKING:
    from pathlib import Path

    from vxconf.cli.arguments import Arguments

NETWORKED = """\
[tasks.build.exec]
command = "make"

[tasks.build.exec.sandbox]
allow.network = [
  "pkg.test:443",
  "*.acme.test",
  "localhost:4173",
  "localhost:8000",
]
deny.network = [
  "ads.acme.test",
  "*:22",
]
allow.localBinding = [8000]
allow.unixSockets = ["/srv/db.sock"]
allow.write = ["dist/"]
"""
TRUE = '[tasks.build.exec]\ncommand = "make"\nsandbox.allow.network = true\n'
OTHER = '[tasks.fetch.exec]\ncommand = "get"\nsandbox.allow.network = ["pkg.test:443", "b.test"]\n'


class Project:
    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys

    def explain(self, text: str, why: str | None = None, **more: bool) -> dict[str, Any]:
        (self.directory / "vx.toml").write_text(text)
        words: Arguments = {"task": "build", "platform": "linux", "format": "json", "why": why, "mechanism": False}
        words["C"] = None
        words |= more
        explain.main(words)
        data: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return data

    def text(self, text: str) -> str:
        (self.directory / "vx.toml").write_text(text)
        words: Arguments = {"task": "build", "platform": "linux", "format": "text", "why": None, "mechanism": False}
        words["C"] = None
        explain.main(words)
        return self._capsys.readouterr().out

    def why(self, target: str, text: str = NETWORKED) -> dict[str, Any]:
        answer: dict[str, Any] = self.explain(text, target)
        return answer


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    make_tree(tmp_path, {".vx/workspace.toml": "", "apps/shop/lib/x": "", "apps/other/vx.toml": OTHER})
    monkeypatch.chdir(tmp_path / "apps" / "shop")
    return Project(tmp_path / "apps" / "shop", capsys)


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("pkg.test:443", 6),
        ("PKG.test.:443", 6),
        ("pkg.test", 6),
        ("api.acme.test", 7),
        ("a.b.acme.test:8443", 7),
        ("localhost:4173", 8),
    ],
)
def test_an_allowed_host_is_told_with_the_line_that_allows_it(project: Project, target: str, line: int) -> None:
    answer = project.why(target)["network"]
    assert (answer["allowed"], answer["by"]["line"], answer["nearest"]) == (True, line, None)
    assert answer["by"]["file"].endswith("vx.toml")


@pytest.mark.parametrize(
    ("target", "line"), [("ads.acme.test:80", 12), ("api.acme.test:22", 13), ("ads.acme.test", 12)]
)
def test_a_denied_host_is_told_with_the_line_that_denies_it(project: Project, target: str, line: int) -> None:
    answer = project.why(target)["network"]
    assert (answer["allowed"], answer["by"]["line"]) == (False, line)


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("pkg.test:80", 6),
        ("files.pkg.test:443", 6),
        ("acme.test:443", 7),
        ("xacme.test:443", None),
        ("other.test:443", None),
        ("10.0.0.1:443", None),
    ],
)
def test_a_host_on_no_list_is_told_with_its_nearest_miss(project: Project, target: str, nearest: int | None) -> None:
    answer = project.why(target)["network"]
    assert (answer["allowed"], answer["by"]["reason"]) == (False, "it is on no list")
    assert (answer["nearest"] or {}).get("line") == nearest


def test_a_port_of_the_tasks_own_server_is_said_to_be_that(project: Project) -> None:
    answer = project.why("localhost:8000")["network"]
    assert answer["allowed"]
    assert "task's own" in answer["by"]["reason"]
    assert "a loopback of its own" in project.why("127.0.0.1:9999")["network"]["by"]["reason"]
    assert not project.why("127.0.0.1:9999")["network"]["allowed"]


@pytest.mark.parametrize("target", ["2130706433:80", "0x7f.1:80", "x..acme.test:443"])
def test_a_spelling_no_host_has_is_refused_as_the_front_does(project: Project, target: str) -> None:
    answer = project.why(target)["network"]
    assert not answer["allowed"]
    assert "written like that" in answer["by"]["reason"]


def test_true_is_explained_by_the_lists_of_the_workspace(project: Project) -> None:
    (item,) = [one for one in project.explain(TRUE)["grants"] if one["path"].endswith("network")]
    assert "pkg.test:443, b.test" in item["notes"][0]
    for target, said in (("pkg.test:443", "lists pkg.test:443"), ("no.test:443", "no task of the workspace lists it")):
        answer = project.why(target, TRUE)["network"]
        assert not answer["allowed"]
        assert said in answer["by"]["reason"]


def test_a_list_of_true_does_not_hide_that_nobody_lists_a_host(project: Project) -> None:
    (project.directory.parent / "other" / "vx.toml").unlink()
    (item,) = [one for one in project.explain(TRUE)["grants"] if one["path"].endswith("network")]
    assert "no task of the workspace lists one" in item["notes"][0]


def test_each_entry_is_told_with_what_it_becomes(project: Project) -> None:
    told = {one["path"].split("sandbox.")[1]: one for one in project.explain(NETWORKED)["grants"]}
    operations = {path: [op["op"] for op in one["linux"]] for path, one in told.items()}
    assert operations["allow.network[0]"] == ["Allow"]
    assert operations["allow.network[1]"] == ["Allow"]
    assert operations["deny.network[0]"] == ["Deny"]
    assert operations["allow.unixSockets[0]"] == ["Socket"]
    assert "not acme.test itself" in told["allow.network[1]"]["notes"][0]
    assert any("task's own port" in note for note in told["allow.network[3]"]["notes"])


@pytest.mark.parametrize(
    ("target", "allowed", "said"),
    [
        ("/srv/db.sock", True, None),
        ("/srv/other.sock", False, "no entry of unixSockets"),
        ("/var/run/docker.sock", False, "Docker daemon"),
        ("dist/app.sock", True, "the task itself makes the sockets"),
    ],
)
def test_a_sockets_path_is_answered_for_connecting_too(
    project: Project, target: str, allowed: bool, said: str | None
) -> None:
    answer = project.why(target)["connect"]
    assert answer["allowed"] is allowed
    assert answer["by"]["line"] == 16 if said is None else said in answer["by"]["reason"]
    assert (answer["nearest"] is not None) is (target == "/srv/other.sock")


def test_a_socket_that_exists_is_known_whatever_its_name(project: Project) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("lib/s")  # a relative name: the absolute path of a socket may be too long
        assert not project.why("lib/s")["connect"]["allowed"]
    assert "connect" not in project.why("lib/x")


def test_the_front_and_what_it_guards_are_implied(project: Project) -> None:
    implied = {
        one["value"]: one for one in project.explain("[tasks.build.exec]\ncommand = 'x'\nsandbox = {}\n")["implied"]
    }
    proxy = implied["127.0.0.1:3128, 127.0.0.1:1080, 127.0.0.1:53"]
    assert len(proxy["linux"]) == 3
    assert any("link-local" in value for value in implied)
    assert any("sockets" in one["reason"] for one in implied.values())
