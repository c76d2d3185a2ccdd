"""What is written on one machine means the same on another where the workspace and the home lie elsewhere."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.base.host_facts import Kind
from sandbox.contract import results
from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.contract.intents import Intent
from sandbox.contract.results import Access
from sandbox.request.build import build
from sandbox.request.request import Request, WorkspaceFacts
from sandbox.request.task_outputs import Declared, anchored
from sandbox.wire import portable
from sandbox.wire.portable import Anchors
from tests.property.strategies import FACTS, HOME, WORKSPACE, Case, any_names, cases
from tests.support.memory_files import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Callable

THERE = Anchors("/srv/other place/[ws]{1}", "/srv/other place/[ws]{1}/a", "/users/mel*")
_MOVED = ((WORKSPACE, THERE.workspace), (HOME, THERE.home))


def moved(path: str) -> str:
    for here, there in _MOVED:
        if path == here or path.startswith(here + "/"):
            return there + path[len(here) :]
    return path


def moved_files(files: MemoryFiles) -> MemoryFiles:
    there = MemoryFiles.of("/tmp/t/", THERE.workspace + "/")
    for path, kind in files.kinds.items():
        if kind is not Kind.DIRECTORY or moved(path) != path or path not in {"/home", "/"}:
            there.add(moved(path), kind)
    for place, text in files.links.items():
        there.links[moved(place)] = text if _stays(place, text) else moved(_target(place, text))
    return there


def _stays(place: str, text: str) -> bool:
    """Whether a link is relative to what moves along with it."""
    return not text.startswith("/") and paths.at_or_under(_target(place, text), WORKSPACE)


def _target(place: str, text: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(place), text))


def expanded(grants: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for grant in grants for one in globs.expand_braces(grant))


def built(case: Case) -> Request | None:
    given_ = case.given
    try:
        return build(
            ResolvedSandboxConfig(
                platform="linux",
                workspace=WORKSPACE,
                project=given_["project"],
                allow_read=given_["read"],
                allow_write=given_["write"],
                ignore=Ignore(read=("a/*", f"{WORKSPACE}/b"), write=(f"{HOME}/x",)),
            ),
            WorkspaceFacts(
                root=WORKSPACE,
                nested=given_["nested"],
                declared=Declared(
                    own=anchored(given_["project"], ("dist/**", "!dist/*.map", "{a,b}/[x].js")),
                    upstream=(("libs/money#build", anchored(f"{WORKSPACE}/libs/money", ("out", "!out/x"))),),
                    inputs=(*anchored(given_["project"], ("**", "!*.md")), *anchored(WORKSPACE, ("a.json",))),
                ),
            ),
            files=case.files,
            facts=FACTS,
        )
    except RequestRefused:
        return None


@settings(max_examples=60)
@given(cases())
def test_a_request_comes_back_as_it_was_on_the_same_machine(case: Case) -> None:
    made = built(case)
    if made is None:
        return
    text = portable.request_to_json(made)
    assert WORKSPACE not in text.replace("{workspace}", "")
    again = portable.request_from_json(text, workspace=WORKSPACE, facts=FACTS, files=case.files)
    # what is ignored comes back spelled from the root, and with its links resolved
    assert dataclasses.replace(again, judged=made.judged, workspace=made.workspace) == made
    assert again.config.allow_read == expanded(made.config.allow_read)
    assert again.config.allow_write == expanded(made.config.allow_write)


@settings(max_examples=60)
@given(cases())
@example(
    Case(
        MemoryFiles.of(f"{WORKSPACE}/b/", links={f"{WORKSPACE}/a": ".."}),
        {"project": WORKSPACE, "read": (f"{WORKSPACE}/a/*/b",), "write": (), "nested": ()},
    )
)
def test_a_request_means_the_same_places_on_another_machine(case: Case) -> None:
    made = built(case)
    if made is None:
        return
    text = portable.request_to_json(made)
    facts = dataclasses.replace(FACTS, home=THERE.home)
    there = portable.request_from_json(text, workspace=THERE.workspace, facts=facts, files=moved_files(case.files))
    here = portable.request_from_json(text, workspace=WORKSPACE, facts=FACTS, files=case.files)
    assert portable.request_to_json(there) == portable.request_to_json(here)
    assert [read.path for read in there.reads] == [moved(read.path) for read in made.reads]
    assert [wall.path for wall in there.walls] == [moved(wall.path) for wall in made.walls]
    assert {store.path for store in there.stores} == {moved(store.path) for store in made.stores}


texts = st.text("{}/. awsx", max_size=12) | st.sampled_from(
    ["", "{workspace}", "{{home}}", f"openat {WORKSPACE}/a: ENOENT, {HOME}/b", f"{WORKSPACE}x {HOME}", f"'{HOME}'"]
)
violations = st.builds(
    results.Violation,
    kind=st.sampled_from(["read", "write", "network"]),
    operation=texts,
    target=texts | any_names,
    path=texts,
    errno=texts,
    line=texts,
)
refusals = st.builds(
    results.RunRefusal,
    message=texts,
    hint=texts,
    code=st.sampled_from(["", "VX314"]),
    field=st.sampled_from(["", "allowRead[0]"]),
)
paths_of = st.builds(results.FixPaths, read=st.lists(texts, max_size=2).map(tuple))
outcomes = st.builds(
    results.RunResult,
    sandboxed=st.booleans(),
    exit_code=st.integers(0, 255),
    command_exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.just("SIGTERM"),
    duration_ms=st.floats(0, 10),
    cpu_ms=st.none() | st.floats(0, 10),
    violations=st.lists(violations, max_size=2).map(tuple),
    hints=st.lists(st.builds(results.Hint, line=texts), max_size=2).map(tuple),
    fix=st.none() | st.builds(results.Fix, allow=paths_of, withheld=st.lists(texts, max_size=1).map(tuple)),
    refusals=st.lists(refusals, max_size=2).map(tuple),
    stdout=st.binary(max_size=5),
    stderr=st.binary(max_size=5),
)
HERE = Anchors(WORKSPACE, f"{WORKSPACE}/a", HOME)


@given(outcomes)
def test_every_result_comes_back_whatever_braces_and_places_its_words_hold(result: results.RunResult) -> None:
    text = portable.result_to_json(result, HERE)
    assert portable.result_from_json(text, HERE) == result
    assert portable.result_to_json(portable.result_from_json(text, THERE), THERE) == text or moves_words(result)


def moves_words(result: results.RunResult) -> bool:
    """Words that hold one of the other machine's own places come back as an anchor of it."""
    return any(place in repr(result) for place in (*THERE,))


