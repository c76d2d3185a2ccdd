"""The wheel that ships, in an environment of its own: nothing of the checkout is in reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

# building and installing it takes seconds
pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]

_BUILD = "import sys, hatchling.build as build; print(build.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    name = subprocess.run(
        [sys.executable, "-c", _BUILD, str(directory)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()[-1]
    return directory / name


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` directory of an environment that holds the wheel."""
    environment = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    site_packages = Path(sysconfig.get_path("purelib", "posix_prefix", vars=paths))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(environment / "bin" / "python"),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )
    # the dependencies come from the environment of the tests, after the wheel; its .pth files,
    # the checkout's own among them, are not read
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return environment / "bin"


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(directory / arguments[0]), *arguments[1:]],
        cwd=directory,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def test_the_wheel_holds_both_packages_typed_with_the_schemas_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"vxconf/py.typed", "sandbox/py.typed"} <= names
    assert {"vxconf/_schema/vx.schema.json", "vxconf/_schema/resolved.schema.json"} <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"vxconf", "sandbox", f"vxconf-{VERSION}.dist-info"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_wheel_asks_for_ranges_and_not_for_the_versions_that_are_locked_here(wheel: Path) -> None:
    metadata = zipfile.ZipFile(wheel).read(f"vxconf-{VERSION}.dist-info/METADATA").decode()
    asked = {Requirement(one) for one in Parser().parsestr(metadata).get_all("Requires-Dist", [])}
    assert asked == {Requirement(one) for one in PROJECT["dependencies"]}
    assert {clause.operator for one in asked for clause in one.specifier} == {">="}


def test_the_console_script_says_its_version(installed: Path) -> None:
    done = _run(installed, "vxconf", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert VERSION in done.stdout


@pytest.mark.parametrize(
    ("arguments", "name"), [(("schema",), "vx.schema.json"), (("schema", "--resolved"), "resolved.schema.json")]
)
def test_the_installed_command_finds_its_schemas(installed: Path, arguments: tuple[str, ...], name: str) -> None:
    done = _run(installed, "vxconf", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads((REPOSITORY / "schema" / name).read_text(encoding="utf-8"))


def test_the_installed_command_comes_from_the_wheel(installed: Path) -> None:
    done = _run(installed, "python", "-c", "import sandbox, vxconf; print(sandbox.__file__, vxconf.__file__)")
    assert done.returncode == 0, done.stderr
    assert str(REPOSITORY) not in done.stdout


def test_a_healthy_file_passes_and_a_broken_one_does_not(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "vx.toml"
    file.write_text('[tasks.build.exec]\ncommand = "true"\n', encoding="utf-8")
    assert _run(installed, "vxconf", "check", str(file)).returncode == 0
    file.write_text("[tasks.build.exec]\ncommand = 7\n", encoding="utf-8")
    done = _run(installed, "vxconf", "check", str(file))
    assert done.returncode == 1
    assert "vx.toml:2:11: error" in done.stdout
