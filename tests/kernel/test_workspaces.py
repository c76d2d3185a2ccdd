"""Real workspaces with real tools: their tasks pass in their sandboxes, and break when broken on purpose."""

from __future__ import annotations

import json
import venv
from pathlib import Path

import pytest

from tests.support.installed import Installed, fresh, linked_copy, paths
from tests.support.observers import NEEDS_MASK, OBSERVERS_OF_LONG_TOOLS


@pytest.fixture
def sample(tmp_path: Path) -> Installed:
    return fresh("sample", tmp_path)


@pytest.fixture
def python(tmp_path: Path) -> Installed:
    """With a virtual environment at its root, as uv would make it but for where pytest lies."""
    made = fresh("py-project", tmp_path)
    venv.create(made.root / ".venv", symlinks=True)
    (site_packages,) = made.root.glob(".venv/lib/python3.*/site-packages")
    searched = {"tests": Path(pytest.__file__).parent.parent}
    searched |= {name: made.root / "packages" / name / "src" for name in ("pricing", "rates")}
    for name, directory in searched.items():
        (site_packages / f"{name}.pth").write_text(f"{directory}\n", encoding="utf-8")
        if directory.is_relative_to(made.root):
            record = site_packages / f"{name}-1.0.0.dist-info" / "direct_url.json"
            record.parent.mkdir()
            url = directory.parent.as_uri()
            record.write_text(json.dumps({"url": url, "dir_info": {"editable": True}}), encoding="utf-8")
    return made


@pytest.fixture
def typescript(npm_installed: Path, tmp_path: Path) -> Installed:
    return linked_copy(npm_installed, tmp_path)


@pytest.fixture
def built(npm_built: Path, tmp_path: Path) -> Installed:
    return linked_copy(npm_built, tmp_path)


# one worker installs once
typescript_tests = [pytest.mark.registry, pytest.mark.xdist_group("typescript")]


class TestSample:
    def test_everything_in_it_is_healthy(self, sample: Installed) -> None:
        done = sample.vxconf("check", "--format", "json")
        assert json.loads(done.stdout)["diagnostics"] == []
        assert json.loads(done.stdout)["files"] == 3
        assert done.returncode == 0

    def test_every_task_but_peek_passes(self, sample: Installed) -> None:
        sample.passes("apps/shop#build")
        sample.passes("@acme/money#test")
        sample.passes("apps/shop/stickers#build")
        assert (sample.root / "apps/shop/dist/prices.txt").read_text(encoding="utf-8").startswith("Prices of today\n")

    def test_a_swallowed_denial_fails_a_task_that_exits_0(self, sample: Installed) -> None:
        result, printed = sample.run("apps/shop#peek")
        assert (result["exitCode"], result["commandExitCode"]) == (1, 0)
        notes = str(sample.root / "apps/shop/notes.md")
        assert {(v["kind"], v["target"], v["path"]) for v in result["violations"]} == {("read", "notes.md", notes)}
        assert result["fix"]["allow"] == {"read": ["notes.md"], "write": [], "network": []}
        assert "Ask about the yen" not in printed

    def test_the_suggested_line_lets_it_pass(self, sample: Installed) -> None:
        sample.edit("apps/shop/vx.toml", 'read = ["src/"]\n', 'read = ["src/", "notes.md"]\n')
        assert "Ask about the yen" in sample.passes("apps/shop#peek")

    def test_the_report_for_people_names_the_file_and_the_line(self, sample: Installed) -> None:
        done = sample.vxconf("run", "apps/shop#peek")
        assert done.returncode == 1
        assert done.stdout == "Prices of today\n"
        assert "may not read notes.md" in done.stderr
        assert "add to apps/shop/vx.toml:" in done.stderr
        assert 'read = ["notes.md"]' in done.stderr

    @pytest.mark.parametrize("secret", [".git/config", "apps/shop/stickers/design.txt", "libs/money/vx.toml"])
    def test_walls_stand_whatever_a_task_tries(self, sample: Installed, secret: str) -> None:
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

    def test_a_write_outside_the_granted_directory_is_refused_and_named(self, sample: Installed) -> None:
        sample.edit("apps/shop/vx.toml", "cat notes.md 2>/dev/null || true", "echo x > src/new.txt || true")
        result, _ = sample.run("apps/shop#peek")
        assert (result["exitCode"], result["commandExitCode"]) == (1, 0)
        assert paths(result, "write") == {str(sample.root / "apps/shop/src/new.txt")}
        assert [v["errno"] for v in result["violations"]] == ["EROFS"]
        assert not (sample.root / "apps/shop/src/new.txt").exists()

    def test_a_task_without_a_block_runs_unsandboxed_and_says_so(self, sample: Installed) -> None:
        (sample.root / "libs/money/vx.toml").write_text(
            '[tasks.free.exec]\ncommand = "cat ../../apps/shop/notes.md"\n', encoding="utf-8"
        )
        result, printed = sample.run("libs/money#free")
        assert (result["sandboxed"], result["exitCode"], result["violations"]) == (False, 0, [])
        assert "Ask about the yen" in printed
        assert "sandbox" in sample.vxconf("run", "libs/money#free").stderr


