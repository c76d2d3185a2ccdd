"""The host goes on editing while the task runs: nothing hidden opens, nothing becomes writable, nothing is lost."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_tree
from tests.redteam.conftest import Box, shown, violated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sandbox import RunResult


def meanwhile(box: Box, before: str, edit: Callable[[], object], after: str) -> RunResult:
    """Runs `before`, has the host edit, runs `after`."""
    go = box.project / "out/go"
    edited = False

    def ready(chunk: bytes) -> None:
        nonlocal edited
        if b"ready" in chunk:
            edit()
            edited = True
            go.touch()

    result = box.run(f"{before}; echo ready; until [ -e out/go ]; do sleep 0.02; done; {after}; true", on_stdout=ready)
    assert edited, shown(result)
    return result


def save(path: Path, text: str) -> None:
    """As editors do: a new file, renamed over the old one."""
    new = path.with_name(path.name + "~")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def test_atomic_saves_beside_and_inside_grants_open_nothing(each_box: Box) -> None:
    project = each_box.project

    def edit() -> None:
        save(project / "secret.txt", "the secret anew\n")
        save(project / "lib/cart.py", "cart anew\n")
        save(project / "out/old", "old anew\n")
        make_tree(project, {"fresh.txt": "the fresh one\n", "lib/fresh.py": "fresh\n", "conf/more.json": "the more\n"})
        make_tree(each_box.root, {"fresh": "the fresh root\n"})

    result = meanwhile(
        each_box,
        "cat secret.txt lib/cart.py",
        edit,
        "cat secret.txt fresh.txt conf/more.json ../../fresh lib/cart.py lib/fresh.py out/old;"
        " echo x > lib/cart.py; echo x > lib/fresh.py; echo x > fresh.txt; echo mine > out/mine; ls . ../..",
    )
    said = result.stdout.decode()
    assert "the " not in said, shown(result)
    assert "fresh.txt" not in said
    assert {"cart anew", "fresh", "old anew"} <= set(said.splitlines())
    assert (result.exit_code, result.trace) == (1, "complete"), shown(result)
    assert {("read", "secret.txt"), ("read", "fresh.txt"), ("write", "lib/cart.py")} <= violated(result, project)
    assert (project / "lib/cart.py").read_text(encoding="utf-8") == "cart anew\n"
    assert (project / "out/mine").read_text(encoding="utf-8") == "mine\n"


def test_a_granted_directory_replaced_is_seen_as_it_was_and_opens_nothing(each_box: Box) -> None:
    project = each_box.project

    def edit() -> None:
        for name in ("lib", "out"):
            (project / name).rename(project / f"{name}.gone")
        (project / "lib").symlink_to("conf")
        (project / "out").mkdir()
        make_tree(project, {"out/go": ""})
        (project / "out.gone/go").touch()

    result = meanwhile(
        each_box,
        "true",
        edit,
        "cat lib/real.json secret.txt; cat lib/cart.py; echo x > lib/new; echo kept > out/kept; ls . lib",
    )
    said = result.stdout.decode()
    assert "the " not in said, shown(result)
    assert "real.json" not in said
    assert not (project / "conf/new").exists()
    assert not (project / "lib.gone/new").exists()
    assert (project / "out.gone/kept").read_text(encoding="utf-8") == "kept\n"
    assert result.exit_code == 1


def test_a_deleted_grant_is_gone_and_a_new_one_of_its_name_is_not_granted(each_box: Box) -> None:
    project = each_box.project

    def edit() -> None:
        shutil.rmtree(project / "lib")
        make_tree(project, {"lib/other": "the other\n"})

    result = meanwhile(each_box, "true", edit, "cat lib/other secret.txt; ls lib")
    assert b"the " not in result.stdout, shown(result)


@pytest.mark.parametrize("granted", [False, True])
def test_credentials_replaced_while_the_task_runs_stay_closed(each_box: Box, granted: bool) -> None:
    home = make_tree(
        each_box.home,
        {".npmrc": "the token\n", ".ssh/id": "the key\n", ".config/gh/hosts.yml": "the hosts\n", "plain": "plain\n"},
    )
    if granted:
        # a grant beside the stores, inside the directory that is presented for their sake
        make_tree(home, {"tools/x": "x\n"})

    def edit() -> None:
        save(home / ".npmrc", "the token anew\n")
        (home / ".ssh").rename(home / "ssh.old")
        make_tree(home, {".ssh/id": "the key anew\n"})
        save(home / ".config/gh/hosts.yml", "the hosts anew\n")
        shutil.copytree(home / ".config/gh", home / ".config/gh2")

    looks = (
        "cat ~/.npmrc ~/.ssh/id ~/.config/gh/hosts.yml ~/.npmrc~ ~/ssh.old/id; echo x > ~/.npmrc; echo x > ~/.ssh/new"
    )
    result = meanwhile(each_box, f"cat ~/plain; {looks}", edit, looks)
    assert b"the " not in result.stdout, shown(result)
    assert b"plain" in result.stdout
    assert (home / ".npmrc").read_text(encoding="utf-8") == "the token anew\n"
    assert not (home / ".ssh/new").exists()


def test_a_host_that_renames_without_end_never_opens_what_is_hidden(each_box: Box) -> None:
    project, stop = each_box.project, threading.Event()

    def swap() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            save(project / "secret.txt", f"the secret {turn}\n")
            (project / "conf").rename(project / "conf2")
            (project / "conf2").rename(project / "conf")
            time.sleep(0.0005)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(4):
            result = each_box.run(
                "n=0; while [ $n -lt 60 ]; do cat secret.txt conf/real.json conf2/real.json; n=$((n+1)); done; true"
            )
            assert result.started, shown(result)
            assert b"the " not in result.stdout, shown(result)
            assert result.exit_code == 1
    finally:
        stop.set()
        thread.join()