def test_a_result_names_the_other_machines_places() -> None:
    line = f"openat lib/x: ENOENT, {WORKSPACE}/a/lib/x is covered by no grant ({HOME}/.ssh, {WORKSPACE}2/x)"
    violation = results.Violation(
        kind="read", operation="openat", target="lib/x", path=f"{WORKSPACE}/a/lib/x", errno="ENOENT", line=line
    )
    text = portable.result_to_json(results.RunResult(sandboxed=True, exit_code=1, violations=(violation,)), HERE)
    data = json.loads(text)["value"]["violations"][0]
    assert data["path"] == "{project}/lib/x"
    assert data["line"].endswith("{project}/lib/x is covered by no grant ({home}/.ssh, {home}/ws2/x)")
    (there,) = portable.result_from_json(text, THERE).violations
    assert there.path == f"{THERE.project}/lib/x"


NOTHING = MemoryFiles.of(f"{WORKSPACE}/")


@pytest.mark.parametrize(
    "read",
    [
        lambda text: portable.config_from_json(text, workspace=WORKSPACE, home=HOME, files=NOTHING),
        lambda text: portable.request_from_json(text, workspace=WORKSPACE, facts=FACTS, files=NOTHING),
        lambda text: portable.result_from_json(text, HERE),
    ],
    ids=["config", "request", "result"],
)
@given(data=st.text(max_size=40) | st.just("[" * 100_000) | st.just('{"kind":"config","version":2,"value":{}}'))
def test_anything_else_is_refused_and_never_a_traceback(read: Callable[[str], object], data: str) -> None:
    with pytest.raises(RequestRefused):
        read(data)


def test_a_write_grant_that_leaves_the_project_elsewhere_is_refused() -> None:
    config = ResolvedSandboxConfig(
        platform="linux", workspace=WORKSPACE, project=f"{WORKSPACE}/a", allow_write=(f"{WORKSPACE}/a/out/",)
    )
    text = portable.config_to_json(config, home=HOME)
    files = MemoryFiles.of(f"{WORKSPACE}/a/", "/elsewhere/", links={f"{WORKSPACE}/a/out": "/elsewhere"})
    with pytest.raises(RequestRefused) as refused:
        portable.config_from_json(text, workspace=WORKSPACE, home=HOME, files=files)
    assert "/elsewhere" in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "link", "target"),
    [
        ({"allow_read": (f"{WORKSPACE}/a/out/x",)}, f"{WORKSPACE}/a/out/x", f"{HOME}/.ssh/id"),
        ({"allow_read": (f"{WORKSPACE}/a/out/*",)}, f"{WORKSPACE}/a/out", f"{HOME}/.ssh"),
        ({"unix_sockets": (f"{WORKSPACE}/a/out/x",)}, f"{WORKSPACE}/a/out/x", "/run/docker.sock"),
    ],
)
def test_a_link_elsewhere_opens_no_store_and_no_socket_that_is_not_named(
    fields: dict[str, Any], link: str, target: str
) -> None:
    config = ResolvedSandboxConfig(platform="linux", workspace=WORKSPACE, project=f"{WORKSPACE}/a", **fields)
    text = portable.config_to_json(config, home=HOME)
    files = MemoryFiles.of(f"{WORKSPACE}/a/", f"{HOME}/.ssh/id", "/run/docker.sock", links={link: target})
    with pytest.raises(RequestRefused, match="leads through a link"):
        portable.config_from_json(text, workspace=WORKSPACE, home=HOME, files=files)


def test_an_access_stays_a_value_that_pickles() -> None:
    import pickle

    access = Access(pid=1, operation="openat", intent=Intent.OPEN, asked="x", path="/x", exists=True)
    assert pickle.loads(pickle.dumps(access)) == access  # noqa: S301  our own bytes
