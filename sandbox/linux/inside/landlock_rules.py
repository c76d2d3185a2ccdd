"""EFFECT: the Landlock rules of a task, made in its finished tree: the mounts' second wall."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox.linux.inside.carry_out_mounts import Vanished
from sandbox.linux.kernel import kernel_calls, landlock
from sandbox.planning.writable_places import writable_places

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox.planning.operations import Operation
    from sandbox.planning.writable_places import Changes

_RIGHTS: dict[Changes, int] = {
    "everything": landlock.EVERYTHING,
    "contents": landlock.CONTENTS,
    "names": landlock.NAMES,
}


def prepare(known: int, operations: Iterable[Operation], *, masked: bool, answered: bool) -> landlock.Ruleset:
    """The rules of a task whose mounts stand; none where the kernel has no Landlock that is of use.

    Args:
        known: the kernel's version of Landlock.
        operations: the plan.
        masked: whether a mask stands.
        answered: whether the warden answers the task's calls.

    Raises:
        Vanished: a place of the plan is gone from the tree, or a link leads to it by now.
    """
    if known < landlock.USABLE:
        return landlock.Ruleset(0, -1)
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    held: list[int] = [root]
    try:
        rules: list[tuple[int, int]] = []
        for path, changes in writable_places(operations, masked=masked, answered=answered):
            try:
                held.append(kernel_calls.open_beneath(root, path.lstrip("/"), os.O_PATH))
            except OSError as error:
                raise Vanished(error.errno, error.strerror, path) from error
            rules.append((held[-1], _RIGHTS[changes]))
        return landlock.ruleset(known, rules)
    finally:
        for fd in held:
            os.close(fd)


def rehearse() -> None:
    """Run the code of `prepare` with the rules of no task, which hold nobody."""
    rules = prepare(landlock.version(), (), masked=False, answered=False)
    if rules.version:
        os.close(rules.descriptor)
