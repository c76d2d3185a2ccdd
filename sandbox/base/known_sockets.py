"""Well-known sockets of a host: those that command the host, and those every program asks. Pure.

A path is canonical, or one of the usual spellings of it.
"""

from __future__ import annotations

import re

_USER = r"(?:/var)?/run/user/[0-9]+"
_TMP = r"(?:/private)?(?:/var)?/tmp"

#: The programs behind sockets, by the pattern of the whole path; the first pattern that matches counts.
_CONTROLS = (
    (r".*/docker(?:-[^/]*|/[^/]*|\.raw)?\.sock", "the Docker daemon, which starts anything as root"),
    (r".*/(?:containerd(?:/[^/]*)?|crio(?:/[^/]*)?|buildkitd?)\.sock(?:\.ttrpc)?", "a container daemon of the host's"),
    (r".*/buildkit/[^/]*\.sock", "a container daemon of the host's"),
    (r".*/podman[^/]*(?:/[^/]*)?\.sock", "Podman, which starts anything as this user"),
    (r".*/(?:lxd|incus)/(?:[^/]*/)*unix\.socket", "a container daemon of the host's"),
    (r".*/libvirt/[^/]*sock[^/]*", "the host's virtual machines"),
    (r".*/gnupg/(?:[^/]*/)*S\.gpg-agent\.ssh", "the SSH agent, which signs with this user's keys"),
    (r".*/(?:\.gnupg|gnupg/(?:[^/]*/)*)/?S\.[^/]+", "GnuPG's agent, which signs and decrypts with this user's keys"),
    (rf"{_TMP}/ssh-[^/]+/agent\.[0-9]+", "the SSH agent, which signs with this user's keys"),
    (
        r".*/(?:ssh-agent|openssh_agent|keyring/ssh|\.1password/agent|\.ssh/agent)[^/]*",
        "the SSH agent, which signs with this user's keys",
    ),
    (r".*/com\.apple\.launchd\.[^/]+/Listeners", "the SSH agent, which signs with this user's keys"),
    (rf"{_USER}/keyring/.*", "the keyring, which holds this user's passwords"),
    (
        rf"(?:.*/dbus/system_bus_socket|{_USER}/bus|{_USER}/dbus-[^/]*/[^/]*|{_TMP}/dbus-[^/]*)",
        "D-Bus, whose services start programs and read files outside",
    ),
    (
        rf"(?:/run/systemd/private|{_USER}/systemd/.*|/run/systemd/io\.system[^/]*)",
        "systemd, which starts anything outside",
    ),
    (rf"{_TMP}/\.X11-unix/X[0-9]+", "the X server, which sees and types every key of this user's session"),
    (rf"{_USER}/wayland-[^/]*", "the Wayland compositor of this user's session"),
    (rf"{_USER}/(?:pipewire-[^/]*|pulse/native)", "the sound server, which hears the microphone"),
    (
        rf"(?:{_TMP}/tmux-[0-9]+/.*|(?:/var)?/run/screen/.*)",
        "a terminal multiplexer, which types into this user's shells",
    ),
    (rf"(?:{_USER}|{_TMP})/vscode-(?:ipc|git)-[^/]*", "an editor that runs commands outside"),
    (r"(?:/var)?/run/snapd(?:-snap)?\.socket", "snapd, which installs programs"),
)

#: Sockets asked at every look-up of a user or a host, by libraries that go on without an answer: a refusal is no news.
_ASKED = (
    r"(?:/var)?/run/(?:nscd|nslcd)/[^/]*",
    r"(?:/var)?/run/systemd/(?:userdb|resolve|resolve\.hook)/.*",
    r"(?:/var)?/run/systemd/journal/[^/]*",
    r"(?:/var)?/run/avahi-daemon/socket",
    r"/var/lib/sss/pipes/.*",
    r"/dev/log",
)


def control(path: str) -> str | None:
    """The power a socket gives, as a noun phrase for people; `None` for a socket not known to command anything."""
    return next((what for pattern, what in _CONTROLS if re.fullmatch(pattern, path)), None)


def asked_everywhere(path: str) -> bool:
    """Whether the system's own libraries connect to a socket by themselves, and do without an answer."""
    return any(re.fullmatch(pattern, path) for pattern in _ASKED)
