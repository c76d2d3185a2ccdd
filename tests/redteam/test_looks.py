"""Hidden is hidden however it is asked for, and every asking is seen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox.contract.intents import Intent
from sandbox.linux.kernel.syscall_numbers import X86_64
from sandbox.linux.observe.recorder import Recorder
from tests.conftest import make_tree
from tests.redteam.conftest import Box, shown, violated

if TYPE_CHECKING:
    from pathlib import Path

_NO = {"ENOENT", "EROFS", "EBUSY", "EXDEV", "EACCES", "EPERM", "ENAMETOOLONG", "EINVAL", "ELOOP", "ENOSYS", "EAGAIN"}


def test_hidden_is_hidden_however_it_is_asked_for(each_box: Box) -> None:
    told, result = each_box.attack("looks")
    assert {key: value for key, value in told.items() if value not in _NO} == {}, shown(result)
    for busy in ("rename of a grant", "rename of a write grant", "removal of a write grant"):
        assert told[busy] in ("EBUSY", "EROFS", "EXDEV", "EINVAL"), busy
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    found = violated(result, each_box.project)
    assert ("read", "secret.txt") in found
    expected = {f"storm {n}" for n in range(60)}
    expected |= {f"thread {n} {turn}" for n in range(32) for turn in range(20)}
    expected |= {"n" * 255, "a\nb", os.fsdecode(b"\xff\xfe"), "from another session", "from another directory"}
    if each_box.observer == "mask" or os.getuid() == 0:
        expected.add("from undumpable")
    assert {path for kind, path in found if kind == "read"} >= expected - {"n" * 255}
    assert {f"lib/storm {n}" for n in range(60)} <= {path for kind, path in found if kind == "write"}
    assert (each_box.project / "secret.txt").read_text(encoding="utf-8") == "the secret\n"
    assert (each_box.project / "lib/cart.py").read_text(encoding="utf-8") == "cart\n"


@pytest.mark.parametrize("name", ["cwd", "root", "fd", "closed", "dev", "temp", "dots", "other"])
def test_a_refused_write_counts_however_it_is_spelled(each_box: Box, name: str) -> None:
    command = {
        "cwd": "echo x > /proc/self/cwd/new",
        "root": 'echo x > "/proc/self/root$PWD/new"',
        "fd": "exec 5<.; echo x > /dev/fd/5/new",
        "closed": "exec 5<.; echo x > /dev/fd/5/new; exec 5<&-; sleep 0.1",
        "dev": 'ln -s "$PWD" /dev/shm/l; echo x > /dev/shm/l/new',
        "temp": 'ln -s /proc/self/cwd "$TMPDIR/l"; echo x > "$TMPDIR/l/new"',
        "dots": 'ln -s "$PWD/deep" "$TMPDIR/l"; echo x > "$TMPDIR/l/../new"',
        "other": "echo x > /proc/$$/cwd/new",
    }[name]
    result = each_box.run(f"cd lib; {command}; true")
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    if each_box.observer == "strace" and result.trace == "partial":
        # read once the descriptor or its process was gone: not followed, and so no pass
        assert name in ("fd", "closed", "other"), shown(result)
        return
    assert result.trace == "complete", shown(result)
    assert violated(result, each_box.project) == {("write", "lib/new")}, shown(result)


def test_a_look_made_again_through_a_link_that_leads_elsewhere_counts(each_box: Box) -> None:
    look = 'cat "$TMPDIR/l/secret.txt"'
    link = 'ln -sfn "$PWD{}" "$TMPDIR/l"'
    result = each_box.run(f"{link.format('/lib')}; {look}; {link.format('')}; {look}; true")
    assert (result.exit_code, result.trace) == (1, "complete"), shown(result)
    assert ("read", "secret.txt") in violated(result, each_box.project), shown(result)


def test_links_out_of_grants_and_hidden_interpreters_open_nothing(each_box: Box) -> None:
    project = each_box.project
    make_tree(project, {"tools/run": "#!/bin/sh\necho ran\n"})
    (project / "tools/run").chmod(0o755)
    (project / "lib/out").symlink_to("../secret.txt")
    (project / "lib/up").symlink_to("../..")
    (project / "lib/script").write_text(f"#!{project}/tools/run\n", encoding="utf-8")
    (project / "lib/script").chmod(0o755)
    result = each_box.run(
        "cat lib/out lib/up/shop/secret.txt lib/../conf/real.json; lib/script; ls -a . .. ../..; true"
    )
    assert b"the " not in result.stdout, shown(result)
    assert b"ran" not in result.stdout
    assert b"secret" not in result.stdout
    found = violated(result, project)
    assert {("read", "secret.txt"), ("read", "conf/real.json")} <= found
    if each_box.observer == "mask":  # a notified exec names the script alone
        assert found & {("read", "tools"), ("read", "tools/run")}
    assert result.exit_code == 1


def test_a_storm_of_names_is_never_a_pass(each_box: Box) -> None:
    code = (
        "import os\\nfor n in range(4000):\\n try: os.stat(f'x{n}')\\n except OSError: pass\\n"
        "try: open('secret.txt')\\nexcept OSError: pass"
    )
    python = sys._base_executable  # type: ignore[attr-defined]
    result = each_box.run(f"""printf "{code}" | {python} -I -S -""")
    assert result.exit_code == 1, shown(result)
    assert ("read", "secret.txt") in violated(result, each_box.project)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "size"), [(100_500, 8), (20_000, 4000)])
def test_what_is_remembered_of_a_run_is_bounded_and_the_rest_is_said(count: int, size: int) -> None:
    recorder = Recorder(X86_64)
    told = 0
    for number in range(count):
        recorder._add(0, "open", Intent.OPEN, "", f"/{number:0{size}}", follows=True)
        if number % 1000 == 0:
            told += len(recorder.drain())
    told += len(recorder.drain())
    assert told < count
    assert "distinct calls" in recorder.incomplete
    assert sum(len(path) for *_, path, _ in recorder._known) <= 32 << 20


def test_a_thousand_processes_at_once(each_box: Box) -> None:
    code = (
        "import os\\npids=[]\\nfor n in range(1000):\\n pid=os.fork()\\n if pid==0:\\n  try: os.stat('secret.txt')\\n"
        "  except OSError: os._exit(0)\\n  os._exit(1)\\n pids.append(pid)\\n"
        "raise SystemExit(max(os.waitstatus_to_exitcode(os.waitpid(p,0)[1]) for p in pids))"
    )
    python = sys._base_executable  # type: ignore[attr-defined]
    result = each_box.run(f"""printf "{code}" | {python} -I -S -""")
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert violated(result, each_box.project) == {("read", "secret.txt")}


def test_deep_trees_hang_neither_the_run_nor_its_end(each_box: Box, base: Path) -> None:
    code = "import os\\nos.chdir(os.environ['TMPDIR'])\\nfor n in range(600): os.mkdir('d'); os.chdir('d')"
    python = sys._base_executable  # type: ignore[attr-defined]
    result = each_box.run(f"""printf "{code}" | {python} -I -S -""", timeout=45)
    assert (result.exit_code, result.trace) == (0, "complete"), shown(result)
    assert os.listdir(base / f"vx-{os.getuid()}") == []
