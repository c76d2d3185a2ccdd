"""Credentials: wherever the homes of this machine's users are, and told whoever looks."""

from __future__ import annotations

import dataclasses
import os
import pwd
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox.machine.ask_facts import HostFiles, host_facts
from sandbox.request import build
from sandbox.request.credential_stores import STORES
from tests.conftest import REPOSITORY, make_tree
from tests.kernel.conftest import Workspace, shown

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox import RunResult

_KEPT = (
    ".ssh/id",
    ".config/git/credentials",
    ".password-store/mail.gpg",
    ".m2/settings.xml",
    ".bash_history",
    ".local/share/fish/fish_history",
    ".claude/session.json",
    ".codex/auth.json",
)


def _elsewhere(shop: Workspace, command: str, home: Path, *, known: bool) -> RunResult:
    """A run for a user whose `HOME` is not the home that the list of users says."""
    request = shop.request()
    facts = dataclasses.replace(request.facts, other_homes=(str(home),) if known else ())
    made = build.build(request.config, request.workspace, files=HostFiles(), facts=facts)
    return shop.session.run(made, command=command, observer=shop.observer)


def _reading(home: Path) -> str:
    return f"cd {shlex.quote(str(home))} && cat {shlex.join(_KEPT)} note; ls .claude/; mv .ssh/id /tmp; exit 3"


def test_the_stores_of_a_home_that_the_variable_does_not_name_are_closed_and_told(
    shop: Workspace, places: Path
) -> None:
    home = make_tree(places / "real", {**dict.fromkeys(_KEPT, "SECRET\n"), "note": "a note\n"})
    result = _elsewhere(shop, _reading(home), home, known=True)
    assert (result.stdout, result.exit_code) == (b"a note\n", 3), shown(result)
    told = "\n".join(hint.line for hint in result.hints)
    for name in (".ssh", ".password-store"):
        assert str(home / name) in told, shown(result)
    assert "holds credentials" in told, shown(result)


def test_a_home_nobody_knows_of_is_read_so_the_list_of_users_is_what_closes_it(shop: Workspace, places: Path) -> None:
    home = make_tree(places / "real", {**dict.fromkeys(_KEPT, "SECRET\n"), "note": "a note\n"})
    result = _elsewhere(shop, _reading(home), home, known=False)
    assert result.stdout.count(b"SECRET") == len(_KEPT), shown(result)


@pytest.mark.parametrize("command", ["cat ~/.npmrc", "ls -A ~/.aws", "head -c1 < ~/.bash_history", "cat ~/.codex/auth"])
def test_a_refused_look_at_a_store_is_told_beside_a_failure(shop: Workspace, command: str) -> None:
    make_tree(shop.home, {".npmrc": "S", ".aws/credentials": "S", ".bash_history": "S", ".codex/auth": "S"})
    result = shop.run(f"{command}; exit 3", env={"HOME": str(shop.home)})
    assert b"S" not in result.stdout, shown(result)
    assert [hint.class_ for hint in result.hints if "holds credentials" in hint.line] == ["credential"], shown(result)
    assert shop.run(f"{command} 2>&1 | true", env={"HOME": str(shop.home)}).hints == ()


def test_the_homes_of_this_user_are_those_of_the_variable_and_of_the_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    facts = host_facts()
    assert facts.home == str(tmp_path.resolve())
    try:
        listed = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        assert facts.other_homes == ()
        return
    assert listed in facts.other_homes
    assert os.getuid() == 0 or facts.other_homes == (listed,)


_OWN_USERS = 'mount --bind "$1" /etc/passwd && shift && exec "$@"'


@pytest.mark.skipif(os.getuid() != 0, reason="only root can have a list of users of its own")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed here")
def test_root_reads_the_stores_of_no_user_who_logs_in(tmp_path: Path) -> None:
    looked = "root/.ssh/id ann/.ssh/id bot/.ssh/id"
    base = make_tree(
        tmp_path.resolve(),
        {
            "p/vx.toml": f"tasks.t.exec = {{ command = 'cd {tmp_path}; cat {looked}', sandbox = {{}} }}\n",
            **{f"{name}/.ssh/id": f"{name}\n" for name in ("root", "ann", "bot")},
        },
    )
    users = "".join(
        f"{name}:x:{uid}:{uid}::{base}/{name}:{shell}\n"
        for name, uid, shell in (("root", 0, "/bin/sh"), ("ann", 1001, ""), ("bot", 999, "/usr/sbin/nologin"))
    )
    (base / "passwd").write_text(users)
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    wrapped = ["unshare", "-m", "--propagation", "private", "sh", "-c", _OWN_USERS, "sh", str(base / "passwd")]
    done = subprocess.run(
        [*wrapped, sys.executable, "-m", "vxconf", "-C", str(base / "p"), "run", "t"],
        env={**env, "HOME": str(tmp_path / "other")},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout == "bot\n", done.stderr
    assert "holds credentials" in done.stderr


_OWN_SECRETS = """
mount -t tmpfs none /run && mkdir -p /run/secrets/cluster/serviceaccount /etc/ssl/private &&
mount -t tmpfs none /etc/ssl/private && echo SECRET > /etc/ssl/private/key.pem && chmod 711 /etc/ssl/private &&
for name in db cluster/serviceaccount/token; do echo SECRET > /run/secrets/$name; done && exec "$@"
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can have services of its own")
@pytest.mark.skipif(not os.path.isdir("/etc/ssl/private"), reason="there is no place for private keys here")
def test_what_services_are_handed_is_read_by_no_task_and_told(tmp_path: Path) -> None:
    looked = "/run/secrets/db /var/run/secrets/cluster/serviceaccount/token /etc/ssl/private/key.pem"
    command = f"cat {looked} || exit 3"
    make_tree(tmp_path, {"vx.toml": f"tasks.t.exec = {{ command = '{command}', sandbox = {{}} }}\n"})
    vxconf = [sys.executable, "-m", "vxconf", "-C", str(tmp_path), "run", "t"]
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", _OWN_SECRETS, "sh", *vxconf],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    for place in ("/run/secrets/db", "serviceaccount/token", "/etc/ssl/private/key.pem"):
        assert place in done.stderr.partition("hint: ")[2], done.stderr


def test_every_store_is_a_path_below_home() -> None:
    assert len(set(STORES)) == len(STORES)
    assert all(store.startswith(".") and not store.endswith("/") and ".." not in store for store in STORES)
