"""The limits of this kernel that runs of one session learned; later runs do without until they are forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.contract.errors import Masked

#: The cure where parts of `/proc` are hidden.
UNMASK = (
    "start the container with an unmasked /proc (Docker: --security-opt systempaths=unconfined; Kubernetes: procMount: "
    "Unmasked), or set weakerWhenNested = true in the task's sandbox, which then shows this /proc, read-only"
)


@dataclass(slots=True)
class LearnedKernelLimits:
    """Features the kernel turned out not to give.

    Attributes:
        unheard: why the kernel gives a filter no listener, empty where it does.
        unfused: why `/dev/fuse`, which can be opened, is of no use; empty where it is.
        masked: why the kernel gives a task no `/proc` of its own, empty where it does.
    """

    unheard: str = ""
    masked: str = ""
    unfused: str = ""

    def forget(self) -> None:
        """Forget everything, so that the next run finds out anew."""
        self.unheard = self.masked = self.unfused = ""


def masked(said: str) -> Masked:
    """The refusal of a sandbox with a `/proc` of its own.

    Args:
        said: the kernel's or bubblewrap's own words.
    """
    why = "the kernel gives a task no /proc of its own where parts of this one are hidden, as containers hide them"
    return Masked(f"{why} ({said})" if said else why, hint=UNMASK)
