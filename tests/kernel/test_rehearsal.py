"""What a spare goes through before there is a task."""

from __future__ import annotations

import subprocess
import sys

_SERVED = """
import os
from sandbox.linux.warden import rehearsal
from sandbox.linux.warden.request_loop import RequestLoop

def missed(self, error):
    raise error

answers = []
RequestLoop._missed = missed
RequestLoop._reply = lambda self, answer: answers.append(int.from_bytes(bytes(answer)[4:8], "little", signed=True))
rehearsal.serve()
before = os.listdir("/proc/self/fd")
rehearsal.serve()
assert os.listdir("/proc/self/fd") == before
# the kernel's first words, a look, a directory that need not be opened, a listing
print(answers)
"""

_MOUNTED = """
import os
from sandbox.linux.inside import carry_out_mounts

carry_out_mounts.rehearse()
before = os.listdir("/proc/self/fd")
carry_out_mounts.rehearse()
assert os.listdir("/proc/self/fd") == before
with open("/proc/self/mountinfo") as mounts:
    # others on this machine mount as well, but not there
    assert "/.vx-" not in mounts.read()
print("nothing")
"""

_RULED = """
import os
from sandbox.linux.inside import landlock_rules

before = os.listdir("/proc/self/fd")
landlock_rules.rehearse()
assert os.listdir("/proc/self/fd") == before
os.close(os.open("/proc/self/comm", os.O_WRONLY))  # nobody is held by those rules
print("nothing")
"""


def _said(script: str) -> str:
    done = subprocess.run((sys.executable, "-c", script), check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_warden_s_rehearsal_answers_every_request_and_leaves_nothing_open() -> None:
    assert _said(_SERVED) == str([0, 0, -38, 0] * 2)


def test_a_rehearsal_of_mounting_mounts_nothing_and_leaves_nothing_open() -> None:
    assert _said(_MOUNTED) == "nothing"


def test_a_rehearsal_of_rules_holds_nobody_and_leaves_nothing_open() -> None:
    assert _said(_RULED) == "nothing"
