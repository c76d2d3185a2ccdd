"""Tricks that opened other sandboxes: where a run stands, what it is called by or given, what is moved away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, make_tree
from tests.redteam.conftest import Box, shown, violated

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("where", ["/", "home", "the root", "beside"])
def test_a_working_directory_grants_nothing(each_box: Box, base: Path, where: str) -> None:
    beside = make_tree(base / "beside", {"kept": "kept\n"})
    place = {"/": "/", "home": str(each_box.home), "the root": str(each_box.root), "beside": str(beside)}[where]
    before = sorted(os.listdir(place))
    secret = each_box.project / "secret.txt"
    result = each_box.run(f"cat {secret}; echo x > planted; cd {each_box.project} && echo x > here; true", cwd=place)
    assert b"the secret" not in result.stdout
    assert sorted(os.listdir(place)) == before
    assert not (each_box.project / "here").exists()
    assert result.exit_code != 0, shown(result)
    if result.started:
        assert {("read", "secret.txt"), ("write", "here")} <= violated(result, each_box.project), shown(result)


def test_no_wall_rests_on_what_a_program_is_called_or_started_by(each_box: Box) -> None:
    loader = next(iter(sorted(Path("/").glob("lib*/ld-linux*.so*"))), None)
    cat = shutil.which("cat")
    assert cat is not None
    ways = {
        "a copy": f"cp {cat} out/harmless && out/harmless secret.txt",
        "a link": f"ln -s {cat} out/linked && out/linked secret.txt",
        "its root": f"/proc/self/root{cat} /proc/self/root$PWD/secret.txt",
        "a descriptor": f"exec 9<{cat}; /proc/self/fd/9 secret.txt",
        "another name": f"bash -c 'exec -a true {cat} secret.txt'",
        "no name": "read line < secret.txt; echo $line",
    }
    if loader is not None:
        ways["the loader"] = f"{loader} {cat} secret.txt"
        ways["the loader of a copy"] = f"cp {cat} out/data; {loader} ./out/data secret.txt"
    for label, way in ways.items():
        result = each_box.run(f"{way}; true")
        assert b"the secret" not in result.stdout, (label, shown(result))
        assert ("read", "secret.txt") in violated(result, each_box.project), (label, shown(result))
        assert result.exit_code == 1, (label, shown(result))


def test_what_a_task_is_given_as_its_environment_is_heard_by_nobody_outside(each_box: Box, base: Path) -> None:
    """Nothing of it may run, or be looked for, in what builds the sandbox or watches it."""
    witness = base / "witness"
    planted = make_tree(
        base / "planted",
        {
            "sitecustomize.py": f"open({str(witness)!r}, 'a').write('python')\n",
            "usercustomize.py": f"open({str(witness)!r}, 'a').write('python')\n",
            "h11.py": f"open({str(witness)!r}, 'a').write('h11')\n",
            "rc": f"echo shell >> {witness}\n",
            "bwrap": f"#!/bin/sh\necho bwrap >> {witness}\n",
            "sh": f"#!/bin/sh\necho sh >> {witness}\n",
        },
    )
    for name in ("bwrap", "sh"):
        (planted / name).chmod(0o755)
    hostile = {
        "PYTHONPATH": str(planted),
        "PYTHONHOME": str(planted),
        "PYTHONSTARTUP": str(planted / "sitecustomize.py"),
        "PYTHONINSPECT": "1",
        "LD_LIBRARY_PATH": str(planted),
        "LD_PRELOAD": str(planted / "nothing.so"),
        "LD_AUDIT": str(planted / "nothing.so"),
        "BASH_ENV": str(planted / "rc"),
        "ENV": str(planted / "rc"),
        "PATH": f"{planted}:/usr/bin:/bin",
        "GCONV_PATH": str(planted),
        "GLIBC_TUNABLES": "glibc.malloc.check=3",
        "VX_TMPDIR": str(planted),
        "HOME": str(planted),
    }
    result = each_box.run("echo done", env=hostile)
    assert not witness.exists(), witness.read_text(encoding="utf-8")
    assert result.stdout == b"done\n", shown(result)
    # and one task leaves another nothing
    result = each_box.run("export PATH=/planted LD_PRELOAD=/x EVIL=1; ulimit -n 20; umask 0; cd /; echo done")
    assert result.stdout == b"done\n", shown(result)
    result = each_box.run('echo "${EVIL-}${LD_PRELOAD-}"; umask; pwd; case $PATH in *planted*) echo planted;; esac')
    assert "planted" not in result.stdout.decode()
    assert result.stdout.split()[-1].decode() == str(each_box.project), shown(result)
    assert len(result.stdout.split()) == 2, shown(result)


@pytest.mark.parametrize("depth", range(5))
def test_moving_what_leads_to_a_name_others_execute_puts_nothing_there(each_box: Box, depth: int) -> None:
    above = "/".join(["out", *"abcd"[:depth]])
    names = {
        ".git/hooks/pre-commit": "mine\n",
        ".git/config": "[core]\n",
        ".vscode/tasks.json": "{}\n",
        ".bashrc": "x\n",
    }
    make_tree(each_box.project / above, {**names, ".git/HEAD": "ref: refs/heads/main\n"})
    parts = above.split("/")
    moved = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    moves = "".join(
        f"mv {place} out/moved{number} 2>/dev/null && mkdir -p {above}/.git/hooks {above}/.vscode;"
        f"for name in {' '.join(names)}; do echo evil > {above}/$name; done 2>/dev/null;"
        for number, place in enumerate([*moved, f"{above}/.git", f"{above}/.vscode", f"{above}/.git/hooks"])
    )
    result = each_box.run(f"{moves} true")
    found = violated(result, each_box.project)
    for name, text in names.items():
        place = each_box.project / above / name
        # it is as it was, or no longer where another program would look for it
        kept = not place.exists() or place.read_text(encoding="utf-8") == text
        # a tracer refuses nothing, and what is taken away afterwards is not looked for further down
        told = each_box.observer == "strace" and depth and ("write", f"{above}/{name}") in found
        assert kept or told, (name, shown(result))
    assert result.exit_code == 1, shown(result)


_REFUSED = """
import sys
sys.path.insert(0, sys.argv[1])
from sandbox import ResolvedSandboxConfig, Session
with Session() as session:
    config = ResolvedSandboxConfig(platform="linux", workspace=sys.argv[2], project=sys.argv[2])
    result = session.run(session.request(config, workspace_root=sys.argv[2]), command="echo ran", timeout=60)
import json
print(json.dumps([result.exit_code, result.started, result.stdout.decode(), list(map(str, result.refusals))]))
"""


@pytest.mark.parametrize("kind", ["net", "mnt", "pid", "ipc", "uts", "user"])
def test_a_machine_that_gives_no_namespace_runs_no_task(base: Path, kind: str) -> None:
    (base / "ws").mkdir()
    limit = f"/proc/sys/user/max_{kind}_namespaces"
    script = f'echo 0 > {limit} || exit 77; exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "--map-root-user",
            "sh",
            "-c",
            script,
            "sh",
            sys.executable,
            "-c",
            _REFUSED,
            REPOSITORY,
            base / "ws",
        ],
        capture_output=True,
        check=False,
        env={**os.environ, "VX_TMPDIR": str(base)},
    )
    if done.returncode == 77 or done.stderr.startswith(b"unshare:"):
        pytest.skip(f"no limit can be set here: {done.stderr.decode(errors='replace')}")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    code, started, output, refusals = json.loads(done.stdout)
    assert (code, started, output) == (125, False, ""), refusals
    assert refusals
