"""The refusals that grants to read and grants to write share, and the grants that one entry stands for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import globs, paths
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files


def spelled(entry: str, field: str) -> list[str]:
    """Each grant that an entry of the config stands for, its braces expanded.

    Raises:
        Refusal: the entry names no path at all, or stands for too many.
    """
    problem = unusable(entry, field)
    if problem is not None:
        raise problem
    return [globs.collapse(grant) for grant in globs.expand_braces(entry)]


def unusable(grant: str, field: str) -> Refusal | None:
    """The reason why a grant's text names no path at all."""
    if "\0" in grant:
        return Refusal(
            f"grant {grant!r} holds a NUL character, which no path can",
            field=field,
            code=refusal_codes.UNUSABLE,
            hint="remove the character",
        )
    if not grant.startswith("/"):
        return Refusal(
            f'grant "{grant}" is not absolute',
            field=field,
            code=refusal_codes.UNUSABLE,
            hint="resolve the config before it is run",
        )
    return None


def is_others_temporary(path: str, temp_root: str, workspace: str) -> bool:
    """Whether a path is among tasks' temporary directories, and in no workspace that lies there too."""
    if not paths.at_or_under(path, temp_root):
        return False
    return not (paths.at_or_under(workspace, temp_root) and paths.at_or_under(path, workspace))


def others_temporary(what: str, temp_root: str, field: str) -> Refusal:
    """The refusal of a grant that would open other tasks' temporary directories."""
    return Refusal(
        f"{what} lies in the directory of all tasks' temporary directories {temp_root}",
        field=field,
        code=refusal_codes.WALLED,
        hint="use $TMPDIR, which every task has to itself",
    )


def not_canonical(grant: str, path: str, field: str, files: Files) -> Refusal:
    """The refusal of a grant that a link leads elsewhere by now: following it would move the grant."""
    met = paths.links_on(path, files)
    where = f"the link {met[0][0]}" if met else "a loop of links"
    if not met and paths.normal(path) != path:
        where = "a component that is not plain"
    return Refusal(
        f'grant "{grant}" passes through {where}',
        field=field,
        code=refusal_codes.MOVED,
        hint="resolve the config again",
    )


def placed(refusal: Refusal, field: str) -> Refusal:
    """The same refusal, with the field it comes from."""
    return Refusal(refusal.message, field=field, code=refusal.code, hint=refusal.hint)
