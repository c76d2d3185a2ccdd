"""EFFECT: the probes of a Linux machine: whether it has each thing a sandbox needs."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass

from sandbox.contract.errors import SandboxError
from sandbox.linux.kernel import landlock
from sandbox.machine import learned_kernel_limits, user_namespace_refusal
from sandbox.machine.ask_facts import temp_root
from sandbox.machine.required_programs import OLDEST_BWRAP, check_bwrap, find_bwrap, find_strace, version
from sandbox.scratch import task_tmpdir

#: The first strace with `--seccomp-bpf` (its NEWS for 5.3).
OLDEST_STRACE = (5, 3)
#: The first kernel with mount_setattr(2).
OLDEST_KERNEL = (5, 12)
#: The first kernel with SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, whose notifications no signal restarts for ever.
KILLABLE_KERNEL = (5, 19)

_SECONDS = 10
#: The most bytes of a socket's path (unix(7): `sun_path` has 108 with its end). Below the root come a task's directory
#: and a name in it.
_SOCKET_BYTES = 107
_BELOW = len("/task-12345678/") + 24
_PAGE = b"\0" * 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing asked of the machine.

    Attributes:
        ok: whether it is as a full sandbox needs it.
        found: what was found, for people.
        cause, fix: the cause of a failure and its cure; empty when `ok`.
        lesser: whether a sandbox can be built all the same.
    """

    name: str
    ok: bool
    found: str
    cause: str = ""
    fix: str = ""
    lesser: bool = False


def found() -> list[Probe]:
    """The probes of everything a sandbox needs, in the order it needs it; nothing is built."""
    return [_kernel(), _bwrap(), _settings(), _landlock(), _fuse(), _temporary(), _strace(), _ipv6()]


def _kernel() -> Probe:
    found = platform.release()
    ours = version(found)
    if ours < OLDEST_KERNEL:
        cause = "grants are mounted with mount_setattr, which came with Linux 5.12"
        return Probe(name="kernel", ok=False, found=found, cause=cause, fix="use a newer kernel")
    if ours < KILLABLE_KERNEL:
        cause = "before Linux 5.19 a signal restarts an observed call, which programs in Go may loop on"
        return Probe(name="kernel", ok=False, found=found, cause=cause, fix="use a newer kernel", lesser=True)
    return Probe(name="kernel", ok=True, found=found)


