"""What the tests give an ordinary user is in a mount namespace of its own: the machine keeps what it has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

_WITH_OWN_FUSE = REPOSITORY / "scripts" / "with-own-fuse"
_DEVICE = Path("/dev/fuse")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices"),
    pytest.mark.skipif(not _DEVICE.is_char_device(), reason="there is no /dev/fuse here"),
]


def _kept() -> tuple[object, ...]:
    about = _DEVICE.stat()
    return about.st_mode, about.st_uid, about.st_gid, about.st_ino, about.st_dev, os.listdir("/dev")


def _tried(mode: str) -> subprocess.CompletedProcess[str]:
    user = ("setpriv", "--reuid=61234", "--regid=61234", "--clear-groups")
    opens = "stat -c %a /dev/fuse; : 3<>/dev/fuse"
    return subprocess.run((_WITH_OWN_FUSE, mode, *user, "sh", "-c", opens), check=False, capture_output=True, text=True)


@pytest.mark.parametrize(("mode", "opens"), [("666", True), ("600", False)])
def test_a_user_has_a_device_of_the_mode_that_was_asked_for_and_the_machine_its_own(mode: str, opens: bool) -> None:
    before = _kept()
    done = _tried(mode)
    assert done.stdout == f"{mode}\n"
    assert (done.returncode == 0) is opens, done.stderr
    assert _kept() == before


def test_the_command_gets_its_arguments_as_they_are_and_its_status_is_told() -> None:
    odd = ["a b", "$HOME", "'", ""]
    done = subprocess.run(
        (_WITH_OWN_FUSE, "666", "sh", "-c", 'printf "%s\\n" "$@"; exit 7', "sh", *odd),
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.split("\n")[:-1]) == (7, odd)
