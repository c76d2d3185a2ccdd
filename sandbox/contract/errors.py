"""The errors the engine refuses with: each is a fact, with advice kept apart from it."""

from __future__ import annotations

import errno

#: The hint of a failure that lies with the machine, where its cause is not known yet.
ASK = "run `vxconf doctor` for the cause"

_REMEDIES = {
    errno.EMFILE: "raise the limit of open files (ulimit -n), or run fewer tasks at once",
    errno.ENFILE: "close files on this machine, or raise the sysctl fs.file-max",
    errno.EAGAIN: "raise the limit of processes (ulimit -u), or run fewer tasks at once",
    errno.ENOMEM: "free memory, raise the limit of it (ulimit -v), or run fewer tasks at once",
    errno.ENOSPC: "make room on that file system",
    errno.EDQUOT: "make room on that file system, or have the quota raised",
}


def reason_of(error: OSError) -> str:
    """The kernel's reason for an error, and the file it is about."""
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def remedy(error: BaseException) -> str:
    """The cure where the machine has run out of something; empty where that is not the cause."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else error.errno if isinstance(error, OSError) else None
    return _REMEDIES.get(number or 0, "")


class SandboxError(Exception):
    """A refusal of the engine, never the command's own failure.

    Attributes:
        message: one lowercase clause naming the thing and the place.
        hint: what to do about it, or an empty string.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """The message, with the hint on a line of its own."""
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class Unavailable(SandboxError):
    """A refusal since this machine cannot build a sandbox; nothing was run."""


class NotStarted(SandboxError):
    """A failure on the way to a sandbox; nothing of the command was run."""


class Masked(NotStarted):
    """A refusal since the kernel gives a task no `/proc` of its own where parts of this one are hidden."""


class RequestRefused(SandboxError):
    """A refusal of a config that asks for something that cannot be granted.

    Attributes:
        refusals: every reason found, in the order of the config.
    """

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        super().__init__("; ".join(r.message for r in refusals), hint=refusals[0].hint if refusals else "")
        self.refusals = refusals


class Refusal(SandboxError):
    """One reason why a grant cannot be given.

    Attributes:
        field: the field of the resolved config it comes from, such as `allowWrite[0]`; empty when no
            field is at fault.
        code: the stable diagnostic code (`VX3xx`).
    """

    def __init__(self, message: str, *, field: str = "", code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field
        self.code = code