class TestPython:
    def test_everything_in_it_is_healthy(self, python: Installed) -> None:
        done = python.vxconf("check", "--strict", "--format", "json")
        assert json.loads(done.stdout)["diagnostics"] == []
        assert done.returncode == 0

    # pytest looks at everything in the directory it collects, and a held directory lists what was not granted
    @NEEDS_MASK
    def test_pytest_passes_and_reports_where_it_may(self, python: Installed) -> None:
        assert "2 passed" in python.passes("packages/pricing#test")
        assert (python.root / "packages/pricing/reports/junit.xml").is_file()
        python.passes("packages/rates#test")

    def test_without_its_grant_a_data_file_is_missed_by_name(self, python: Installed) -> None:
        python.edit("packages/pricing/vx.json", '"tests/", "data/vat.json"],', '"tests/"],')
        result, printed = python.run("packages/pricing#test")
        assert result["commandExitCode"] == 1
        assert "2 failed" in printed
        # not alone: drawing the traceback, pytest itself tries to open a file that nobody has
        assert str(python.root / "packages/pricing/data/vat.json") in paths(result, "read")
        assert "data/vat.json" in result["fix"]["allow"]["read"]
        assert result["fix"]["allow"]["write"] == []

    @NEEDS_MASK
    def test_a_sibling_the_key_does_not_answer_for_cannot_be_imported_and_is_told_of(self, python: Installed) -> None:
        python.edit("packages/pricing/vx.json", '      "dependsOn": ["^test"],\n', "")
        result, printed = python.run("packages/pricing#test")
        assert result["commandExitCode"] == 2
        assert "No module named 'rates'" in printed
        # an interpreter looks at every directory of its path: the look alone is no finding
        assert result["violations"] == []
        (hint,) = result["hints"]
        assert "packages/rates" in hint["line"]
        assert "dependsOn" in hint["line"]
        assert 'allow.read = ["../rates/"]' in hint["line"]

    @NEEDS_MASK
    def test_a_key_that_holds_what_no_grant_reaches_runs_nothing(self, python: Installed) -> None:
        python.edit("packages/pricing/vx.json", '      "dependsOn": ["^test"],\n', "")
        key = '"data/vat.json"] }'
        python.edit("packages/pricing/vx.json", key, f'{key[:-2]}, "workspaceFiles": ["packages/rates/src/**"] }}')
        result, _ = python.run("packages/pricing#test")
        assert (result["exitCode"], result["started"]) == (125, False)
        (refusal,) = result["refusals"]
        assert refusal["path"] == "tasks.test.cache.inputs.workspaceFiles[0]"
        assert "packages/rates/src/rates/__init__.py" in refusal["message"]
        # the grant it asks for is one that helps
        python.edit("packages/pricing/vx.json", '"data/vat.json"],\n', '"data/vat.json", "../rates/src/"],\n')
        python.passes("packages/pricing#test")

    def test_without_its_write_grant_the_report_is_refused(self, python: Installed) -> None:
        python.edit("packages/pricing/vx.json", '"write": ["reports"]', '"write": []')
        result, _ = python.run("packages/pricing#test")
        assert result["exitCode"] != 0
        # pytest asks for the directory first
        assert str(python.root / "packages/pricing/reports") in paths(result, "write")
        assert not (python.root / "packages/pricing/reports").exists()

    def test_bytecode_beside_the_sources_is_a_refused_write(self, python: Installed) -> None:
        python.edit("packages/rates/vx.json", '"PYTHONDONTWRITEBYTECODE": "1"', "")
        result, _ = python.run("packages/rates#test")
        assert (result["exitCode"], result["commandExitCode"]) == (1, 0)
        assert str(python.root / "packages/rates/src/rates/__pycache__") in paths(result, "write")


