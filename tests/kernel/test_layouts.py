"""Workspaces as npm, pnpm and uv install them: real tools pass in silence, and what is broken on purpose is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import installed
from tests.support.installed import Installed, paths

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = ("-c", "user.name=Mel", "-c", "user.email=mel@acme.test")

# a workspace is installed once, by one worker
npm_tests = [pytest.mark.registry, pytest.mark.xdist_group("typescript")]
pnpm_tests = [pytest.mark.registry, pytest.mark.xdist_group("pnpm")]
uv_tests = [pytest.mark.registry, pytest.mark.xdist_group("uv")]
PNPM = pytest.param("pnpm_layout", marks=pnpm_tests)
BOTH = [pytest.param("npm_layout", marks=npm_tests), PNPM]


def _repository(workspace: Installed) -> Installed:
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), (*IDENTITY, "commit", "-qm", "First")):
        installed.did("git", *arguments, cwd=workspace.root)
    for key, value in (("user.name", "Mel"), ("user.email", "mel@acme.test")):
        installed.did("git", "config", key, value, cwd=workspace.root)
    return workspace


@pytest.fixture(scope="session")
def npm_layout(npm_built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installed, built as far as `libs/money` and committed; tests take back what they change."""
    return _repository(installed.linked_copy(npm_built, tmp_path_factory.mktemp("npm-layout")))


