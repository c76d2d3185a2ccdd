"""What the task can reach by calls of its own: processes, namespaces, mounts, sockets, the kernel's settings."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY
from tests.redteam.conftest import Box, shown

if TYPE_CHECKING:
    from pathlib import Path

_PAIRS = ("SOCK_STREAM", "SOCK_SEQPACKET")
_REFUSED = {"EPERM", "ENOSYS", "EAFNOSUPPORT", "EACCES", "EROFS", "ENOENT"}


def test_no_way_out_by_a_call(each_box: Box, base: Path) -> None:
    paths = [str(base / "stream"), str(base / "letters")]
    streams, letters = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    hidden, tcp, udp = socket.socket(socket.AF_UNIX), socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with streams, letters, hidden, tcp, udp:
        for listener, path in zip((streams, letters), paths, strict=True):
            listener.bind(path)
            listener.setblocking(False)
        hidden.bind(f"\0redteam-{os.getpid()}")
        for stream in (streams, hidden, tcp):
            if stream is tcp:
                tcp.bind(("127.0.0.1", 0))
            stream.listen()
            stream.setblocking(False)
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        told, result = each_box.attack(
            "walls", *paths, f"@redteam-{os.getpid()}", tcp.getsockname()[1], udp.getsockname()[1]
        )
        for listener in (streams, hidden, tcp):
            with pytest.raises(BlockingIOError):
                listener.accept()
        for listener in (letters, udp):
            with pytest.raises(BlockingIOError):
                listener.recv(16)
    assert result.command_exit_code == 0, shown(result)
    assert told.pop("descriptors") in ([0, 1, 2, 3], [0, 1, 2]), "3 is the list itself"
    nothing = "0000000000000000"
    status = told.pop("status")
    assert {key: status[key] for key in ("CapBnd", "CapEff", "CapPrm", "CapAmb")} == dict.fromkeys(
        ("CapBnd", "CapEff", "CapPrm", "CapAmb"), nothing
    )
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
    assert told.pop("interfaces") == ["lo"]
    assert told.pop("setuid"), "/usr/bin honours setuid bits"
    assert told.pop("session"), "it has the session of somebody else"
    assert told.pop("int 0x80", 0) in (0, -11), "a 32-bit call was answered"
    assert told.pop("/dev/tty") in ("ENXIO", "ENOENT")
    for kind in _PAIRS:
        assert told.pop(f"talk {kind}") == "x"
    # nothing leaves, so a letter may be accepted by the loopback, where nobody listens
    for host in ("127.0.0.1", "192.0.2.1", "8.8.8.8", "169.254.169.254"):
        assert told.pop(f"tcp {host}") in ("ECONNREFUSED", "ENETUNREACH", "EPERM")
        assert told.pop(f"udp {host}") in ("done", "ENETUNREACH", "ECONNREFUSED", "EPERM")
    pairs = {key: told.pop(key) for key in list(told) if key.startswith(("connect ", "sendto "))}
    # a connected packet socket takes no address: what it sends goes to its own peer
    connects = {value for key, value in pairs.items() if key.startswith("connect ")}
    assert connects <= {"EISCONN", "EPROTOTYPE", "ECONNREFUSED", "EPERM", "EINVAL"}
    made = {told.pop(f"socket unix {kind}") for kind in (*_PAIRS, "SOCK_DGRAM")}
    made |= {told.pop("pair SOCK_DGRAM"), told.pop("pair SOCK_RAW")}
    if each_box.observer == "strace":
        # nobody would make their connections
        assert made == {"EPERM"}
    else:
        assert {pairs[f"connect {kind} {what}"] for kind in _PAIRS for what in ("stream", "letters")} == {"EPERM"}
        # to have them is no harm: the warden makes their connections
        assert made == {"done"}
    assert len(told) > 50
    assert {key: value for key, value in told.items() if value not in _REFUSED} == {}


def test_process_1_is_out_of_reach(each_box: Box) -> None:
    told, result = each_box.attack("first")
    assert result.command_exit_code == 42, shown(result)
    seen = told.pop("processes")
    after = told.pop("after")
    assert seen[0]["Pid"] == "1"
    assert len(seen) <= 4, f"more than process 1, the shell and this: {seen}"
    assert len(after) == len(seen), "process 1 no longer reaps"
    for process in seen:
        assert (process["Seccomp"], process["NoNewPrivs"]) == ("2", "1"), process
        assert {process["CapBnd"], process["CapEff"]} == {"0" * 16}, process
    told.pop("list fd")  # to root the numbers are shown, and nothing of what they are
    assert {key: value for key, value in told.items() if value not in ("EACCES", "EPERM", "ENOENT", "EROFS")} == {}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
def test_a_mode_without_an_observer_has_the_same_walls(box: Box) -> None:
    box.observer = "none"
    told, _ = box.attack("first")
    assert told["ptrace attach"] == "EPERM"
    result = box.run("cat secret.txt; echo x > lib/new; ls -a . /proc | cat")
    assert result.exit_code == 0, "nothing was observed, nothing is judged"
    assert result.trace == "none"
    assert b"the secret" not in result.stdout
    assert not (box.project / "lib/new").exists()


def test_everything_is_read_only_but_what_is_granted(each_box: Box) -> None:
    result = each_box.run("cat /proc/self/mountinfo")
    mounts: dict[str, tuple[set[str], str]] = {}
    for line in result.stdout.decode().splitlines():
        before, _, behind = line.partition(" - ")
        place, options = before.split()[4:6]
        mounts[place] = (set(options.split(",")), behind.split()[0])
    own = re.compile(rf"/dev(/.*)?|{re.escape(str(each_box.project))}/out|.*/vx-\d+/task-[^/]+")
    writable = [
        place
        for place, (options, kind) in mounts.items()
        if "ro" not in options and kind != "fuse" and not own.fullmatch(place)
    ]
    assert writable == []
    for place, (given, _) in mounts.items():
        assert "nosuid" in given, place
        assert "nodev" in given or place.startswith("/dev"), place
    assert "ro" in mounts["/proc"][0]


_IN_A_MOUNT_NAMESPACE = """
import os, subprocess, sys, threading
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sandbox import Session
from tests.redteam.conftest import Box
root = Path(sys.argv[2])
box = Box(None, root, root / "apps/shop", root, sys.argv[3])
def mount(place):
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    Path(place, "there").write_text("there")
subprocess.run(["mount", "--bind", str(root), str(root)], check=True)
subprocess.run(["mount", "--make-rshared", "/"], check=True)
mount(f"{root}/apps/shop/lib/before")
os.makedirs(f"{root}/apps/shop/lib/during")
os.makedirs(f"{root}/apps/shop/elsewhere")
with Session() as session:
    box.session = session
    def later(chunk):
        if b"ready" in chunk:
            mount(f"{root}/apps/shop/lib/during")
            mount(f"{root}/apps/shop/elsewhere")
            Path(box.project, "out/go").touch()
    result = box.run(
        "cat lib/before/there; touch lib/before/new; echo ready; while [ ! -e out/go ]; do sleep 0.05; done;"
        " touch lib/during/new; ls lib/during elsewhere; cat elsewhere/there; exit 0", on_stdout=later)
print(result.stdout.decode())
for place in ("lib/before", "lib/during", "elsewhere"):
    print(place, sorted(os.listdir(box.project / place)))
sys.exit(0 if result.started and result.exit_code == 1 else 9)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts file systems")
def test_a_mount_below_a_grant_is_read_only_however_late_the_host_makes_it(each_box: Box) -> None:
    done = subprocess.run(
        (
            *("unshare", "--mount", "--propagation", "private", sys.executable, "-c", _IN_A_MOUNT_NAMESPACE),
            *(str(REPOSITORY), str(each_box.root), each_box.observer),
        ),
        capture_output=True,
        check=False,
        timeout=60,
        cwd=REPOSITORY,
    )
    if done.returncode == 1 and b"unshare" in done.stderr:
        pytest.skip(f"no mount namespace can be made: {done.stderr.decode().strip()}")
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = done.stdout.decode()
    assert said.startswith("there"), said
    for place in ("lib/before", "lib/during", "elsewhere"):
        assert f"{place} ['there']" in said
