"""EFFECT: descriptors that the warden opened, handed to the callers that asked for them."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

from sandbox.linux.kernel import seccomp_notification

if TYPE_CHECKING:
    from sandbox.linux.names.read_call import HandedDescriptor


def handed_in(listener: int, unique: int, handed: HandedDescriptor) -> bytes:
    """Give a caller a descriptor; the answer that then ends its call.

    The caller stands still until that answer, and this process has let go of the file by then. Otherwise it would be
    open for writing a moment longer than its caller has it: a program that was just written could not be executed
    (ETXTBSY), and a lock would outlive its holder.
    """
    record = seccomp_notification.descriptor(unique, handed.fd, handed.flags)
    try:
        number = fcntl.ioctl(listener, seccomp_notification.ADD_DESCRIPTOR, bytearray(record))
    except OSError as error:  # the caller may have no descriptor left (EMFILE), or be gone
        return seccomp_notification.fail(unique, error.errno or errno.EIO)
    finally:
        os.close(handed.fd)
    return seccomp_notification.value(unique, number)
