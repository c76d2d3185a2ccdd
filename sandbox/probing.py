"""EFFECT: what this machine can do, found out by running one sandboxed `true` through the real path."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import stat
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox import observing, temporary
from sandbox.contract import ResolvedSandboxConfig
from sandbox.errors import SandboxError
from sandbox.host import host_facts
from sandbox.session import Session
from sandbox.tools import find_bwrap, find_strace

if TYPE_CHECKING:
    from sandbox.contract import Observer, Platform, RunResult

#: `--disable-userns` came with it.
OLDEST_BWRAP = (0, 8)
#: `--seccomp-bpf` came with it.
OLDEST_STRACE = (5, 3)
#: `mount_setattr` came with it.
OLDEST_KERNEL = (5, 12)
#: Notifications that a signal cannot restart for ever came with it.
KILLABLE_KERNEL = (5, 19)

_REASON_LIMIT = 500
#: Without these nothing runs, on the one system or the other.
_NEEDED = ("kernel", "bubblewrap", "/proc", "user namespaces", "sandbox-exec", "not sandboxed itself", "temporary")
_SYSCTLS = (
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user.max_user_namespaces is 0",
        "sysctl user.max_user_namespaces=10000",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone is 0",
        "sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor keeps user namespaces from programs without a profile (Ubuntu 23.10 and later)",
        "give bwrap an AppArmor profile with `userns,`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing asked of the machine.

    Attributes:
        ok: whether it is as a full sandbox needs it.
        found: what was found, for people.
        cause, fix: why not and what to do; empty when `ok`.
    """

    name: str
    ok: bool
    found: str
    cause: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a run will get here.

    Attributes:
        available: whether a sandboxed `true` ran.
        reason: why not, empty when available.
        observer: the observer a run gets.
    """

    available: bool
    reason: str
    observer: Observer
    probes: tuple[Probe, ...]


def probe() -> HostReport:
    """Ask the machine; takes tens of milliseconds and leaves nothing behind."""
    if host_facts().platform == "macos":
        return _reported(_of_a_mac(), "macos")
    if sys.platform != "linux":
        cause = "sandboxes run on Linux and macOS only"
        failed = Probe(name="platform", ok=False, found=platform.system(), cause=cause, fix="run it on one of them")
        return HostReport(available=False, reason=cause, observer="none", probes=(failed,))
    probes = [_kernel(), _bwrap(), _user_namespaces(), _fuse(), _temporary(), _strace(), _ipv6()]
    return _reported(probes, "linux")


class Prober:
    """One verdict however many threads ask, found when the first does."""

    def __init__(self) -> None:
        """Nothing is asked yet."""
        self._lock = threading.Lock()
        self._report: HostReport | None = None

    def __call__(self) -> HostReport:
        """The verdict, as long as nobody has it forgotten."""
        with self._lock:
            if self._report is None:
                self._report = probe()
            return self._report

    def forget(self) -> None:
        """The next to ask has the machine asked again."""
        with self._lock:
            self._report = None


def _of_a_mac() -> list[Probe]:
    from sandbox.macos.probes import found  # noqa: PLC0415  nothing of it is needed elsewhere

    return [Probe(name=o.name, ok=not o.cause, found=o.found, cause=o.cause, fix=o.fix) for o in found()]


def _reported(probes: list[Probe], where: Platform) -> HostReport:
    result, error = _trial(where)
    ok = result is not None and result.exit_code == 0 and result.started
    if ok and result is not None:
        observer = result.observer
        found = f"a sandboxed true ran, observed by {observer}"
        if why := observing.why():
            found += f", for the kernel gives its filter no listener ({why})"
        probes.append(Probe(name="sandbox", ok=True, found=found))
        return HostReport(available=True, reason="", observer=observer, probes=tuple(probes))
    reason = error or (" ".join(result.refusals) if result else "") or "a sandboxed true failed"
    if "mounting /proc" in reason:
        probes.append(_masked_proc())
    causes = [p for p in probes if not p.ok and p.name in _NEEDED]
    fix = causes[0].fix if causes else "set VXCONF_DEBUG=1 and run a task for the engine's own words"
    reason = reason[:_REASON_LIMIT]
    probes.append(Probe(name="sandbox", ok=False, found="a sandboxed true did not run", cause=reason, fix=fix))
    return HostReport(available=False, reason=reason, observer="none", probes=tuple(probes))


def _trial(where: Platform) -> tuple[RunResult | None, str]:
    """One sandboxed `true`, built as every run is."""
    try:
        with tempfile.TemporaryDirectory(prefix="vxconf-probe-") as made, Session() as session:
            root = os.path.realpath(made)
            request = session.request(
                ResolvedSandboxConfig(platform=where, workspace=root, project=root), workspace_root=root
            )
            return session.run(request, command="true", timeout=60), ""
    except SandboxError as error:
        return None, str(error)
    except OSError as error:
        return None, f"no temporary directory: {error}"


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def _kernel() -> Probe:
    found = platform.release()
    version = _version(found)
    if version < OLDEST_KERNEL:
        cause = "grants are mounted with mount_setattr, which came with Linux 5.12"
        return Probe(name="kernel", ok=False, found=found, cause=cause, fix="use a newer kernel")
    if version < KILLABLE_KERNEL:
        cause = "before Linux 5.19 a signal restarts an observed call, which programs in Go may loop on"
        return Probe(name="kernel", ok=False, found=found, cause=cause, fix="use a newer kernel")
    return Probe(name="kernel", ok=True, found=found)


def _bwrap() -> Probe:
    name = "bubblewrap"
    try:
        path = find_bwrap(os.environ.get("PATH", ""), "/nonexistent")
    except SandboxError as error:
        return Probe(name=name, ok=False, found="none", cause=error.message, fix=error.hint)
    said = _said(path, "--version")
    found = f"{path}, {said}"
    if _version(said) < OLDEST_BWRAP:
        cause = "before 0.8 a task could make user namespaces of its own"
        return Probe(name=name, ok=False, found=found, cause=cause, fix="install bubblewrap 0.8 or later")
    if os.stat(path).st_mode & stat.S_ISUID:
        cause = "it is setuid root, and its namespaces then belong to root"
        return Probe(name=name, ok=False, found=found, cause=cause, fix=f"chmod u-s {path}")
    return Probe(name=name, ok=True, found=found)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False, env={"LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    text = (done.stdout or done.stderr).decode("utf-8", "replace").strip()
    return text.splitlines()[0] if text else ""


def _user_namespaces() -> Probe:
    name = "user namespaces"
    for path, bad, cause, fix in _SYSCTLS:
        try:
            with open(path, encoding="ascii") as file:
                value = file.read().strip()
        except OSError:
            continue
        if value == bad and (os.getuid() != 0 or "max_user" in path):
            return Probe(name=name, ok=False, found=f"{path} = {value}", cause=cause, fix=fix)
    return Probe(name=name, ok=True, found="not refused by a sysctl")


_WITHOUT_FUSE = (
    "reads are observed call by call, which is slower, and what lies beside a write grant of a name is kept from the "
    "task less surely"
)


def _fuse() -> Probe:
    name = "/dev/fuse"
    try:
        os.close(os.open(name, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        cause = f"there is no /dev/fuse, so {_WITHOUT_FUSE}"
        return Probe(name=name, ok=False, found="absent", cause=cause, fix="modprobe fuse, or give the container it")
    except OSError as error:
        cause = f"/dev/fuse cannot be opened ({error.strerror}), so {_WITHOUT_FUSE}"
        return Probe(name=name, ok=False, found="refused", cause=cause, fix="chmod 0666 /dev/fuse, as udev does")
    return Probe(name=name, ok=True, found="usable")


def _temporary() -> Probe:
    name, root = "temporary", host_facts().temp_root
    try:
        temporary.make(root).remove()
    except SandboxError as error:
        return Probe(name=name, ok=False, found=root, cause=error.message, fix=error.hint)
    return Probe(name=name, ok=True, found=root)


def _strace() -> Probe:
    spare = "only needed where the kernel gives no filter a listener"
    try:
        path = find_strace(os.environ.get("PATH", ""), "/nonexistent")
    except SandboxError as error:
        return Probe(name="strace", ok=False, found="none", cause=f"{error.message}; {spare}", fix=error.hint)
    said = _said(path, "--version")
    found = f"{path}, {said}"
    if _version(said) < OLDEST_STRACE:
        cause = f"before 5.3 strace stops every call of a task and knows no filter; {spare}"
        return Probe(name="strace", ok=False, found=found, cause=cause, fix="install strace 5.3 or later")
    scope = "/proc/sys/kernel/yama/ptrace_scope"
    with contextlib.suppress(OSError), open(scope, encoding="ascii") as file:
        if file.read().strip() == "3":
            cause = f"kernel.yama.ptrace_scope is 3, so nobody may trace anything; {spare}"
            return Probe(name="strace", ok=False, found=found, cause=cause, fix="boot with a smaller ptrace_scope")
    return Probe(name="strace", ok=True, found=found)


def _masked_proc() -> Probe:
    """Why the kernel lets nobody mount a /proc of his own: it would show what something here hides."""
    over: list[str] = []
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        over = [line.split()[4] for line in mounts if line.split()[4].startswith("/proc/")]
    found = f"mounted over: {', '.join(over[:5])}" if over else "no mount lies over it"
    return Probe(
        name="/proc",
        ok=False,
        found=found,
        cause="the kernel gives a task no /proc of its own where parts of this one are hidden, as containers hide them",
        fix="start the container with an unmasked /proc (Docker: --security-opt systempaths=unconfined; "
        "Kubernetes: procMount: Unmasked)",
    )


def _ipv6() -> Probe:
    if os.path.exists("/proc/net/if_inet6"):
        return Probe(name="IPv6", ok=True, found="present")
    cause = "this kernel has no IPv6: servers that listen on ::1 alone cannot run"
    return Probe(name="IPv6", ok=False, found="absent", cause=cause, fix="boot without ipv6.disable=1")
