"""What is said of a machine that lacks something, and what a run comes to there; brought about on one that does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox import HostReport, Session
from tests.conftest import REPOSITORY
from tests.support.machines import IS_ROOT, MASKS, bwrap, inside, program, shell, tell

if TYPE_CHECKING:
    from pathlib import Path

ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can bring it about")
USER = pytest.mark.skipif(IS_ROOT, reason="nothing keeps root from it")
STRACE = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here")

# above the process, as a container's is
_FILTERS = """
import os
from sandbox.linux.kernel import bpf, kernel_calls as kernel
from sandbox.linux.kernel import seccomp_filter as filters
from sandbox.linux.kernel.syscall_numbers import ARCHITECTURES
EPERM, NO_CLONE3 = bpf.refuse(filters.EPERM), bpf.returns(bpf.refuse(filters.ENOSYS))
def refuse(**blocks):
    program = filters.assembled(ARCHITECTURES[os.uname().machine], {"clone3": NO_CLONE3, **blocks})
    kernel.install_filter(program, listener=False)
def listen():
    kernel.install_filter(bpf.assemble(bpf.returns(bpf.ALLOW)), listener=True)
"""
_NO_NAMESPACES = """
refuse(
    clone=bpf.if_any_bit(0, filters.CLONE_NAMESPACES, EPERM, bpf.ALLOW),
    unshare=bpf.if_any_bit(0, filters.UNSHARE_NAMESPACES, EPERM, bpf.ALLOW),
)
"""


def test_a_machine_that_lacks_nothing_needs_no_remedy(tmp_path: Path) -> None:
    told = tell(tmp_path)
    assert told.passed == told.report["observer"]
    for report in (told.report, told.weaker):
        assert (report["available"], report["reason"], report["fix"], report["weaker"]) == (True, "", "", False)


# bubblewrap


def test_without_bubblewrap_it_says_how_to_get_it(tmp_path: Path) -> None:
    told = tell(tmp_path, *inside("--ro-bind", "/dev/null", bwrap()))
    assert told.refused.startswith("bubblewrap (bwrap) is not installed\nhint: apt install bubblewrap")
    assert told.report["available"] is False
    assert "bubblewrap (bwrap) is not installed" in told.report["reason"]
    assert told.report["fix"] == told.probe("bubblewrap")["fix"] == told.probe("sandbox")["fix"]


def test_an_old_bubblewrap_is_named_with_its_version(tmp_path: Path) -> None:
    old = program(
        tmp_path / "bwrap",
        (
            '[ "$1" = --version ] && exec echo bubblewrap 0.6.1',
            'echo "bwrap: Unknown option --disable-userns" >&2; exit 1',
        ),
    )
    told = tell(tmp_path, *inside("--ro-bind", str(old), bwrap()))
    assert "Unknown option --disable-userns" in told.refused
    assert told.refused.endswith("\nhint: install bubblewrap 0.8 or later")
    assert told.report["available"] is False
    assert told.probe("bubblewrap")["found"].endswith("bubblewrap 0.6.1")


def test_a_bubblewrap_that_hangs_up_without_a_word_is_still_a_refusal(tmp_path: Path) -> None:
    mute = program(tmp_path / "bwrap", ('[ "$1" = --version ] && exec echo bubblewrap 0.8.0', "exit 1"))
    told = tell(tmp_path, *inside("--ro-bind", str(mute), bwrap()))
    assert "it ended without a word" in told.refused
    assert told.report["available"] is False


def test_a_setuid_bubblewrap_is_refused_with_its_remedy_and_no_matter_to_root(tmp_path: Path) -> None:
    copy = tmp_path / "bwrap"
    shutil.copy(bwrap(), copy)
    copy.chmod(0o4755)
    told = tell(tmp_path, *inside("--bind", str(copy), bwrap()))
    if IS_ROOT:
        assert told.passed
        return
    assert told.refused.startswith(f"bubblewrap ({bwrap()}) is setuid")
    assert told.refused.endswith(f"\nhint: chmod u-s {bwrap()}")
    found = told.probe("bubblewrap")
    assert (found["ok"], found["fix"], told.report["fix"]) == (False, f"chmod u-s {bwrap()}", found["fix"])


# user namespaces


def test_a_setting_that_refuses_user_namespaces_is_named(tmp_path: Path) -> None:
    told = tell(tmp_path, *shell("echo 0 >/proc/sys/user/max_user_namespaces", "--user", "--map-root-user"))
    assert "user.max_user_namespaces is 0" in told.refused
    assert told.refused.endswith("\nhint: sysctl user.max_user_namespaces=10000")
    found = told.probe("user namespaces")
    assert (found["ok"], found["cause"]) == (False, "user.max_user_namespaces is 0")
    assert told.report["fix"] == found["fix"] == "sysctl user.max_user_namespaces=10000"


def test_a_limit_of_a_namespace_around_is_told_from_the_own_setting(tmp_path: Path) -> None:
    kinds = ("--user", "--map-root-user")
    limit = f'echo 1 >/proc/sys/user/max_user_namespaces; exec unshare {" ".join(kinds)} "$@"'
    told = tell(tmp_path, *shell(limit, *kinds))
    assert "a limit of this user namespace or of one around it is reached" in told.refused
    assert "outside the container too" in told.report["fix"]


def test_a_filter_that_refuses_user_namespaces_is_named(tmp_path: Path) -> None:
    told = tell(tmp_path, prelude=_FILTERS + _NO_NAMESPACES)
    assert "a system call filter above this process refuses" in told.refused
    assert "--security-opt seccomp=unconfined" in told.report["fix"]
    assert told.probe("user namespaces")["found"] == "making one: Operation not permitted"


def test_a_filter_that_refuses_to_mount_is_named(tmp_path: Path) -> None:
    told = tell(tmp_path, prelude=f"{_FILTERS}refuse(mount=bpf.returns(EPERM))")
    assert "a system call filter above this process refuses" in told.refused
    assert told.probe("user namespaces")["found"] == "mounting in it: Operation not permitted"


@ROOT
def test_root_without_the_capability_it_needs_is_told_which(tmp_path: Path) -> None:
    told = tell(tmp_path, "setpriv", "--bounding-set=-all", "--inh-caps=-all")
    assert "root lacks the capability SETFCAP" in told.refused
    assert told.report["fix"] == "run as an ordinary user, or start the container with --cap-add SETFCAP"
    assert told.weaker["available"] is False, "so the weaker sandbox is no remedy, and not named as one"


@USER
def test_an_ordinary_user_needs_no_capability(tmp_path: Path) -> None:
    assert tell(tmp_path, "setpriv", "--bounding-set=-all", "--inh-caps=-all").passed


@USER
def test_capabilities_an_ordinary_user_has_are_in_nobodys_way(tmp_path: Path) -> None:
    # as of a container's runner that is given some: bubblewrap itself refuses to start with them
    told = tell(tmp_path, "bwrap", "--unshare-user", "--cap-add", "ALL", "--dev-bind", "/", "/", "--")
    assert told.passed == told.report["observer"]


# /proc


@pytest.mark.parametrize("masks", [MASKS, ("--tmpfs", "/proc/irq"), ("--ro-bind", "/dev/null", "/proc/keys")])
def test_a_masked_proc_is_named_with_both_remedies(tmp_path: Path, masks: tuple[str, ...]) -> None:
    told = tell(tmp_path, *inside(*masks))
    assert "where parts of this one are hidden" in told.refused
    for remedy in ("systempaths=unconfined", "weakerWhenNested = true"):
        assert remedy in told.refused
        assert remedy in told.report["fix"]
    assert masks[-1] in told.probe("/proc")["found"]
    assert (told.report["available"], told.weaker["available"], told.weaker["weaker"]) == (False, True, True)


# observers


def test_without_dev_fuse_calls_are_notified(tmp_path: Path) -> None:
    told = tell(tmp_path, *inside("--dev", "/dev"))
    assert told.passed == told.report["observer"] == "notify"
    found = told.probe("/dev/fuse")
    assert (found["ok"], found["found"], found["fix"]) == (False, "absent", "modprobe fuse, or give the container it")


def test_a_dev_fuse_that_is_no_device_here_does_as_if_there_were_none(tmp_path: Path) -> None:
    # a bind without devices
    told = tell(tmp_path, *inside("--ro-bind", "/dev/fuse", "/dev/fuse"))
    assert told.passed == told.report["observer"] == "notify"
    found = told.probe("/dev/fuse")
    assert (found["ok"], found["found"]) == (False, "refused")
    assert "Permission denied" in found["cause"]


@pytest.mark.parametrize("observer", ["auto", "mask"])
def test_a_dev_fuse_that_mounts_nothing_is_replaced_unless_it_was_asked_for(tmp_path: Path, observer: str) -> None:
    other = tmp_path / "fuse"
    other.write_bytes(b"")
    told = tell(tmp_path, *inside("--bind", str(other), "/dev/fuse"), options={"observer": observer})
    if observer == "mask":
        assert told.refused.startswith(
            "no mask can be mounted: a fuse file system: Invalid argument\nhint: use the obs"
        )
    else:
        assert told.passed == told.report["observer"] == "notify"
    found = told.probe("/dev/fuse")
    assert (found["ok"], found["found"]) == (False, "of no use")
    assert "--device /dev/fuse" in found["fix"]


@ROOT
def test_a_dev_fuse_of_another_user_is_named_with_its_mode(tmp_path: Path) -> None:
    make = "mount -t tmpfs none /mnt; mknod -m 600 /mnt/fuse c 10 229; chown 61234 /mnt/fuse"
    bare = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    told = tell(tmp_path, *shell(f"{make}; mount --bind /mnt/fuse /dev/fuse", "--mount"), *bare)
    assert told.passed == told.report["observer"] == "notify"
    found = told.probe("/dev/fuse")
    assert (found["found"], found["fix"]) == ("refused", "chmod 0666 /dev/fuse, as udev does")


def test_the_mask_that_was_asked_for_is_not_replaced_by_less(tmp_path: Path) -> None:
    told = tell(tmp_path, *inside("--dev", "/dev"), options={"observer": "mask"})
    assert told.refused.startswith("/dev/fuse cannot be opened: No such file or directory\nhint: use the observer auto")


@STRACE
def test_below_another_listener_strace_is_left(tmp_path: Path) -> None:
    told = tell(tmp_path, prelude=f"{_FILTERS}listen()")
    assert told.passed == told.report["observer"] == "strace"
    assert "the kernel gives its filter no listener" in told.probe("sandbox")["found"]


@STRACE
def test_below_another_listener_without_strace_nothing_runs_unseen(tmp_path: Path) -> None:
    strace = os.path.realpath(shutil.which("strace") or "")
    told = tell(tmp_path, *inside("--ro-bind", "/dev/null", strace), prelude=f"{_FILTERS}listen()")
    assert "strace is not installed" in told.refused
    assert "apt install strace" in told.report["fix"]


@STRACE
@pytest.mark.parametrize("observer", ["auto", "strace"])
def test_where_nobody_may_trace_it_says_so_and_what_is_left(tmp_path: Path, observer: str) -> None:
    prelude = f"{_FILTERS}refuse(ptrace=bpf.returns(EPERM)); listen()"
    told = tell(tmp_path, prelude=prelude, options={"observer": observer})
    assert told.refused.startswith("strace may not trace the command: ptrace is refused here")
    for remedy in ("SYS_PTRACE", "ptrace_scope", "the observer none"):
        assert remedy in told.refused
        assert remedy in told.report["fix"]


def test_what_is_left_where_nobody_may_trace_works_and_says_that_it_saw_nothing(tmp_path: Path) -> None:
    prelude = f"{_FILTERS}refuse(ptrace=bpf.returns(EPERM)); listen()"
    told = tell(tmp_path, prelude=prelude, options={"observer": "none"})
    assert told.passed == "none"
    assert (told.run["trace"], told.run["protections"]["observer"]) == ("none", "off")


# the temporary directory


def test_a_temporary_directory_that_is_missing_is_named_with_the_way_out(tmp_path: Path) -> None:
    told = tell(tmp_path, VX_TMPDIR=str(tmp_path / "gone" / "deep"))
    assert f"{tmp_path}/gone" in told.refused
    assert "VX_TMPDIR" in told.report["fix"]
    assert told.probe("temporary")["fix"] == told.report["fix"]


def test_a_temporary_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir()
    told = tell(tmp_path, *inside("--ro-bind", str(tmp_path / "shut"), "/mnt"), VX_TMPDIR="/mnt")
    assert told.refused.startswith("the temporary directory /mnt/vx-")
    assert "Read-only file system" in told.refused
    assert "set VX_TMPDIR" in told.report["fix"]


def test_a_temporary_directory_others_may_rename_in_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    told = tell(tmp_path, VX_TMPDIR=str(tmp_path / "open"))
    assert "lets other users rename what is in it" in told.refused
    assert "lets other users rename what is in it" in told.probe("temporary")["cause"]


@ROOT
def test_a_temporary_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 61234, 61234)
    assert "belongs to another user" in tell(tmp_path, VX_TMPDIR=str(tmp_path / "theirs")).refused


def test_a_link_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "temp").mkdir()
    (tmp_path / "temp" / f"vx-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    told = tell(tmp_path, VX_TMPDIR=str(tmp_path / "temp"))
    assert "is not a directory of this user" in told.refused
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_directory_of_this_user_that_others_may_enter_is_closed_to_them(tmp_path: Path) -> None:
    own = tmp_path / "temp" / f"vx-{os.getuid()}"
    own.mkdir(parents=True)
    own.chmod(0o777)
    assert tell(tmp_path, VX_TMPDIR=str(tmp_path / "temp")).passed
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_full_temporary_directory_is_named(tmp_path: Path) -> None:
    # the root, the directory of this user's, the file that is not to be made, and no more
    mount = "mount -t tmpfs -o size=64k,nr_inodes=2 none /mnt"
    told = tell(tmp_path, *shell(mount, "--user", "--map-root-user", "--mount"), VX_TMPDIR="/mnt")
    assert "No space left on device" in told.refused
    assert "make room" in told.refused
    assert told.probe("temporary")["ok"] is False


def test_a_temporary_directory_in_which_nothing_can_be_written_any_more_is_named(tmp_path: Path) -> None:
    fill = "import os; fd = os.open('/mnt/all', os.O_CREAT | os.O_WRONLY); os.write(fd, bytes(4096))"
    told = tell(tmp_path, *inside("--size", "4096", "--tmpfs", "/mnt"), prelude=fill, VX_TMPDIR="/mnt")
    found = told.probe("temporary")
    assert (found["ok"], "No space left on device" in found["cause"]) == (False, True)
    assert found["fix"].startswith("make room there")


def test_a_temporary_directory_too_deep_for_sockets_is_named(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    told = tell(tmp_path, VX_TMPDIR=str(deep))
    assert told.passed
    found = told.probe("temporary")
    assert (found["ok"], "107 bytes" in found["cause"]) == (False, True)
    assert "a shorter name" in found["fix"]


@USER
def test_the_systems_directory_serves_where_its_owner_has_no_number(tmp_path: Path) -> None:
    # as in a container that maps this user alone
    assert os.stat("/tmp").st_uid == 0
    assert tell(tmp_path, *inside(), VX_TMPDIR="/tmp").passed


# the command line


def test_doctor_and_run_exit_with_what_the_machine_lacks(tmp_path: Path) -> None:
    (tmp_path / "vx.toml").write_text(
        '[tasks.t.exec]\ncommand = "touch out/ran"\nsandbox.allow.write = ["out/"]\n', encoding="utf-8"
    )
    (tmp_path / ".vx").mkdir()
    (tmp_path / ".vx" / "workspace.toml").write_text("", encoding="utf-8")

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        vxconf = (*inside(*MASKS), sys.executable, "-m", "vxconf", *words)
        path = os.pathsep.join((str(REPOSITORY), *sys.path))
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            vxconf, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment, timeout=100
        )

    doctor = said("doctor", "--format", "json")
    probes = {probe["name"]: probe for probe in json.loads(doctor.stdout)["probes"]}
    assert (doctor.returncode, probes["/proc"]["ok"], probes["weakerWhenNested"]["ok"]) == (1, False, True)
    assert "FAIL  /proc" in said("doctor").stdout
    run = said("run", "t", "--format", "json")
    result = json.loads(run.stdout)
    assert (run.returncode, result["started"], result["sandboxed"]) == (125, False, True)
    assert "weakerWhenNested = true" in json.dumps(result["refusals"])
    assert not (tmp_path / "out" / "ran").exists()


# the memo


_AT_ONCE = """
import json, sys, threading
sys.path[:0] = json.loads(sys.argv[1])
import sandbox
root = sys.argv[2]
config = sandbox.ResolvedSandboxConfig(platform="linux", workspace=root, project=root)
with sandbox.Session() as session:
    request, refusals = session.request(config, workspace_root=root), []
    def run():
        refusals.append([refusal.hint for refusal in session.run(request, command="true").refusals])
    for _ in range(2):
        threads = [threading.Thread(target=run) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    before = open(sys.argv[3]).read().count("asked")
    session.reset()
    run()
print(json.dumps([refusals, before, open(sys.argv[3]).read().count("asked")]))
"""


def test_tasks_that_cannot_start_ask_the_machine_once_between_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    old = program(
        tmp_path / "bwrap",
        (
            f'[ "$1" = --version ] && echo asked >>{log} && exec echo bubblewrap 0.6.1',
            'echo "bwrap: Unknown option --disable-userns" >&2; exit 1',
        ),
    )
    (tmp_path / "ws").mkdir()
    words = (json.dumps([str(REPOSITORY), *sys.path]), str(tmp_path / "ws"), str(log))
    done = subprocess.run(
        (*inside("--ro-bind", str(old), bwrap()), sys.executable, "-c", _AT_ONCE, *words),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "VX_TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    refusals, asked, after_reset = json.loads(done.stdout)
    assert len(refusals) == 11
    assert {hint for (hint,) in refusals} == {"install bubblewrap 0.8 or later"}
    assert (asked, after_reset) == (1, 2)


def test_ten_threads_that_ask_at_once_get_one_verdict_a_mode() -> None:
    reports: list[HostReport] = []
    with Session() as session:
        threads = [threading.Thread(target=lambda: reports.append(session.probe())) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(reports) == 10
        assert len({id(report) for report in reports}) == 1
        weaker = session.probe(weaker=True)
        assert weaker is not reports[0]
        assert session.probe(weaker=True) is weaker
        session.reset()
        assert session.probe() is not reports[0]
