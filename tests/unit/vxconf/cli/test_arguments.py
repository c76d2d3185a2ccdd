"""A plain command line loads few modules, and its words mean the same as typer reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY, Tree
from vxconf.cli import app
from vxconf.cli.arguments import COMMANDS, PlainLine, plain_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vxconf.cli.arguments import Arguments

_HEAVY = (
    *("jsonschema", "rich", "typer", "click", "asyncio", "subprocess", "tempfile", "argparse", "h11", "dns"),
    # modules whose loading can be measured in the start of a check
    *("tomllib", "json", "pathlib", "ipaddress"),
    "vxconf.diagnostics.codes.all_codes",
)


def test_a_healthy_file_is_checked_without_the_heavy_libraries(workspace_factory: Callable[[Tree], Path]) -> None:
    grants = 'read = ["src/", "../base.toml"]\nwrite = ["dist/"]\nnetwork = ["pkg.test:443", "*.packages.test"]\n'
    task = f'[tasks.a.exec]\ncommand = "x"\n\n[tasks.a.exec.sandbox.allow]\n{grants}'
    root = workspace_factory({"p/vx.toml": task, "p/src/x": "", "base.toml": ""})
    program = (
        "import sys\nbefore = set(sys.modules)\nfrom vxconf.__main__ import main\n"
        "status = main(['check', 'p/vx.toml'])\n"
        "names = [n for n in sys.modules if n not in before]\n"
        "print(status, *names)\n"
    )
    done = subprocess.run(
        # -S: the modules that an environment's site loads are not loaded by the program
        [sys.executable, "-S", "-c", program],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.endswith("1 file checked, no problem found\n")
    status, *loaded = done.stdout.split()
    assert status == "0"
    assert [name for name in _HEAVY if name in loaded] == []
    assert [
        name
        for name in loaded
        if name.startswith(("tree_sitter", "wcmatch", "vxconf.diagnostics.render", "vxconf.document.spans"))
    ] == []


def _typers(words: list[str], monkeypatch: pytest.MonkeyPatch) -> PlainLine:
    taken: list[PlainLine] = []

    def take(name: str, arguments: Arguments) -> int:
        taken.append(PlainLine(name, arguments))
        return 0

    monkeypatch.setattr(app, "dispatch", take)
    assert app.carry_out(words) == 0
    return taken[0]


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "a", "b/vx.toml"],
        ["check", "--format", "json", "--strict", "a"],
        ["check", "--format=sarif", "a", "--platform=linux"],
        ["check", "a", "--strict", "--", "--strict", "-x"],
        ["check", "--stdin-filename", "x y.toml"],
        ["-C", "d", "check"],
        ["-C", "d", "check", "-C", "e", "a"],
        ["check", "-C", "e"],
        ["check", "-"],
        ["explain", "a#b"],
        ["explain", "--why", "pkg.test:443", "a", "--platform", "macos", "--mechanism"],
        ["explain", "--", "-a"],
        ["resolve", "a", "--platform=linux"],
        ["run", "a"],
        ["run", "a", "b", "--all", "-j", "3", "--fix", "--timeout", "2.5", "--observer", "notify", "--format=json"],
        ["run", "a", "--timeout=1e2", "--", "--timeout", "7", "--", "x"],
        ["-C", "d", "run", "--", "a"],
        ["run"],
        ["doctor"],
        ["doctor", "--format", "json"],
        ["schema", "--resolved"],
        ["init", "-C", "d"],
    ],
)
def test_plain_words_mean_the_same_on_both_ways(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fast = plain_line(words)
    assert fast is not None
    slow = _typers(words, monkeypatch)
    assert fast.command == slow.command
    assert {key: value or None for key, value in fast.arguments.items()} == {
        key: value or None for key, value in slow.arguments.items()
    }


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["--version"],
        ["check", "--help"],
        ["check", "--format", "yaml"],
        ["check", "--format"],
        ["check", "--strict=yes"],
        ["check", "--unknown"],
        ["-C"],
        ["-C", "d"],
        ["-x", "check"],
        ["chek"],
        ["explain"],
        ["explain", "a", "b"],
        ["resolve", "a", "--platform", "all"],
        ["run", "a", "-j", "many"],
        ["run", "a", "-j3"],
        ["run", "a", "--time", "3"],
        ["run", "-h"],
        ["doctor", "a"],
        ["init", "a"],
    ],
)
def test_an_unusual_command_line_is_left_to_typer(words: list[str]) -> None:
    assert plain_line(words) is None


def test_every_command_of_the_table_is_a_room_with_a_main() -> None:
    for command in COMMANDS:
        assert callable(import_module(f"vxconf.cli.commands.{command.name}").main)
