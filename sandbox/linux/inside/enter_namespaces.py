"""EFFECT: enters the namespaces that bubblewrap made, and makes the pid namespace, which it did not make."""

from __future__ import annotations

import os

from sandbox.linux.kernel import kernel_calls


def enter(inside: int, *, fuse: bool) -> tuple[int, int | OSError]:
    """Enter every namespace of a process but its inner user namespace, and make a pid namespace.

    Args:
        inside: a process of bubblewrap's, as the host numbers it.
        fuse: whether to open `/dev/fuse` on the way.

    Returns:
        The descriptor of the inner user namespace, and that of `/dev/fuse` or why it cannot be opened.
    """
    descriptors = {
        name: os.open(f"/proc/{inside}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        for name in ("net", "ipc", "uts", "cgroup", "mnt")
    }
    inner = os.open(f"/proc/{inside}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    outer = kernel_calls.owning_user_namespace(descriptors["mnt"])
    kernel_calls.setns(outer, "user")
    device: int | OSError = OSError("not asked for")
    if fuse:
        try:
            # a FUSE mount needs a device opened in its own user namespace (fs/fuse/inode.c, fuse_fill_super)
            device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            device = error
    for name in ("net", "ipc", "uts", "cgroup", "mnt"):
        kernel_calls.setns(descriptors[name], name)
        os.close(descriptors[name])
    os.close(outer)
    kernel_calls.unshare("pid")
    return inner, device
