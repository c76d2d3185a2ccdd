"""The causes for which a second attempt is made: strace failed under the first, or nothing of the command ran."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from sandbox.linux.warden_messages import LOST

if TYPE_CHECKING:
    from sandbox.linux.warden_messages import Failed, Finished


def tracer_failed(finished: Finished | None) -> bool:
    """Whether strace itself failed under an attempt, which tells nothing of the command then."""
    if finished is None or finished.timed_out:
        return False
    # Without a tracer the kernel answers a call that the filter hands to one with ENOSYS (seccomp(2),
    # SECCOMP_RET_TRACE). The command's own execution is such a call.
    unexecuted = bool(finished.incomplete) and finished.exec_errno == errno.ENOSYS
    return unexecuted or finished.incomplete == LOST


def nothing_ran(failed: Failed | None) -> bool:
    """Whether a mount or a file vanished while it was being bound, so that nothing of the command ran."""
    return failed is not None and failed.transient
