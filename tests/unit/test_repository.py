"""What holds for the repository itself: names, licences, imports, files that belong together."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("vxconf", "sandbox")


def _modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((REPOSITORY / package).rglob("*.py"))


def _loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sorted(sys.modules))"],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_contract_loads_nothing_with_effects() -> None:
    loaded = _loaded_by(f"sys.path.insert(0, {str(REPOSITORY)!r})\nimport sandbox.contract.config")
    # what an interpreter with this environment's .pth files loads by itself says nothing about us
    own = loaded - _loaded_by("pass")
    assert not own & {"subprocess", "socket", "_socket", "typer", "rich", "jsonschema", "asyncio", "ctypes", "tempfile"}


@pytest.mark.parametrize("arguments", [["check"], ["check", "--format", "json"]])
def test_checking_a_healthy_file_loads_only_what_it_needs(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "vx.toml"
    file.write_text(
        '[tasks.build.exec]\ncommand = "true"\n[tasks.build.exec.sandbox.allow]\nread = ["vx.toml"]\n', encoding="utf-8"
    )
    main = (
        f"sys.argv = ['vxconf', *{arguments!r}, {str(file)!r}]\n"
        "from vxconf.__main__ import main\n"
        "try:\n    status = main()\nexcept SystemExit as left:\n    status = left.code\n"
        "assert not status, status\n"
    )
    loaded = _loaded_by(main) - _loaded_by("pass")
    assert "vxconf.document.parse" in loaded
    assert not loaded & {"typer", "click", "rich", "jsonschema", "tomlkit", "tree_sitter", "socket", "asyncio"}


def test_files_stay_small_enough_to_read() -> None:
    # generated code and tables of numbers are not read from top to bottom
    long = {
        str(path.relative_to(REPOSITORY)): lines
        for path in _modules()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 450
        and "generated" not in path.read_text(encoding="utf-8")[:300].lower()
    }
    assert not long


def test_every_public_function_class_and_module_of_the_packages_says_what_it_is() -> None:
    silent = []
    for path in _modules():
        text = path.read_text(encoding="utf-8")
        if "generated" in text[:300].lower():
            continue
        tree = ast.parse(text)
        where = path.relative_to(REPOSITORY)
        if tree.body and not ast.get_docstring(tree):
            silent.append(str(where))
        silent += [
            f"{where}:{node.lineno} {node.name}"
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
            and not ast.get_docstring(node)
        ]
    assert not silent


def test_the_engine_needs_few_packages_besides_the_standard_library() -> None:
    allowed = {*sys.stdlib_module_names, "sandbox"}
    # the pattern libraries are small, pure and written for exactly this; so are those of the proxy's protocols
    allowed |= {"bracex", "wcmatch", "dns", "h11"}
    foreign = set()
    for path in sorted((REPOSITORY / "sandbox").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            foreign |= {f"{path.name}: {name}" for name in names if name.split(".")[0] not in allowed}
    assert not foreign


@pytest.mark.parametrize("package", PACKAGES)
def test_both_packages_are_typed(package: str) -> None:
    assert (REPOSITORY / package / "py.typed").is_file()


def test_what_the_licence_field_promises_is_there() -> None:
    assert PYPROJECT["project"]["license"] == "MIT"
    assert (REPOSITORY / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")


def test_the_changelog_knows_the_version() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## Unreleased" in changelog or f"## {PYPROJECT['project']['version']}" in changelog


def test_the_workflow_runs_every_python_the_metadata_names() -> None:
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    prefix = "Programming Language :: Python :: 3."
    named = [c.rpartition(" ")[2] for c in PYPROJECT["project"]["classifiers"] if c.startswith(prefix)]
    assert named
    assert f"python: [{', '.join(json.dumps(version) for version in named)}]" in workflow


def test_actions_are_pinned_by_commit() -> None:
    workflows = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
    uses = [line for file in workflows for line in re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))]
    assert uses
    assert not [line for line in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", line)]


def test_lockfiles_of_the_samples_name_no_host() -> None:
    lockfiles = sorted((REPOSITORY / "fixtures" / "workspaces").rglob("package-lock.json"))
    assert lockfiles
    assert not [file for file in lockfiles if "://" in file.read_text(encoding="utf-8")]


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (page, target)
        for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    ]
    assert links
    assert not [link for link in links if "://" not in link[1] and not (link[0].parent / link[1]).exists()]
