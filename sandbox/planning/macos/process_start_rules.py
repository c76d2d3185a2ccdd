"""The rules every process on macOS needs to start. Pure.

Nothing here was tried on a Mac. Each entry names another project that needs it, in public:

- CHROME: Chromium's `sandbox/policy/mac/common.sb`, which lists what any process touches as it starts.
- CODEX: OpenAI Codex's `codex-rs/sandboxing/src/seatbelt_base_policy.sbpl`, for commands of developers.
- SRT: Anthropic's sandbox-runtime, `src/sandbox/macos-sandbox-utils.ts`, likewise.

Left out on purpose: LaunchServices, Apple Events and `coreservicesd`, through which a task would have a program started
outside its walls; `lsopen`; the keychain (`securityd`); the pasteboard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.planning.macos.profile_rules import EXEC, READ, At, Below, Rule, each, plain
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Sysctls libc, language runtimes and compilers read as they start (CHROME, CODEX, SRT).
_SYSCTLS = (
    "hw.activecpu",
    "hw.byteorder",
    "hw.cacheconfig",
    "hw.cachelinesize",
    "hw.cachelinesize_compat",
    "hw.cpufamily",
    "hw.cputype",
    "hw.l1dcachesize",
    "hw.l1icachesize",
    "hw.l2cachesize",
    "hw.logicalcpu",
    "hw.logicalcpu_max",
    "hw.machine",
    "hw.memsize",
    "hw.model",
    "hw.ncpu",
    "hw.nperflevels",
    "hw.packages",
    "hw.pagesize",
    "hw.pagesize_compat",
    "hw.physicalcpu",
    "hw.physicalcpu_max",
    "hw.tbfrequency_compat",
    "hw.vectorunit",
    "kern.argmax",
    "kern.bootargs",
    "kern.hostname",
    "kern.maxfiles",
    "kern.maxfilesperproc",
    "kern.maxproc",
    "kern.ngroups",
    "kern.osproductversion",
    "kern.osrelease",
    "kern.ostype",
    "kern.osvariant_status",
    "kern.osversion",
    "kern.secure_kernel",
    "kern.usrstack64",
    "kern.version",
    "machdep.cpu.brand_string",
    "sysctl.proc_cputype",
    "sysctl.proc_translated",
    "vm.loadavg",
)
_SYSCTL_FAMILIES = (
    "hw.optional.arm",
    "hw.optional.armv8_",
    "hw.perflevel",
    "kern.proc.all",
    "kern.proc.pgrp.",
    "kern.proc.pid.",
    "machdep.cpu.",
)
#: Services libc asks: names of users and groups, the log, notifications, per-user directories, preferences.
_SERVICES = (
    "com.apple.bsd.dirhelper",  # SRT: confstr(_CS_DARWIN_USER_TEMP_DIR)
    "com.apple.cfprefsd.agent",  # CODEX: CFPreferences, which Foundation reads as it starts
    "com.apple.cfprefsd.daemon",  # CODEX
    "com.apple.logd",  # CHROME, SRT: os_log
    "com.apple.system.logger",  # SRT: syslog
    "com.apple.system.notification_center",  # SRT: notify(3), which libc's time zones use
    "com.apple.system.opendirectoryd.libinfo",  # CHROME crbug.com/792228, CODEX: getpwuid
    "com.apple.system.opendirectoryd.membership",  # CHROME crbug.com/1126350, SRT: getgrouplist
)
#: Device files every process may write (SRT's defaults); `ioctl` is how a program asks whether it has a terminal.
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/tty",
    "/dev/dtracehelper",
    "/dev/autofs_nowait",
    "/dev/random",
    "/dev/urandom",
)
_DESCRIPTORS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd")

#: The part of the machine a hermetic task sees: the system's volumes and their configuration.
SYSTEM = (
    "/System",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/Library/Frameworks",
    "/Library/Preferences",
    "/bin",
    "/dev",
    "/nix/store",
    "/private/etc",
    "/private/var/db/timezone",
    "/private/var/select",
    "/sbin",
    "/usr",
)
#: Links of the root, and the directories on the way, that are looked at as paths are resolved.
LINKS = ("/", "/Library", "/Library/Developer", "/etc", "/private", "/private/var", "/tmp", "/var")  # noqa: S108  a name, not a place to write

_STARTS = Origin(reason="a process needs it to start")
_OUTSIDE = Origin(reason="what is outside the workspace may be read")
_DEVICE = Origin(reason="devices that keep nothing")


def start_rules(*, hermetic: bool) -> Iterator[Rule]:
    """The rules of every task, before those of its own."""
    same = (plain("target", "'same-sandbox"),)
    # A child inherits the profile; a process of the same sandbox may be signalled and asked about (CODEX, SRT).
    yield Rule(action="allow", operations=("process-fork",), origin=_STARTS)
    yield Rule(action="allow", operations=("process-info*", "signal"), filters=same, origin=_STARTS)
    sysctls = (*each("sysctl-name", _SYSCTLS), *each("sysctl-name-prefix", _SYSCTL_FAMILIES))
    yield Rule(action="allow", operations=("sysctl-read",), filters=sysctls, origin=_STARTS)
    yield Rule(action="allow", operations=("mach-lookup",), filters=each("global-name", _SERVICES), origin=_STARTS)
    # CFPreferences reads the user's own preferences (SRT).
    yield Rule(action="allow", operations=("user-preference-read",), origin=_STARTS)
    # Python's multiprocessing needs semaphores, its shared_memory the rest (CODEX, SRT).
    yield Rule(action="allow", operations=("ipc-posix-sem", "ipc-posix-shm"), origin=_STARTS)
    # IOKit's power management asks for it as runtimes start (CODEX, SRT).
    power = (plain("iokit-registry-entry-class", "RootDomainUserClient"),)
    yield Rule(action="allow", operations=("iokit-open",), filters=power, origin=_STARTS)
    # Control sockets of the kernel reach no network (SRT).
    control = (plain("require-all", plain("socket-domain", "'AF_SYSTEM"), plain("socket-protocol", "'2")),)
    yield Rule(action="allow", operations=("system-socket",), filters=control, origin=_STARTS)
    if hermetic:
        system = (*(Below(path=path) for path in SYSTEM), *(At(path=path) for path in LINKS))
        yield Rule(action="allow", operations=(READ, EXEC), filters=system, origin=_STARTS)
    else:
        yield Rule(action="allow", operations=(READ, EXEC), origin=_OUTSIDE)


def device_rules() -> Iterator[Rule]:
    """The rules of devices that may be written without a grant, since they keep nothing."""
    every = (*(At(path=path) for path in DEVICES), *(Below(path=path) for path in _DESCRIPTORS))
    operations = (READ, "file-write-data", "file-ioctl")
    yield Rule(action="allow", operations=operations, filters=every, origin=_DEVICE)
