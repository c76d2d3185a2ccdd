"""What the documents show is true: config blocks validate, commands and targets exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vxconf.cli.arguments import COMMANDS
from vxconf.document.parse import parse
from vxconf.validate.validate import validate

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]

#: Written from the schema and the table of codes, with tests of their own.
GENERATED = {"schema.md", "diagnostics.md"}

_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[object]:
    found: list[object] = []
    for page in PAGES:
        if page.name in GENERATED:
            continue
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            if match[1] == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(pytest.param(match[2], id=f"{page.relative_to(REPOSITORY)}:{line}"))
    return found


@pytest.mark.parametrize("block", _blocks("toml"))
def test_every_toml_block_is_a_valid_task_file(block: str) -> None:
    # the file names the problem when there is one
    assert [d.message for d in validate(parse(block.encode(), file="vx.toml"))] == []


def test_there_are_toml_blocks_to_hold_to_that() -> None:
    assert _blocks("toml")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_make_target_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_command_named_exists(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)vxconf ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= {command.name for command in COMMANDS}


def test_make_help_names_every_target_for_people() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r'@echo "make ([a-z-]+)', makefile))
    phony = {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for name in line.split()}
    assert named == phony - {"help", "test-tools", "test-packages", "forget-second-tries", "second-tries"}


def test_every_decision_is_in_the_index() -> None:
    decisions = REPOSITORY / "docs" / "decisions"
    index = (decisions / "README.md").read_text(encoding="utf-8")
    pages = sorted(page.name for page in decisions.glob("*.md") if page.name != "README.md")
    assert pages
    assert [name for name in pages if f"]({name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_module_named_exists(page: Path) -> None:
    named = re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))
    files = [
        f"/{path.relative_to(REPOSITORY)}"
        for top in ("sandbox", "scripts", "tests", "vxconf")
        for path in (REPOSITORY / top).rglob("*.py")
    ]
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []
