from __future__ import annotations

import pytest

from sandbox.base.known_sockets import asked_everywhere, control


@pytest.mark.parametrize(
    ("path", "behind"),
    [
        ("/run/docker.sock", "Docker"),
        ("/var/run/docker.sock", "Docker"),
        ("/run/user/1000/docker.sock", "Docker"),
        ("/home/mel/.docker/run/docker.sock", "Docker"),
        ("/home/mel/.docker/desktop/docker.sock", "Docker"),
        ("/run/docker/containerd/containerd.sock", "container daemon"),
        ("/run/containerd/containerd.sock", "container daemon"),
        ("/run/podman/podman.sock", "Podman"),
        ("/run/user/1000/podman/podman.sock", "Podman"),
        ("/run/buildkit/buildkitd.sock", "container daemon"),
        ("/var/snap/lxd/common/lxd/unix.socket", "container daemon"),
        ("/run/libvirt/libvirt-sock", "virtual machines"),
        ("/tmp/ssh-XXXXab12/agent.4242", "SSH agent"),
        ("/run/user/1000/openssh_agent", "SSH agent"),
        ("/run/user/1000/keyring/ssh", "SSH agent"),
        ("/run/user/1000/gnupg/S.gpg-agent.ssh", "SSH agent"),
        ("/private/tmp/com.apple.launchd.Ab12/Listeners", "SSH agent"),
        ("/run/user/1000/gnupg/S.gpg-agent", "GnuPG"),
        ("/run/user/1000/gnupg/d.abc/S.gpg-agent.extra", "GnuPG"),
        ("/home/mel/.gnupg/S.keyboxd", "GnuPG"),
        ("/run/user/1000/keyring/control", "keyring"),
        ("/run/user/1000/bus", "D-Bus"),
        ("/run/dbus/system_bus_socket", "D-Bus"),
        ("/tmp/dbus-Ab12", "D-Bus"),
        ("/run/user/1000/systemd/private", "systemd"),
        ("/run/systemd/private", "systemd"),
        ("/tmp/.X11-unix/X0", "X server"),
        ("/run/user/1000/wayland-0", "Wayland"),
        ("/run/user/1000/pipewire-0", "sound"),
        ("/tmp/tmux-1000/default", "multiplexer"),
        ("/run/user/1000/vscode-ipc-1.sock", "editor"),
        ("/run/snapd.socket", "snapd"),
    ],
)
def test_a_socket_that_commands_the_host_is_known_by_its_place(path: str, behind: str) -> None:
    assert behind in (control(path) or "")
    assert not asked_everywhere(path)


@pytest.mark.parametrize(
    "path",
    ["/run/postgresql/.s.PGSQL.5432", "/srv/app.sock", "/ws/docker.sock.d/x", "/run/mysqld/mysqld.sock", "/run/busy"],
)
def test_any_other_socket_is_just_a_socket(path: str) -> None:
    assert control(path) is None
    assert not asked_everywhere(path)


@pytest.mark.parametrize(
    "path",
    [
        "/var/run/nscd/socket",
        "/run/nscd/socket",
        "/run/systemd/userdb/io.systemd.DynamicUser",
        "/var/lib/sss/pipes/nss",
    ],
)
def test_what_look_ups_ask_is_known_too(path: str) -> None:
    assert asked_everywhere(path)
    assert control(path) is None
