"""Whole tools under grants a person would write: every observer lets them pass, with nothing to report.

Most open files that nobody has (`.npmrc`, `rust-toolchain`, a library beside the objects), and an open of what no grant
covers is a denial whether or not it is there: such a tool is given its project to read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_tree
from tests.kernel.conftest import shown
from tests.support import installed
from tests.support.observers import OBSERVERS_OF_LONG_TOOLS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Tree
    from tests.kernel.conftest import Workspace

#: What such scripts do: temporary files, compilers tried, features looked for, headers that are not there.
_CONFIGURE = """#!/bin/sh
set -e
cd out
rm -f conftest* config.h
for program in gcc cc clang no-such-compiler; do
    if command -v "$program" > /dev/null 2>&1; then CC=$program; break; fi
done
echo "int main(void) { return 0; }" > conftest.c
$CC -o conftest conftest.c
./conftest
for header in stdio.h sys/no-such.h; do
    echo "#include <$header>" > conftest.c
    if $CC -c conftest.c -o conftest.o 2> conftest.log; then echo "/* has $header */" >> config.h; fi
done
test -d "$HOME/.config/site" || :
test -r /usr/local/share/config.site || :
rm -f conftest*
"""

_MAKEFILE = """
OBJECTS = out/main.o out/other.o
all: out/main
out/main: $(OBJECTS)
\tgcc -o $@ $(OBJECTS)
out/%.o: src/%.c src/other.h
\tgcc -Isrc -MMD -c -o $@ $<
-include out/main.d out/other.d
"""

_TREE: Tree = {
    "configure": _CONFIGURE,
    "Makefile": _MAKEFILE,
    "src/main.c": '#include "other.h"\nint main(void) { return other(); }\n',
    "src/other.c": '#include "other.h"\nint other(void) { return 0; }\n',
    "src/other.h": "int other(void);\n",
    "lib/calc.py": "def add(a, b):\n    return a + b\n",
    "tests/test_calc.py": "from lib.calc import add\n\n\ndef test_add(tmp_path):\n    assert add(1, 2) == 3\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n",
    "package.json": '{"name": "shop", "type": "module", "scripts": {"test": "node --test test/"}}\n',
    "test/one.test.js": "import test from 'node:test'; test('one', () => {});\n",
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\n[[bin]]\nname = "shop"\npath = "rust/main.rs"\n',
    "rust/main.rs": 'fn main() { println!("hello"); }\n',
}


_CARGO = ("CARGO_HOME", "RUSTUP_HOME")


def _needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def _works(*words: str) -> bool:
    """A cargo that is there may still have no toolchain this user can use."""
    try:
        return subprocess.run(words, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.fixture
def project(shop: Workspace) -> Workspace:
    make_tree(shop.project, _TREE)
    (shop.project / "out").mkdir()
    (shop.project / "configure").chmod(0o755)
    return shop


@_needs("gcc", "make")
def test_a_configure_script_and_make(project: Workspace) -> None:
    project.passes("./configure", read=["."], write=["out/"])
    assert project.text("out/config.h") == "/* has stdio.h */\n"
    for _ in range(2):  # the second time finds everything made
        project.passes("make && ./out/main", read=["."], write=["out/"])


def _quiet(project: Workspace) -> dict[str, str]:
    # as in CI: without it npm asks the registry for a newer npm, which the network's lists refuse
    return {"npm_config_update_notifier": "false", "npm_config_cache": str(project.project / "out"), "CI": "1"}


@_needs("npm", "node")
def test_npm_test(project: Workspace) -> None:
    assert "pass 1" in project.passes("npm test", read=["."], write=["out/"], env=_quiet(project))


_FLAT = """
export default [{ files: ["src/**/*.js"], rules: { "no-unused-vars": "error" } }];
"""


@pytest.fixture(scope="session")
def eslint_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.eslint(tmp_path_factory.mktemp("eslint"))


# one worker installs it once
@pytest.mark.xdist_group("eslint")
@pytest.mark.parametrize("observer", OBSERVERS_OF_LONG_TOOLS)
def test_eslint(project: Workspace, eslint_modules: Path) -> None:
    shutil.copytree(eslint_modules, project.project / "node_modules", symlinks=True, copy_function=os.link)
    make_tree(project.project, {"eslint.config.mjs": _FLAT, "src/cart.js": "export const total = 1;\n"})
    narrow = ["src", "eslint.config.*", "package.json", "node_modules"]
    for command, read, write in (("node_modules/.bin/eslint src", narrow, []), ("npx eslint src", ["."], ["out/"])):
        (project.project / "src" / "wrong.js").unlink(missing_ok=True)
        quiet = _quiet(project)
        assert project.passes(command, read=read, write=write, env=quiet) == ""
        make_tree(project.project, {"src/wrong.js": "const unused = 1;\n"})
        result = project.run(command, read=read, write=write, env=quiet)
        assert (result.exit_code, result.command_exit_code, result.violations) == (1, 1, ()), shown(result)
        assert (result.trace, result.fix) == ("complete", None), shown(result)
        assert b"no-unused-vars" in result.stdout, shown(result)


def test_pytest(project: Workspace) -> None:
    read = ["pyproject.toml", "lib", "tests"]
    environment = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = f"{sys._base_executable} -m pytest -q tests"  # type: ignore[attr-defined]
    assert "1 passed" in project.passes(command, read=read, env=environment)


@_needs("cargo", "gcc")
@pytest.mark.skipif(not _works("cargo", "--version"), reason="cargo has no toolchain here")
def test_cargo_build(project: Workspace) -> None:
    place = {name: os.environ.get(name, os.path.expanduser(f"~root/.{name[:-5].lower()}")) for name in _CARGO}
    (project.project / "Cargo.lock").write_text('version = 4\n[[package]]\nname = "shop"\nversion = "0.1.0"\n')
    command = "cargo build --offline --locked -q --target-dir out && ./out/debug/shop"
    assert project.passes(command, read=["."], write=["out/"], env=place) == "hello\n"


@_needs("git")
def test_git(project: Workspace) -> None:
    who = {"GIT_AUTHOR_NAME": "m", "GIT_AUTHOR_EMAIL": "m@x", "GIT_COMMITTER_NAME": "m", "GIT_COMMITTER_EMAIL": "m@x"}
    command = (
        'cp -r lib "$TMPDIR/r" && cd "$TMPDIR/r" && git init -q . && git add -A && git commit -qm x && git status -s'
    )
    project.passes(f"{command} && git log --oneline && git gc -q && git fsck", read=["lib"], env=who)