@pytest.fixture(scope="session")
def pnpm_layout(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The same by pnpm, where it installed it: its programs name that place."""
    workspace = installed.pnpm_install(tmp_path_factory.mktemp("pnpm-layout"))
    workspace.passes("libs/money#codegen")
    workspace.passes("libs/money#build")
    return _repository(workspace)


@pytest.fixture(scope="session")
def uv_layout(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installed by uv, where its editable installs point to."""
    return installed.uv_sync(tmp_path_factory.mktemp("uv-layout"))


@pytest.fixture
def layout(request: pytest.FixtureRequest) -> Installed:
    made: Installed = request.getfixturevalue(request.param)
    return made


def _git(workspace: Installed, *arguments: str) -> str:
    return installed.did("git", *arguments, cwd=workspace.root)


@pytest.mark.parametrize("layout", BOTH, indirect=True)
class TestEachLayout:
    def test_compiler_bundler_and_tests_pass_in_silence(self, layout: Installed) -> None:
        assert "pass 3" in layout.passes("libs/money#test")
        layout.passes("apps/shop#build")
        assert (layout.root / "apps/shop/dist/cart.js").is_file()
        assert "pass 2" in layout.passes("apps/shop#test")
        assert "built in" in layout.passes("apps/shop#bundle")
        (bundle,) = (layout.root / "apps/shop/site/assets").glob("*.js")
        # the workspace's own package is in it
        assert "KWD" in bundle.read_text(encoding="utf-8")
        # what git is told to ignore is all that came of it
        assert _git(layout, "status", "--short") == ""

    def test_a_compiler_without_its_sources_names_them(self, layout: Installed) -> None:
        allowed = '"src/", "../../tsconfig.base.json"]\nwrite = ["dist"]'
        keyed = 'files = ["package.json", "tsconfig.json", "src/**"]'
        with (
            layout.edited("apps/shop/vx.toml", allowed, allowed.replace("src/", "src/cart.test.ts")),
            layout.edited("apps/shop/vx.toml", keyed, keyed.replace("src/**", "src/cart.test.ts")),
        ):
            result, printed = layout.run("apps/shop#build")
        assert result["exitCode"] not in {0, None}, printed
        assert str(layout.root / "apps/shop/src/cart.ts") in paths(result, "read")
        assert "src/cart.ts" in result["fix"]["allow"]["read"]


# npm's layout has no part in these, and its compiler, bundler and tests are tried with the workspace
@pytest.mark.parametrize("layout", [PNPM], indirect=True)
class TestPnpm:
    def test_what_a_build_wrote_by_name_is_removed_and_made_again(self, layout: Installed) -> None:
        layout.passes("apps/shop#build")
        (layout.root / "apps/shop/dist/stale.js").write_text("", encoding="utf-8")
        with layout.edited("apps/shop/vx.toml", '"tsc -b"', '"rm -rf dist && tsc -b"'):
            layout.passes("apps/shop#build")
        assert (layout.root / "apps/shop/dist/cart.js").is_file()
        assert not (layout.root / "apps/shop/dist/stale.js").exists()

    def test_a_bundler_without_its_sources_names_them(self, layout: Installed) -> None:
        with layout.edited("apps/shop/vx.toml", '"index.html", "web/"]', '"index.html", "web/currency.txt"]'):
            result, printed = layout.run("apps/shop#bundle")
        assert result["commandExitCode"] not in {0, None}, printed
        assert str(layout.root / "apps/shop/web/main.ts") in paths(result, "read")

    def test_tests_without_what_was_built_name_it(self, layout: Installed) -> None:
        layout.passes("apps/shop#build")
        with layout.edited("apps/shop/vx.toml", 'read = ["package.json", "dist/"]', 'read = ["package.json"]'):
            result, printed = layout.run("apps/shop#test")
        assert result["exitCode"] not in {0, None}, printed
        assert any(path.startswith(str(layout.root / "apps/shop/dist")) for path in paths(result, "read")), result

    def test_git_tells_of_changes_and_commits_them(self, layout: Installed) -> None:
        assert layout.passes("apps/shop#status") == ""
        before = _git(layout, "rev-parse", "HEAD")
        layout.edit("apps/shop/web/currency.txt", "EUR", "EUR ")
        assert layout.passes("apps/shop#status") == " M web/currency.txt\n"
        layout.passes("apps/shop#commit")
        assert (
            _git(layout, "log", "-1", "--format=%s", "--name-only") == "Another release\n\napps/shop/web/currency.txt\n"
        )
        assert _git(layout, "rev-parse", "HEAD^") == before
        assert _git(layout, "status", "--short") == ""

    def test_a_commit_without_the_repository_to_write_to_names_it(self, layout: Installed) -> None:
        head = _git(layout, "rev-parse", "HEAD")
        with (
            layout.edited("apps/shop/src/cart.ts", "nothing", "nothing at all"),
            layout.edited(
                "apps/shop/vx.toml",
                'read = ["."]\nwrite = ["../../.git/"]',
                'read = [".", "../../.git/"]',
            ),
        ):
            result, printed = layout.run("apps/shop#commit")
        assert result["exitCode"] not in {0, None}
        # outside the project no path counts, and what would help is said
        assert "Read-only file system" in printed
        assert any('allow.write = ["../../.git/"]' in hint["line"] for hint in result["hints"]), result["hints"]
        assert _git(layout, "rev-parse", "HEAD") == head


class TestUv:
    pytestmark = uv_tests

    def test_members_installed_to_be_edited_are_imported_and_tested(self, uv_layout: Installed) -> None:
        (site_packages,) = uv_layout.root.glob(".venv/lib/python3.*/site-packages")
        assert (site_packages / "pytest").is_dir()
        assert (site_packages / "rates-1.0.0.dist-info" / "direct_url.json").is_file()
        before = uv_layout.listed()
        uv_layout.passes("packages/rates#test")
        assert "2 passed" in uv_layout.passes("packages/pricing#test")
        made = uv_layout.listed() - before
        assert made <= {"packages/pricing/reports", "packages/pricing/reports/junit.xml"}
        # an edit of a member counts at once
        with uv_layout.edited("packages/rates/src/rates/__init__.py", "16320", "1"):
            result, printed = uv_layout.run("packages/pricing#test")
        assert (result["exitCode"], result["violations"]) == (1, []), printed

    def test_a_member_the_key_does_not_answer_for_is_told_of(self, uv_layout: Installed) -> None:
        with uv_layout.edited("packages/pricing/vx.json", '      "dependsOn": ["^test"],\n', ""):
            result, printed = uv_layout.run("packages/pricing#test")
        assert result["commandExitCode"] == 2
        assert "No module named 'rates'" in printed
        (hint,) = result["hints"]
        assert "packages/rates is linked as rates" in hint["line"]

    def test_a_data_file_without_its_grant_is_named(self, uv_layout: Installed) -> None:
        with (
            uv_layout.edited("packages/pricing/vx.json", '"tests/", "data/vat.json"],', '"tests/"],'),
            uv_layout.edited("packages/pricing/vx.json", '"tests/**", "data/vat.json"]', '"tests/**"]'),
        ):
            result, printed = uv_layout.run("packages/pricing#test")
        assert result["commandExitCode"] == 1, printed
        assert str(uv_layout.root / "packages/pricing/data/vat.json") in paths(result, "read")
        assert "data/vat.json" in result["fix"]["allow"]["read"]