def _bwrap() -> Probe:
    name = "bubblewrap"
    try:
        path = find_bwrap(os.environ.get("PATH", ""), "/nonexistent")
    except SandboxError as error:
        return Probe(name=name, ok=False, found="none", cause=error.message, fix=error.hint)
    said = _said(path, "--version")
    found = f"{path}, {said}"
    if version(said) < OLDEST_BWRAP:
        cause = "before 0.8 a task could make user namespaces of its own"
        return Probe(name=name, ok=False, found=found, cause=cause, fix="install bubblewrap 0.8 or later")
    try:
        check_bwrap(path)
    except SandboxError as error:
        return Probe(name=name, ok=False, found=found, cause=error.message, fix=error.hint)
    return Probe(name=name, ok=True, found=found)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, env={"LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    text = (done.stdout or done.stderr).decode("utf-8", "replace").strip()
    return text.splitlines()[0] if text else ""


def _settings() -> Probe:
    name, said = "user namespaces", user_namespace_refusal.NamespaceFacts(user=os.getuid(), settings=_texts())
    cause, fix = user_namespace_refusal.refusal(said)
    if cause:
        return Probe(name=name, ok=False, found="refused by a setting", cause=cause, fix=fix)
    return Probe(name=name, ok=True, found="not refused by a setting")


def tried() -> Probe:
    """Whether a user namespace can be made and built in, found out by doing so; tens of milliseconds."""
    name = "user namespaces"
    made, mapped, ruled = _numbers()
    said = user_namespace_refusal.NamespaceFacts(
        user=os.getuid(),
        settings=_texts(),
        made=made,
        mapped=mapped,
        ruled=ruled,
        filtered=_status("Seccomp") not in ("", "0"),
        profile=_profile(),
        capabilities=int(_status("CapEff") or "0", 16),
    )
    cause, fix = user_namespace_refusal.refusal(said)
    if not cause:
        return Probe(name=name, ok=True, found="can be made")
    steps = (("making one", made), ("giving it this user", mapped), ("mounting in it", ruled))
    refused = [f"{step}: {os.strerror(code)}" for step, code in steps if code]
    found = refused[0] if refused else "refused by a setting"
    return Probe(name=name, ok=False, found=found, cause=cause, fix=fix)


def _texts() -> dict[str, str]:
    return {path: text for path in user_namespace_refusal.SETTINGS if (text := _text(path))}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip().strip("\0")
    except OSError:
        return ""


def _status(field: str) -> str:
    found = re.search(rf"^{field}:\s*(\S+)", _text("/proc/self/status"), re.MULTILINE)
    return found[1] if found else ""


def _profile() -> str:
    text = _text("/proc/self/attr/apparmor/current")
    return "" if text == "unconfined" else text


# The trial is a process of its own, which ends in the namespaces it makes, user first, then mount.
_TRY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
user, numbers = os.getuid(), []
def step(result):
    numbers.append(ctypes.get_errno() if result else 0)
    return not result
def mapped():
    try:
        with open("/proc/self/uid_map", "w") as file:
            file.write(f"{user} {user} 1")
    except OSError as error:
        ctypes.set_errno(error.errno)
        return -1
    return 0
step(libc.unshare(0x10000000)) and step(mapped()) and step(
    libc.unshare(0x00020000) or libc.mount(None, b"/", None, 0x44000, None)
)
print(*numbers)
"""


def _numbers() -> tuple[int, int, int]:
    try:
        done = subprocess.run(
            (sys.executable, "-I", "-S", "-c", _TRY), capture_output=True, timeout=_SECONDS, check=True, env={}
        )
        made, mapped, ruled, *_ = (*map(int, done.stdout.split()), 0, 0, 0)
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0, 0, 0
    return made, mapped, ruled


def _landlock() -> Probe:
    name, known = "Landlock", landlock.version()
    if known >= landlock.SCOPED:
        return Probe(name=name, ok=True, found=f"version {known}")
    found = f"version {known}" if known else "absent"
    if known >= landlock.USABLE:
        cause = f"before version {landlock.SCOPED} signals and abstract sockets are kept apart by namespaces alone"
        return Probe(name=name, ok=False, found=found, cause=cause, fix="use Linux 6.12 or later", lesser=True)
    cause = (
        "mounts alone keep a task from writing: FIFOs outside its write grants, and files it is handed open, are not "
        "kept from it"
    )
    fix = "use Linux 5.19 or later, with landlock among the kernel's lsm= modules"
    return Probe(name=name, ok=False, found=found, cause=cause, fix=fix, lesser=True)


_WITHOUT_FUSE = "reads are observed call by call, which is slower"


def _fuse() -> Probe:
    name = "/dev/fuse"
    try:
        os.close(os.open(name, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        cause = f"there is no /dev/fuse, so {_WITHOUT_FUSE}"
        return Probe(name=name, ok=False, found="absent", cause=cause, fix="modprobe fuse, or give the container it")
    except OSError as error:
        cause = f"/dev/fuse cannot be opened ({error.strerror}), so {_WITHOUT_FUSE}"
        # The mode of the device lets this user open it. A mount without devices, or a rule about them, may not.
        may = os.access(name, os.R_OK | os.W_OK)
        fix = (
            "give the container the device (Docker: --device /dev/fuse)"
            if may
            else "chmod 0666 /dev/fuse, as udev does"
        )
        return Probe(name=name, ok=False, found="refused", cause=cause, fix=fix)
    return Probe(name=name, ok=True, found="usable")


def unfused(why: str) -> Probe:
    """The probe of a `/dev/fuse` that can be opened, and with which nothing can be mounted."""
    cause = f"no FUSE file system can be mounted ({why}), so {_WITHOUT_FUSE}"
    fix = "let the container mount them (Docker: --device /dev/fuse --security-opt apparmor=unconfined)"
    return Probe(name="/dev/fuse", ok=False, found="of no use", cause=cause, fix=fix)


def _temporary() -> Probe:
    name, root = "temporary", temp_root()
    try:
        made = task_tmpdir.make(root)
    except SandboxError as error:
        return Probe(name=name, ok=False, found=root, cause=error.message, fix=error.hint)
    elsewhere = "set VX_TMPDIR to a directory of your own"
    try:
        with open(f"{made.path}/page", "wb") as file:
            file.write(_PAGE)
    except OSError as error:
        cause = f"nothing can be written in {root}: {error.strerror}"
        return Probe(name=name, ok=False, found=root, cause=cause, fix=f"make room there, or {elsewhere}", lesser=True)
    finally:
        made.remove()
    if len(os.fsencode(root)) + _BELOW > _SOCKET_BYTES:
        cause = f"{root} is so long that sockets tasks make below it may have more than {_SOCKET_BYTES} bytes"
        fix = f"{elsewhere} with a shorter name"
        return Probe(name=name, ok=False, found=root, cause=cause, fix=fix, lesser=True)
    return Probe(name=name, ok=True, found=root)


def _strace() -> Probe:
    spare = "only needed where the kernel gives no filter a listener"
    try:
        path = find_strace(os.environ.get("PATH", ""), "/nonexistent")
    except SandboxError as error:
        return Probe(name="strace", ok=False, found="none", cause=f"{error.message}; {spare}", fix=error.hint)
    said = _said(path, "--version")
    found = f"{path}, {said}"
    if version(said) < OLDEST_STRACE:
        cause = f"before 5.3 strace stops every call of a task and knows no filter; {spare}"
        return Probe(name="strace", ok=False, found=found, cause=cause, fix="install strace 5.3 or later")
    if _text("/proc/sys/kernel/yama/ptrace_scope") == "3":
        cause = f"kernel.yama.ptrace_scope is 3, so nobody may trace anything; {spare}"
        return Probe(name="strace", ok=False, found=found, cause=cause, fix="boot with a smaller ptrace_scope")
    return Probe(name="strace", ok=True, found=found)


def masked_proc() -> Probe:
    """The probe of a machine where nobody may mount a `/proc` of his own, since it would show what is hidden here."""
    over: list[str] = []
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        over = [line.split()[4] for line in mounts if line.split()[4].startswith("/proc/")]
    found = f"mounted over: {', '.join(over[:5])}" if over else "no mount lies over it"
    refused = learned_kernel_limits.masked("")
    return Probe(name="/proc", ok=False, found=found, cause=refused.message, fix=refused.hint)


def _ipv6() -> Probe:
    if os.path.exists("/proc/net/if_inet6"):
        return Probe(name="IPv6", ok=True, found="present")
    cause = "this kernel has no IPv6: servers that listen on ::1 alone cannot run"
    return Probe(name="IPv6", ok=False, found="absent", cause=cause, fix="boot without ipv6.disable=1")
