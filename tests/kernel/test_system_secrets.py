"""What the system keeps from all but root is closed to a task of root's too, until a grant names it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sandbox.machine.ask_facts import HostFiles, host_facts
from sandbox.request.credential_stores import system
from tests.kernel.conftest import Workspace, shown

_SHADOW = "/etc/shadow"
_READABLE = pytest.mark.skipif(not os.access(_SHADOW, os.R_OK), reason=f"{_SHADOW} is closed to this user anyway")


def test_only_what_this_user_may_read_has_to_be_closed() -> None:
    readable = {path for path in system(HostFiles()) if os.access(path, os.R_OK)}
    entered = {path for path in system(HostFiles()) if os.path.isdir(path) and os.access(path, os.X_OK)}
    assert set(host_facts().secrets) == readable | entered


@_READABLE
@pytest.mark.parametrize("hermetic", [False, True])
def test_secrets_are_read_by_no_task_that_does_not_name_them(shop: Workspace, hermetic: bool) -> None:
    secret = Path(_SHADOW).read_text(encoding="utf-8")
    fields = {"hermetic": hermetic}
    result = shop.run(f"cat {_SHADOW}; cat /etc/passwd; mv {_SHADOW} /etc/s; rm {_SHADOW}", fields=fields)
    assert secret not in result.stdout.decode(), shown(result)
    assert Path("/etc/passwd").read_text(encoding="utf-8") in result.stdout.decode(), shown(result)
    assert Path(_SHADOW).read_text(encoding="utf-8") == secret
    assert shop.passes(f"cat {_SHADOW}", read=[_SHADOW], fields=fields) == secret
    # naming the directory around it names none of them
    assert secret not in shop.run(f"cat {_SHADOW}", read=["/etc/"], fields=fields).stdout.decode()


@_READABLE
def test_a_secret_keeps_its_name_and_nothing_else(quick_shop: Workspace) -> None:
    told = quick_shop.passes(f"stat -c '%f %s' {_SHADOW}")
    assert told == f"{stat.S_IFREG:x} 0\n"
