"""Real workspaces with real tools: their tasks pass in their sandboxes, and break when broken on purpose."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

WORKSPACES = Path(__file__).resolve().parents[2] / "fixtures" / "workspaces"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A copy that a test may write in; `programs` come first on the PATH."""

    root: Path
    programs: str = os.defpath

    def vxconf(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One run of the command in the root."""
        path = os.pathsep.join((self.programs, os.environ["PATH"]))
        return subprocess.run(
            [sys.executable, "-m", "vxconf", *arguments],
            cwd=self.root,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def run(self, task: str, *arguments: str) -> tuple[dict[str, Any], str]:
        """The JSON result of one task and what its command printed."""
        done = self.vxconf("run", task, "--format", "json", *arguments)
        try:
            result = json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"vxconf run {task} exited {done.returncode}: {done.stdout}{done.stderr}")
        assert done.returncode == result["exitCode"], done.stderr
        return result, done.stderr

    def passes(self, task: str) -> str:
        """Runs a task that has to pass, walled in and seen; what its command printed."""
        result, printed = self.run(task)
        assert (result["exitCode"], result["violations"]) == (0, []), printed
        assert result["sandboxed"] is True
        assert result["trace"] == "complete", result["traceReason"]
        assert result["fix"] is None
        return printed

    def edit(self, file: str, old: str, new: str) -> None:
        """Replaces text that is in a file exactly once."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")


def _paths(result: dict[str, Any], kind: str) -> set[str]:
    return {violation["path"] for violation in result["violations"] if violation["kind"] == kind}


