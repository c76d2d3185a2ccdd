"""The reasons why a machine refuses user namespaces, from what it says of itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass

EPERM = 1
EINVAL = 22
ENOSPC = 28
ENOSYS = 38
EUSERS = 87

_SETFCAP = 1 << 31

#: Settings that refuse user namespaces: the file, the value, the cause, and the cure.
_SETTINGS = (
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0", "user.max_user_namespaces=10000"),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone is 0",
        "kernel.unprivileged_userns_clone=1",
    ),
)
APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
#: The files whose text `NamespaceFacts.settings` holds.
SETTINGS = (*(path for path, *_ in _SETTINGS), APPARMOR)
_BY_ROOT_TOO = "/proc/sys/user/max_user_namespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceFacts:
    """The answers of a machine about user namespaces (user_namespaces(7)).

    Attributes:
        user: this process's.
        settings: the text of each of `SETTINGS` that there is.
        made: the errno of making a user namespace, 0 when it was made.
        mapped: the errno of giving it this user, 0 when that was done or never tried.
        ruled: the errno of mounting in it, 0 when that was done or never tried.
        filtered: whether a system call filter is above this process.
        profile: the AppArmor profile this process is under, empty without one.
        capabilities: this process's effective ones, as a bit mask.
    """

    user: int
    settings: dict[str, str]
    made: int = 0
    mapped: int = 0
    ruled: int = 0
    filtered: bool = False
    profile: str = ""
    capabilities: int = 0


def refusal(said: NamespaceFacts) -> tuple[str, str]:
    """The cause and the cure where bubblewrap gets no user namespace it can build in; empty where no cause is known."""
    for path, bad, cause, setting in _SETTINGS:
        if said.settings.get(path) == bad and (said.user != 0 or path == _BY_ROOT_TOO):
            return cause, f"sysctl {setting}"
    if said.made in _NUMBERS and not (said.filtered and said.made in (EINVAL, ENOSYS)):
        return _NUMBERS[said.made]
    if said.mapped and said.user == 0 and not said.capabilities & _SETFCAP:
        return _WITHOUT_SETFCAP
    if said.made or said.mapped or said.ruled:
        return _by_a_module(said)
    return "", ""


_NUMBERS = {
    ENOSPC: (
        "no more user namespaces may be made here: a limit of this user namespace or of one around it is reached",
        "sysctl user.max_user_namespaces=10000, outside the container too",
    ),
    EUSERS: ("user namespaces are nested as deep as the kernel lets them", "run outside of one of them"),
    **dict.fromkeys(
        (EINVAL, ENOSYS), ("this kernel was built without user namespaces", "use a kernel with CONFIG_USER_NS")
    ),
}
_WITHOUT_SETFCAP = (
    "root lacks the capability SETFCAP here, without which no user namespace may hold user 0",
    "run as an ordinary user, or start the container with --cap-add SETFCAP",
)


def _by_a_module(said: NamespaceFacts) -> tuple[str, str]:
    # A filter refuses the call that makes a namespace. A refusal inside a namespace that was made is rather a security
    # module's.
    if said.filtered and said.made:
        return _FILTER
    if said.settings.get(APPARMOR) == "1" and said.user != 0:
        return _RESTRICTED
    if said.profile:
        cause = f"the AppArmor profile {said.profile} lets nobody make a user namespace, or build in it"
        return cause, "start the container with --security-opt apparmor=unconfined"
    return _FILTER if said.filtered else _UNKNOWN


_FILTER = (
    "a system call filter above this process refuses what makes a user namespace or builds in it, as containers' do",
    "start the container with --security-opt seccomp=unconfined, or a profile that lets clone, unshare and mount pass",
)
_RESTRICTED = (
    "AppArmor keeps user namespaces from programs without a profile (Ubuntu 23.10 and later)",
    "give bwrap an AppArmor profile with `userns,`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
)
_UNKNOWN = (
    "the kernel refuses user namespaces to this process: its root was changed (chroot), or a security module says so",
    "run it outside the chroot, or look into the kernel's log for the rule",
)