class TestTypeScript:
    pytestmark = typescript_tests

    def test_every_task_passes_in_the_order_of_its_dependencies(self, built: Installed) -> None:
        assert "pass 3" in built.passes("libs/money#test")
        built.passes("@acme/shop#build")
        assert "pass 2" in built.passes("@acme/shop#test")
        assert (built.root / "apps/shop/dist/.tsbuildinfo").is_file()
        # a second build starts from what the first one left
        written = (built.root / "apps/shop/dist/cart.js").stat().st_mtime_ns
        built.passes("apps/shop#build")
        assert (built.root / "apps/shop/dist/cart.js").stat().st_mtime_ns == written

    @pytest.mark.parametrize("observer", OBSERVERS_OF_LONG_TOOLS[1:])
    def test_every_observer_lets_the_compiler_and_its_tests_pass(self, built: Installed, observer: str) -> None:
        built.passes("apps/shop#build")  # it grants names, which strace answers for nowhere
        for task in ("libs/money#build", "libs/money#test", "apps/shop#test"):
            built.passes(task, "--observer", observer)

    def test_a_build_removes_its_output_and_makes_it_again_under_its_name(self, built: Installed) -> None:
        built.edit("libs/money/vx.toml", 'command = "tsc -b"', 'command = "rm -rf dist && tsc -b"')
        built.edit("libs/money/vx.toml", 'write = ["dist/"]', 'write = ["dist"]')
        (built.root / "libs/money/dist/stale.js").write_text("stale\n", encoding="utf-8")
        before = (built.root / "libs/money/dist").stat().st_ino
        built.passes("libs/money#build")
        dist = built.root / "libs/money/dist"
        assert (dist / "src/money.js").is_file()
        assert not (dist / "stale.js").exists()
        assert dist.stat().st_ino != before
        assert "pass 3" in built.passes("libs/money#test")
        assert not (built.root / ".vx/tmp").exists()

    def test_build_information_is_a_pattern_of_names(self, built: Installed) -> None:
        built.edit("libs/money/tsconfig.json", '"dist/.tsbuildinfo"', '"a.tsbuildinfo"')
        built.edit("libs/money/vx.toml", 'write = ["dist/"]', 'write = ["dist/", "**/*.tsbuildinfo"]')
        built.passes("libs/money#build")
        assert (built.root / "libs/money/a.tsbuildinfo").is_file()

    def test_everything_in_it_is_healthy_once_built(self, built: Installed) -> None:
        done = built.vxconf("check", "--format", "json")
        assert json.loads(done.stdout)["errors"] == 0, done.stdout
        assert done.returncode == 0

    def test_without_its_grant_the_generators_input_is_missed_by_name(self, typescript: Installed) -> None:
        typescript.edit("libs/money/vx.toml", '["codegen/"]', '["codegen/generate.mjs"]')
        result, printed = typescript.run("libs/money#codegen")
        assert result["commandExitCode"] == 1
        assert "ENOENT" in printed
        assert paths(result, "read") == {str(typescript.root / "libs/money/codegen/currencies.json")}
        assert result["fix"]["allow"]["read"] == ["codegen/currencies.json"]

    def test_a_sibling_the_key_does_not_answer_for_does_not_exist_for_the_compiler(self, built: Installed) -> None:
        built.edit("apps/shop/vx.toml", '[tasks.build]\ndependsOn = ["^build"]\n', "")
        result, printed = built.run("apps/shop#build")
        assert result["commandExitCode"] not in {0, None}
        assert "error TS" in printed
        assert str(built.root / "libs/money/tsconfig.json") in paths(result, "read")
        (hint,) = result["hints"]
        assert "libs/money is linked as @acme/money" in hint["line"]
        assert "dependsOn" in hint["line"]

    def test_a_sibling_that_is_not_linked_does_not_exist_for_the_compiler(self, built: Installed) -> None:
        (built.root / "node_modules/@acme/money").unlink()
        result, printed = built.run("apps/shop#build")
        assert result["commandExitCode"] not in {0, None}
        assert "error TS" in printed
        assert result["violations"] == []

    def test_output_beside_dist_is_refused_and_named(self, built: Installed) -> None:
        built.edit("libs/money/tsconfig.json", '"outDir": "dist"', '"outDir": "out"')
        result, printed = built.run("libs/money#build")
        assert result["exitCode"] != 0, printed
        out = str(built.root / "libs/money/out")
        assert any(path == out or path.startswith(f"{out}/") for path in paths(result, "write"))
        assert not Path(out).exists()