@pytest.fixture
def sample(tmp_path: Path) -> Workspace:
    shutil.copytree(WORKSPACES / "sample", tmp_path / "sample")
    return Workspace((tmp_path / "sample").resolve())


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a virtual environment with the pytest that runs these tests."""
    root = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(root, symlinks=True)
    (site_packages,) = root.glob("lib/python3.*/site-packages")
    (site_packages / "tests.pth").write_text(f"{Path(pytest.__file__).parent.parent}\n", encoding="utf-8")
    return root / "bin"


@pytest.fixture
def python(tmp_path: Path, environment: Path) -> Workspace:
    shutil.copytree(WORKSPACES / "py-project", tmp_path / "py-project", ignore=shutil.ignore_patterns("__pycache__"))
    return Workspace((tmp_path / "py-project").resolve(), str(environment))


@pytest.fixture(scope="session")
def installed_typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TypeScript workspace, installed from its lockfile and never written to again."""
    root = tmp_path_factory.mktemp("typescript") / "ts-monorepo"
    shutil.copytree(WORKSPACES / "ts-monorepo", root)
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=root,
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(scope="session")
def built_typescript(installed_typescript: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed workspace after `libs/money#build` and what that depends on, in their sandboxes."""
    workspace = _copy(installed_typescript, tmp_path_factory.mktemp("built"))
    workspace.passes("libs/money#codegen")
    workspace.passes("libs/money#build")
    return workspace.root


def _copy(installed: Path, target: Path) -> Workspace:
    # the packages are large and nobody writes to them: the same files under another name
    shutil.copytree(
        installed / "node_modules", target / "ts-monorepo" / "node_modules", symlinks=True, copy_function=os.link
    )
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(installed, target / "ts-monorepo", symlinks=True, ignore=ignored, dirs_exist_ok=True)
    return Workspace((target / "ts-monorepo").resolve())


@pytest.fixture
def typescript(installed_typescript: Path, tmp_path: Path) -> Workspace:
    return _copy(installed_typescript, tmp_path)


@pytest.fixture
def built(built_typescript: Path, tmp_path: Path) -> Workspace:
    return _copy(built_typescript, tmp_path)


# one worker installs once
typescript_tests = [pytest.mark.registry, pytest.mark.xdist_group("typescript")]


class TestSample:
    def test_everything_in_it_is_healthy(self, sample: Workspace) -> None:
        done = sample.vxconf("check", "--format", "json")
        assert json.loads(done.stdout)["diagnostics"] == []
        assert json.loads(done.stdout)["files"] == 3
        assert done.returncode == 0

    def test_every_task_but_peek_passes(self, sample: Workspace) -> None:
        sample.passes("apps/shop#build")
        sample.passes("@acme/money#test")
        sample.passes("apps/shop/stickers#build")
        assert (sample.root / "apps/shop/dist/prices.txt").read_text(encoding="utf-8").startswith("Prices of today\n")

    def test_a_swallowed_denial_fails_a_task_that_exits_0(self, sample: Workspace) -> None:
        result, printed = sample.run("apps/shop#peek")
        assert (result["exitCode"], result["commandExitCode"]) == (1, 0)
        notes = str(sample.root / "apps/shop/notes.md")
        assert {(v["kind"], v["target"], v["path"]) for v in result["violations"]} == {("read", "notes.md", notes)}
        assert result["fix"]["allow"] == {"read": ["notes.md"], "write": [], "network": []}
        assert "Ask about the yen" not in printed

    def test_the_suggested_line_lets_it_pass(self, sample: Workspace) -> None:
        sample.edit("apps/shop/vx.toml", 'read = ["src/"]\n', 'read = ["src/", "notes.md"]\n')
        assert "Ask about the yen" in sample.passes("apps/shop#peek")

    def test_the_report_for_people_names_the_file_and_the_line(self, sample: Workspace) -> None:
        done = sample.vxconf("run", "apps/shop#peek")
        assert done.returncode == 1
        assert done.stdout == "Prices of today\n"
        assert str(sample.root / "apps/shop/notes.md") in done.stderr
        assert '"notes.md"' in done.stderr

    @pytest.mark.parametrize("secret", [".git/config", "apps/shop/stickers/design.txt", "libs/money/vx.toml"])
    def test_walls_stand_whatever_a_task_tries(self, sample: Workspace, secret: str) -> None:
        path = sample.root / secret
        path.parent.mkdir(exist_ok=True)
        path.write_text("token = deadbeef\n", encoding="utf-8")
        if secret.endswith("vx.toml"):
            path.write_text('# deadbeef\n[tasks.test.exec]\ncommand = "true"\n', encoding="utf-8")
        sample.edit("apps/shop/vx.toml", "cat notes.md 2>/dev/null || true", f"cat '{path}'")
        sample.edit("apps/shop/vx.toml", 'read = ["src/"]\n', 'read = ["."]\n')
        result, printed = sample.run("apps/shop#peek")
        assert result["commandExitCode"] == 1
        assert result["exitCode"] == 1
        assert "deadbeef" not in printed

    def test_a_write_outside_the_granted_directory_is_refused_and_named(self, sample: Workspace) -> None:
        sample.edit("apps/shop/vx.toml", "cat notes.md 2>/dev/null || true", "echo x > src/new.txt || true")
        result, _ = sample.run("apps/shop#peek")
        assert (result["exitCode"], result["commandExitCode"]) == (1, 0)
        assert _paths(result, "write") == {str(sample.root / "apps/shop/src/new.txt")}
        assert [v["errno"] for v in result["violations"]] == ["EROFS"]
        assert not (sample.root / "apps/shop/src/new.txt").exists()

    def test_a_task_without_a_block_runs_unsandboxed_and_says_so(self, sample: Workspace) -> None:
        (sample.root / "libs/money/vx.toml").write_text(
            '[tasks.free.exec]\ncommand = "cat ../../apps/shop/notes.md"\n', encoding="utf-8"
        )
        result, printed = sample.run("libs/money#free")
        assert (result["sandboxed"], result["exitCode"], result["violations"]) == (False, 0, [])
        assert "Ask about the yen" in printed
        assert "sandbox" in sample.vxconf("run", "libs/money#free").stderr

    def test_a_block_that_asks_for_something_else_runs_nothing(self, sample: Workspace) -> None:
        sample.edit("apps/shop/vx.toml", 'read = ["src/"]\n', 'read = ["src/"]\nnetwork = ["example.org"]\n')
        done = sample.vxconf("run", "apps/shop#peek", "--format", "json")
        result = json.loads(done.stdout)
        assert (done.returncode, result["started"], result["commandExitCode"]) == (125, False, None)
        assert result["refusals"]
        assert "network" in json.dumps(result["refusals"])


class TestPython:
    def test_everything_in_it_is_healthy(self, python: Workspace) -> None:
        done = python.vxconf("check", "--strict", "--format", "json")
        assert json.loads(done.stdout)["diagnostics"] == []
        assert done.returncode == 0

    def test_pytest_passes_and_reports_where_it_may(self, python: Workspace) -> None:
        assert "2 passed" in python.passes("packages/pricing#test")
        assert (python.root / "packages/pricing/reports/junit.xml").is_file()
        python.passes("packages/rates#test")

    def test_without_its_grant_a_data_file_is_missed_by_name(self, python: Workspace) -> None:
        python.edit("packages/pricing/vx.json", '"tests/", "data/vat.json", "../rates', '"tests/", "../rates')
        result, printed = python.run("packages/pricing#test")
        assert result["commandExitCode"] == 1
        assert "2 failed" in printed
        # not alone: drawing the traceback, pytest itself tries to open a file that nobody has
        assert str(python.root / "packages/pricing/data/vat.json") in _paths(result, "read")
        assert "data/vat.json" in result["fix"]["allow"]["read"]
        assert result["fix"]["allow"]["write"] == []

    def test_a_sibling_that_is_not_granted_cannot_be_imported_and_is_no_finding(self, python: Workspace) -> None:
        python.edit("packages/pricing/vx.json", ', "../rates/src/"],', "],")
        result, printed = python.run("packages/pricing#test")
        assert result["commandExitCode"] == 2
        assert "No module named 'rates'" in printed
        assert result["violations"] == []

    def test_without_its_write_grant_the_report_is_refused(self, python: Workspace) -> None:
        python.edit("packages/pricing/vx.json", '"write": ["reports/"]', '"write": []')
        result, _ = python.run("packages/pricing#test")
        assert result["exitCode"] != 0
        # pytest asks for the directory first
        assert str(python.root / "packages/pricing/reports") in _paths(result, "write")
        assert not (python.root / "packages/pricing/reports").exists()

    def test_bytecode_beside_the_sources_is_a_refused_write(self, python: Workspace) -> None:
        python.edit("packages/rates/vx.json", ', "PYTHONDONTWRITEBYTECODE": "1"', "")
        result, _ = python.run("packages/rates#test")
        assert (result["exitCode"], result["commandExitCode"]) == (1, 0)
        assert str(python.root / "packages/rates/src/rates/__pycache__") in _paths(result, "write")


class TestTypeScript:
    pytestmark = typescript_tests

    def test_every_task_passes_in_the_order_of_its_dependencies(self, built: Workspace) -> None:
        assert "pass 3" in built.passes("libs/money#test")
        built.passes("@acme/shop#build")
        assert "pass 2" in built.passes("@acme/shop#test")
        assert (built.root / "apps/shop/dist/.tsbuildinfo").is_file()
        # a second build starts from what the first one left
        written = (built.root / "apps/shop/dist/cart.js").stat().st_mtime_ns
        built.passes("apps/shop#build")
        assert (built.root / "apps/shop/dist/cart.js").stat().st_mtime_ns == written

    def test_everything_in_it_is_healthy_once_built(self, built: Workspace) -> None:
        done = built.vxconf("check", "--format", "json")
        assert json.loads(done.stdout)["errors"] == 0, done.stdout
        assert done.returncode == 0

    def test_without_its_grant_the_generators_input_is_missed_by_name(self, typescript: Workspace) -> None:
        typescript.edit("libs/money/vx.toml", '["codegen/"]', '["codegen/generate.mjs"]')
        result, printed = typescript.run("libs/money#codegen")
        assert result["commandExitCode"] == 1
        assert "ENOENT" in printed
        assert _paths(result, "read") == {str(typescript.root / "libs/money/codegen/currencies.json")}
        assert result["fix"]["allow"]["read"] == ["codegen/currencies.json"]

    def test_an_undeclared_sibling_does_not_exist_for_the_compiler(self, built: Workspace) -> None:
        built.edit("apps/shop/vx.toml", '  "../../libs/money/dist/",\n', "")
        result, printed = built.run("apps/shop#build")
        assert result["commandExitCode"] not in {0, None}
        assert "error TS" in printed
        assert not _paths(result, "read")

    def test_output_beside_dist_is_refused_and_named(self, built: Workspace) -> None:
        built.edit("libs/money/tsconfig.json", '"outDir": "dist"', '"outDir": "out"')
        result, printed = built.run("libs/money#build")
        assert result["exitCode"] != 0, printed
        out = str(built.root / "libs/money/out")
        assert any(path == out or path.startswith(f"{out}/") for path in _paths(result, "write"))
        assert not Path(out).exists()
