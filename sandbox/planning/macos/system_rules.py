"""The rules every process on macOS needs to start, and those for a block's other fields. Pure.

Nothing here was tried on a Mac. Each entry names another project that needs it, in public:

- CHROME: Chromium's `sandbox/policy/mac/common.sb`, which lists what any process touches as it starts.
- CODEX: OpenAI Codex's `codex-rs/sandboxing/src/seatbelt_base_policy.sbpl`, for commands of developers.
- SRT: Anthropic's sandbox-runtime, `src/sandbox/macos-sandbox-utils.ts`, likewise.

Left out on purpose: LaunchServices, Apple Events and `coreservicesd`, through which a task would have a program started
outside its walls; `lsopen`; the keychain (`securityd`); the pasteboard.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal
from sandbox.planning.macos.profile_rules import EXEC, READ, WRITE, At, Below, Expression, Filter, Plain, Rule
from sandbox.planning.operations import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.contract.config import ResolvedSandboxConfig

_NAME = re.compile(r"[A-Za-z0-9._-]+")

CONFIGURATION = "com.apple.SystemConfiguration.configd"
TRUST = "com.apple.trustd.agent"

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
# The kernel marks terminals the task makes itself, so that none of the user's is opened for writing (CODEX).
_TERMINALS = "^/dev/ttys[0-9]+$"
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
_OTHERS = Origin(reason="other windows' terminals stay theirs")
_DEVICE = Origin(reason="devices that keep nothing")
_PTY = Origin(field="pty")
_PROXY = Origin(reason="the task's own proxy, which has the network's lists")


def _plain(*words: str | Plain) -> Plain:
    return Plain(words=words)


def _each(name: str, values: Iterable[str]) -> tuple[Filter, ...]:
    return tuple(_plain(name, value) for value in values)


def start(*, hermetic: bool) -> Iterator[Rule]:
    """The rules of every task, before those of its own."""
    same = (_plain("target", "'same-sandbox"),)
    # A child inherits the profile; a process of the same sandbox may be signalled and asked about (CODEX, SRT).
    yield Rule(action="allow", operations=("process-fork",), origin=_STARTS)
    yield Rule(action="allow", operations=("process-info*", "signal"), filters=same, origin=_STARTS)
    sysctls = (*_each("sysctl-name", _SYSCTLS), *_each("sysctl-name-prefix", _SYSCTL_FAMILIES))
    yield Rule(action="allow", operations=("sysctl-read",), filters=sysctls, origin=_STARTS)
    yield Rule(action="allow", operations=("mach-lookup",), filters=_each("global-name", _SERVICES), origin=_STARTS)
    # CFPreferences reads the user's own preferences (SRT).
    yield Rule(action="allow", operations=("user-preference-read",), origin=_STARTS)
    # Python's multiprocessing needs semaphores, its shared_memory the rest (CODEX, SRT).
    yield Rule(action="allow", operations=("ipc-posix-sem", "ipc-posix-shm"), origin=_STARTS)
    # IOKit's power management asks for it as runtimes start (CODEX, SRT).
    power = (_plain("iokit-registry-entry-class", "RootDomainUserClient"),)
    yield Rule(action="allow", operations=("iokit-open",), filters=power, origin=_STARTS)
    # Control sockets of the kernel reach no network (SRT).
    control = (_plain("require-all", _plain("socket-domain", "'AF_SYSTEM"), _plain("socket-protocol", "'2")),)
    yield Rule(action="allow", operations=("system-socket",), filters=control, origin=_STARTS)
    if hermetic:
        system = (*(Below(path=path) for path in SYSTEM), *(At(path=path) for path in LINKS))
        yield Rule(action="allow", operations=(READ, EXEC), filters=system, origin=_STARTS)
    else:
        yield Rule(action="allow", operations=(READ, EXEC), origin=_OUTSIDE)
    # One /dev is there for all: keys typed in another window are nobody else's.
    every = (Expression(text=_TERMINALS, about="terminals"),)
    yield Rule(action="deny", operations=("file-read-data",), filters=every, origin=_OTHERS)


def devices() -> Iterator[Rule]:
    """The rules of devices that may be written without a grant, since they keep nothing."""
    every = (*(At(path=path) for path in DEVICES), *(Below(path=path) for path in _DESCRIPTORS))
    operations = (READ, "file-write-data", "file-ioctl")
    yield Rule(action="allow", operations=operations, filters=every, origin=_DEVICE)


def own(
    config: ResolvedSandboxConfig, *, ports: tuple[int, ...], reached: tuple[int, ...], sockets: Iterable[str]
) -> Iterator[Rule]:
    """The rules of the block's fields that are no paths of files.

    Args:
        config: the grants.
        ports: on which the task's own proxy listens; none before it does.
        reached: the host's loopback ports that are granted.
        sockets: directories and files in which sockets are the task's own.
    """
    if ports:
        # `localhost` is both 127.0.0.1 and ::1.
        yield _network("network-outbound", "remote", (f"localhost:{port}" for port in ports), _PROXY)
    listed = Origin(field="network")
    if reached:
        yield _network("network-outbound", "remote", (f"localhost:{port}" for port in reached), listed)
    if reached or config.network is not None:
        # curl, and programs built on it, ask for the proxy settings before they dial.
        yield _lookup((CONFIGURATION,), "network")
    if config.local_binding:
        # A server whose runtime opens both kinds of IP at once binds `::ffff:127.0.0.1`, which no filter names.
        binding = Origin(field="localBinding")
        yield _network("network-bind", "local", ("*:*",), binding)
        yield _network("network-inbound", "local", ("*:*",), binding)
        yield _network("network-outbound", "remote", ("localhost:*",), binding)
    yield from _unix(config, tuple(sockets))
    for index, name in enumerate(config.system_info):
        origin = Origin(field=f"systemInfo[{index}]")
        yield Rule(action="allow", operations=("system-info",), filters=(_plain("info-type", name),), origin=origin)
        yield Rule(action="allow", operations=("sysctl-read",), filters=(_plain("sysctl-name", name),), origin=origin)
    for index, name in enumerate(config.mach_lookup):
        yield _lookup((name,), f"machLookup[{index}]")
    if config.weaker_network_isolation:
        yield _lookup((TRUST,), "weakerNetworkIsolation")
    if config.pty:
        made = _plain("require-all", _plain("regex", _TERMINALS), _plain("extension", "com.apple.sandbox.pty"))
        terminals = (At(path="/dev/ptmx"), made)
        yield Rule(action="allow", operations=("pseudo-tty",), origin=_PTY)
        yield Rule(action="allow", operations=(READ, WRITE, "file-ioctl"), filters=terminals, origin=_PTY)
        # The task's own terminal is made outside and has no such mark; it is inherited open, and programs ask what it
        # is.
        every = (Expression(text=_TERMINALS, about="terminals"),)
        yield Rule(action="allow", operations=("file-ioctl",), filters=every, origin=_PTY)


def _network(operation: str, end: str, addresses: Iterable[str], origin: Origin) -> Rule:
    filters = tuple(_plain(end, "'ip", address) for address in addresses)
    return Rule(action="allow", operations=(operation,), filters=filters, origin=origin)


def _lookup(names: tuple[str, ...], field: str) -> Rule:
    filters = _each("global-name", names)
    return Rule(action="allow", operations=("mach-lookup",), filters=filters, origin=Origin(field=field))


def _unix(config: ResolvedSandboxConfig, mine: tuple[str, ...]) -> Iterator[Rule]:
    family = (_plain("socket-domain", "'AF_UNIX"),)
    made = Origin(reason="sockets of the task's own making")
    yield Rule(action="allow", operations=("system-socket",), filters=family, origin=made)
    for path in mine:
        yield from _sockets(_plain("subpath", path), made)
    if config.unix_sockets is True:
        yield from _sockets(_plain("path-regex", "^/"), Origin(field="unixSockets"))
    else:
        for index, path in enumerate(config.unix_sockets or ()):
            yield from _sockets(_plain("literal", path), Origin(field=f"unixSockets[{index}]"))


def _sockets(path: Plain, origin: Origin) -> Iterator[Rule]:
    for operation, end in (("network-bind", "local"), ("network-outbound", "remote")):
        where = (_plain(end, _plain("unix-socket", path)),)
        yield Rule(action="allow", operations=(operation,), filters=where, origin=origin)


def unusable(config: ResolvedSandboxConfig) -> Iterator[Refusal]:
    """Names that no service and no sysctl can have."""
    for field, names in (("systemInfo", config.system_info), ("machLookup", config.mach_lookup)):
        for index, name in enumerate(names):
            if not _NAME.fullmatch(name):
                yield Refusal(
                    f"{field} {name!r} is no name of macOS's",
                    field=f"{field}[{index}]",
                    code=refusal_codes.UNUSABLE,
                    hint="write the name alone: letters, digits, dots, - and _",
                )
