"""What stands beside a real failure: each note from what the task really did, and none beside a pass."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import vxconf
from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown, violated
from tests.support.observers import OBSERVERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sandbox import RunResult, Session
    from tests.conftest import Tree


def _told(result: RunResult, word: str) -> str:
    """The one hint that says a word."""
    found = [hint.line for hint in result.hints if word in hint.line]
    assert len(found) == 1, shown(result)
    return found[0]


def _python(program: str) -> str:
    return shlex.join((os.path.realpath(sys.executable), "-I", "-S", "-c", program))


def test_a_hidden_file_outside_is_told_beside_a_failure_alone(shop: Workspace) -> None:
    assert '"../../base.toml"' in _told(shop.run("cat ../../base.toml", read=["."]), "base.toml")
    assert shop.run("cat ../../base.toml || true", read=["."]).hints == ()
    assert shop.run("cat ../../nope.toml", read=["."]).hints == ()


def test_its_own_directory_that_no_grant_reaches_is_told(shop: Workspace) -> None:
    missed = "echo no tests found; exit 3"
    assert 'allow.read = ["."]' in _told(shop.run(missed), "its own directory")
    assert shop.run(missed, read=["lib/"]).hints == ()
    assert shop.run(missed, write=["out/"]).hints == ()
    assert shop.run("exit 3").hints == ()


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize(
    "command",
    ["test -f ../../base.toml && exit 0; cat ../../base.toml", "cat ../../base.toml", "cd ../..; cat base.toml"],
)
def test_a_file_above_that_was_asked_for_is_in_the_hint_and_the_fix(
    shop: Workspace, observer: str, command: str
) -> None:
    result = shop.run(command, read=["lib/"], observer=observer)
    assert '"../../base.toml"' in _told(result, "base.toml")
    assert result.fix is not None, shown(result)
    assert result.fix.allow.read == ("../../base.toml",)
    shop.passes("cat ../../base.toml", read=["lib/", "../../base.toml"], observer=observer)


@pytest.mark.parametrize("command", ["nosuchtool", "kill -9 $$", "ls *; kill -9 $$"])
def test_its_own_directory_is_not_blamed_for_a_failure_of_another_kind(shop: Workspace, command: str) -> None:
    assert shop.run(command).hints == ()


@pytest.mark.parametrize("command", ["rm -rf out", "mv out elsewhere", "rmdir out"])
def test_a_granted_directory_that_was_to_go(shop: Workspace, command: str) -> None:
    result = shop.run(f"echo x > out/x && {command} && mkdir out", read=["lib"], write=["out/"])
    assert 'allow.write = ["out"] grants the name' in _told(result, "is mounted"), shown(result)
    shop.passes("rm -rf out/* && echo y > out/y", read=["lib"], write=["out/"])


def test_the_name_that_is_suggested_for_it_may_go(quick_shop: Workspace) -> None:
    quick_shop.passes("mkdir out && echo x > out/x && rm -rf out && mkdir out && echo y > out/y", write=["out"])
    assert quick_shop.text("out/y") == "y\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_without_its_repository(shop: Workspace) -> None:
    shutil.rmtree(shop.root / ".git")
    subprocess.run(("git", "init", "-q", str(shop.root)), check=True)
    result = shop.run("git status", read=["."])
    assert 'allow.read = ["../../.git"]' in _told(result, "git finds no repository")
    assert shop.run("git status || true", read=["."]).hints == ()
    shop.passes("git status >/dev/null", read=[".", "../../.git"])


def test_a_refused_port_of_loopback_that_the_host_listens_on(quick_shop: Workspace) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        dial = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        said = f"import sys; sys.exit('connect ECONNREFUSED 127.0.0.1:{port}')"
        command = f"{_python(dial)} 2>/dev/null || {_python(said)}"
        result = quick_shop.run(command, read=["lib"])
        assert f'allow.network = ["localhost:{port}"]' in _told(result, f"port {port}")
    assert not [hint for hint in quick_shop.run(command, read=["lib"]).hints if str(port) in hint.line]


def test_a_path_the_output_calls_missing(shop: Workspace) -> None:
    # a tool that only lists, and lists what shows no hidden name
    tool = "import os, sys; 'base.toml' in os.listdir('../..') or sys.exit('base file ../../base.toml does not exist')"
    result = shop.run(_python(tool), read=["lib"])
    assert '"../../base.toml"' in _told(result, "called ../../base.toml missing")
    assert shop.run(_python(tool.replace("base.toml", "none.toml")), read=["lib"]).hints == ()


def test_a_message_written_in_pieces_is_read_whole(quick_shop: Workspace) -> None:
    pieces = ("tool: ", "../../base.toml", ": No such", " file", " or", " directory", "\n")
    program = f"import os, sys, time\nfor p in {pieces}: os.write(2, p.encode()); time.sleep(0.02)\nsys.exit(1)"
    assert '"../../base.toml"' in _told(
        quick_shop.run(_python(program), read=["lib"]), "called ../../base.toml missing"
    )


def test_a_write_to_a_shared_temporary_directory(shop: Workspace) -> None:
    result = shop.run("echo x > /var/tmp/vxconf-shared.log", read=["lib"])
    assert "$TMPDIR" in _told(result, "/var/tmp/vxconf-shared.log")
    shop.passes('echo x > "$TMPDIR/log"', read=["lib"])


def test_a_name_of_one_run_is_fixed_by_its_pattern(shop: Workspace) -> None:
    command = _python(
        "import os\ntry: open(f'.{os.urandom(4).hex()[:6]}1a2b.bun-build', 'x')\nexcept OSError: print('went on')"
    )
    result = shop.run(command, read=["lib"])
    assert [violation.class_ for violation in result.violations] == ["ignore"], shown(result)
    assert result.fix is not None
    (pattern,) = result.fix.ignore.write
    assert pattern == "*.bun-build"
    assert "another name in each run" in _told(result, pattern)


def test_a_write_at_the_root_that_was_meant_for_the_project(shop: Workspace) -> None:
    result = shop.run("mkdir -p ../../out && echo x > ../../out/x", read=["lib"], write=["out/"])
    assert 'the task may write "out" of its project' in _told(result, "workspace root")


def test_a_hard_link_from_one_grant_into_another(shop: Workspace) -> None:
    result = shop.run("ln lib/cart.py out/cart.py", read=["lib"], write=["out/"])
    assert "copy" in _told(result, "hard link"), shown(result)
    assert result.violations == ()


def test_a_refused_probe_of_a_sealed_store_is_a_credentials(shop: Workspace) -> None:
    make_tree(shop.home, {".npmrc": "token\n", "plain": "plain\n"})
    result = shop.run(f"cat {shop.home}/.npmrc {shop.root}/base.toml", read=["lib"])
    assert '"../../base.toml"' in _told(result, "base.toml")
    assert not [hint for hint in result.hints if "npmrc" in hint.line and "allow" in hint.line], shown(result)


_UPSTREAM = """\
[tasks.build.exec]
command = "true"
[tasks.build.cache]
outputs.files = ["dist/**"]
"""
_USES = """\
[tasks.use]
dependsOn = ["libs/money#build"]
exec.command = %s
exec.sandbox.allow.read = ["."]
[tasks.use.cache]
"""


@pytest.mark.parametrize(
    ("command", "said", "made"),
    [
        ("echo y > ../../libs/money/dist/a.js; true", "run that task, which alone writes it", True),
        ("cat ../../libs/money/dist/b.js", "which has not made it: run it", True),
        ("cat ../../libs/money/dist/b.js", "which has not made it: run it", False),
    ],
)
def test_an_output_of_another_task(
    workspace_factory: Callable[[Tree], Path], shared_session: Session, command: str, said: str, made: bool
) -> None:
    root = workspace_factory(
        {
            "libs/money/vx.toml": _UPSTREAM,
            "apps/shop/vx.toml": _USES % f'"{command}"',
            **({"libs/money/dist/a.js": "x\n"} if made else {}),
        }
    )
    request = vxconf.load(str(root)).task("apps/shop#use").request()
    result = shared_session.run(request, command=command)
    assert result.exit_code == 1, shown(result)
    assert f"libs/money#build{',' if 'which has' in said else ':'} {said}" in _told(result, "libs/money#build")
    assert result.fix is None
    assert {violation.class_ for violation in result.violations} <= {"run-upstream"}, shown(result)


@pytest.mark.parametrize("granted", ["lib", "../../libs/money/dist/"])
def test_an_output_of_another_task_for_one_without_a_cache(
    workspace_factory: Callable[[Tree], Path], shared_session: Session, granted: str
) -> None:
    uses = (
        f"[tasks.use]\ndependsOn = ['libs/money#build']\nexec.command = 'x'\nexec.sandbox.allow.read = ['{granted}']\n"
    )
    root = workspace_factory({"libs/money/vx.toml": _UPSTREAM, "apps/shop/vx.toml": uses})
    request = vxconf.load(str(root)).task("apps/shop#use").request()
    result = shared_session.run(request, command="cat ../../libs/money/dist/l.txt")
    assert "libs/money#build, which has not made it: run it" in _told(result, "libs/money#build")


def test_a_hermetic_task_and_an_interpreter_below_home(quick_shop: Workspace) -> None:
    tool = quick_shop.home / ".tools" / "v1" / "bin" / "tool"
    make_tree(quick_shop.home, {".tools/v1/bin/tool": "#!/bin/sh\necho ran\n"})
    tool.chmod(0o755)
    hermetic = {"hermetic": True}
    result = quick_shop.run(str(tool), read=["lib"], fields=hermetic)
    assert result.exit_code == 127, shown(result)
    assert 'allow.read = ["~/.tools/v1/"]' in _told(result, "hermetic"), shown(result)
    assert quick_shop.run(str(tool), read=["lib", "~/.tools/v1/"], fields=hermetic).stdout == b"ran\n"


def test_notes_are_never_counted(shop: Workspace) -> None:
    result = shop.run("cat notes.md conf/real.json ../../base.toml; exit 4", read=["lib"])
    assert (result.exit_code, violated(result, shop.project)) == (
        4,
        [("read", "notes.md"), ("read", "conf/real.json")],
    )
    assert result.hints
