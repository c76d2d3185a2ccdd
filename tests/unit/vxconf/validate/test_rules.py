"""Rules across fields where a golden file says too little, and rules over broken documents."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.base.task_environment_variables import RESERVED
from tests.support.configs import judge
from vxconf.nearest_names import NearestNames
from vxconf.validate.rules import RULES
from vxconf.validate.rules.sandbox_rules import unclosed
from vxconf.validate.rules.well_typed_view import file_view


def codes(text: str, file: str = "vx.toml") -> list[str]:
    return [d.code for d in judge(text.encode(), file)]


@pytest.mark.parametrize(
    ("grant", "opened"),
    [
        ("lib", None),
        ("[id]", None),
        ("[[]", None),
        ("[]]", None),
        ("[!]]", None),
        ("]", None),
        ("}", None),
        ("{a,b}", None),
        (r"\[", None),
        (r"\{", None),
        ("[", "["),
        ("a[b", "["),
        ("[]", "["),
        ("{", "{"),
        ("{a,{b}", "{"),
        (r"{a,b\}", "{"),
        ("\\", None),
    ],
)
def test_unclosed_bracket_or_brace_is_found(grant: str, opened: str | None) -> None:
    assert unclosed(grant) == opened


@pytest.mark.parametrize("entry", ["/", "//", "/.", "/./", "/**", "/**/*", "~", "~/", "~/**", "~/.", "./~"])
def test_no_task_may_write_everywhere(entry: str) -> None:
    text = f"[tasks.a.exec]\ncommand = 'x'\nsandbox.allow.write = ['{entry}']\n"
    expected = [] if entry == "./~" else ["VX305"]
    assert codes(text) == expected


@pytest.mark.parametrize("entry", ["/x/", "~/x/", "~x/", ".", "./", "**", "a/~", "/~", "*/"])
def test_a_write_grant_of_a_directory_is_no_grant_of_everything(entry: str) -> None:
    assert codes(f"[tasks.a.exec]\ncommand = 'x'\nsandbox.allow.write = ['{entry}']\n") == []


@pytest.mark.parametrize("reads", [[], ["."], ["src/**"]])
def test_reading_everything_is_nobodys_business(reads: list[str]) -> None:
    assert codes(f"[tasks.a.exec]\ncommand = 'x'\nsandbox.allow.read = {[*reads, '/', '~']!r}\n") == []


def test_a_reserved_variable_is_the_tasks_own_without_a_sandbox() -> None:
    assert codes("[tasks.a.exec]\ncommand = 'x'\nenv.define.TMPDIR = '/x'\n") == []
    assert codes("[tasks.a.exec]\ncommand = 'x'\nenv.define.TMPDIR = '/x'\nsandbox = {}\n") == ["VX408"]


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_every_variable_the_sandbox_sets_is_reserved_for_every_sandboxed_task(name: str) -> None:
    text = f"[tasks.a.exec]\ncommand = 'x'\nenv.passThrough = ['{name}']\n"
    assert codes(text) == []
    assert codes(text + "sandbox = {}\n") == ["VX408"]


def test_a_variable_the_sandbox_adds_to_is_the_tasks_own() -> None:
    assert codes("[tasks.a.exec]\ncommand = 'x'\nenv.define.JAVA_TOOL_OPTIONS = '-Xmx1g'\nsandbox = {}\n") == []


def test_a_circle_is_said_at_the_reference_that_closes_it() -> None:
    text = "[tasks.a]\ndependsOn = ['b']\n[tasks.b]\ndependsOn = ['c']\n[tasks.c]\ndependsOn = ['a', 'd']\n[tasks.d]\n"
    (said,) = judge(text.encode())
    assert said.message.endswith("a -> b -> c -> a")
    assert (said.path, said.place.line) == ("tasks.c.dependsOn[0]", 6)


@pytest.mark.slow
def test_a_circle_of_10_000_tasks_is_found_without_recursion() -> None:
    ring = "".join(f"[tasks.t{i}]\ndependsOn = ['t{(i + 1) % 10_000}']\n" for i in range(10_000))
    (said,) = judge(ring.encode())
    assert said.code == "VX210"
    assert len(said.message) < 200


def test_the_rules_speak_beside_the_schema_about_other_fields() -> None:
    text = "[tasks.a.exec]\ncommand = 7\nsandbox.allow.network = ['nodot']\n"
    assert codes(text) == ["VX102", "VX103"]


@pytest.mark.parametrize("field", ["dependsOn", "cache.inputs.tasks"])
def test_both_lists_of_references_are_held_to_the_grammar(field: str) -> None:
    assert codes(f"[tasks.a]\nexec.command = 'x'\n{field} = ['a#b#c', 'nope', 'a']\n") == ["VX206", "VX208", "VX207"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"tasks": None},
        {"tasks": []},
        {"tasks": {"a": None, "b": [], "c": "x"}},
        {"tasks": {"a": {"exec": None, "cache": 3, "dependsOn": "x"}}},
        {"tasks": {"a": {"exec": {"env": {"define": [], "passThrough": {}}, "sandbox": {"allow": 1, "deny": "x"}}}}},
        {"tasks": {"a": {"exec": {"sandbox": {"allow": {"read": [None, 1, {}, ""], "network": [None, 1]}}}}}},
        {"tasks": {"a": {"exec": {"persistent": {"readyWhen": {"output": 3}}}}}},
    ],
)
def test_rules_leave_wrong_types_to_the_schema(data: Any) -> None:
    assert [finding for rule in RULES for finding in rule(file_view(data))] == []


def test_did_you_mean_prefers_what_people_confuse() -> None:
    nearest = NearestNames(["passThrough", "passTrough", "build"])
    assert nearest.to("pass_through") == "passThrough"
    assert nearest.to("biuld") == "build"
    assert nearest.to("zzz") is None
    assert nearest.to("b" * 1000) is None


_SANDBOX = "[tasks.a.exec]\ncommand = 'x'\nsandbox.allow."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{_SANDBOX}write = ['/{'/.' * 200_000}x']\n", None),
        (f"{_SANDBOX}write = ['/{'/**/*' * 100_000}']\n", "VX305"),
        (f"{_SANDBOX}read = ['{'[' * 500_000}']\n", "VX211"),
        (f"{_SANDBOX}read = ['{'[a]{' * 200_000}']\n", "VX211"),
        (f"{_SANDBOX}network = ['{'a.' * 500_000}']\n", "VX103"),
        (f"{_SANDBOX}network = ['{'a+' * 500_000}']\n", "VX103"),
        (f"{_SANDBOX}network = ['{'a@' * 500_000}']\n", "VX103"),
        (f"{_SANDBOX}unixSockets = ['{'../' * 300_000}']\n", "VX214"),
        (f"[tasks.a.exec]\ncommand = 'x'\npersistent.readyWhen.output = '{'(' * 9000}'\n", "VX202"),
        (f"[tasks.a.exec]\ncommand = 'x'\npersistent.readyWhen.output = '{'a' * 1_000_000}'\n", "VX202"),
        (f"[tasks.a.exec]\ncommand = 'x'\nenv.passThrough = ['{'a=' * 500_000}']\n", "VX203"),
        (f"[tasks.'a{' ' * 500_000}']\n", "VX108"),
        (f"[tasks.a]\ndependsOn = ['{'^' * 500_000}b']\n", "VX206"),
        (f"{'k' * 1_000_000} = 1\n", "VX101"),
    ],
    ids=lambda v: v if isinstance(v, str) and len(v) < 10 else "",
)
def test_a_value_of_a_megabyte_is_judged_in_no_time_and_not_printed(text: str, code: str | None) -> None:
    said = judge(text.encode())
    assert [d.code for d in said] == ([code] if code else [])
    assert all(len(d.message) + len(d.help) < 1000 for d in said)
