"""The refusals of a config for its place: a machine, workspace or project that is another, too wide or gone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths
from sandbox.base.host_facts import Kind
from sandbox.contract import refusal_codes
from sandbox.contract.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig


def misplaced(config: ResolvedSandboxConfig, root: str, facts: HostFacts, files: Files) -> Iterator[Refusal]:
    """Every reason why a config cannot be used here.

    Args:
        config: the grants.
        root: the workspace root, canonical.
        facts: what is known of the machine.
        files: the host's file system.
    """
    if config.platform != facts.platform:
        yield Refusal(
            f"the config was resolved for {config.platform} and this machine is {facts.platform}",
            field="platform",
            code=refusal_codes.PLATFORM,
            hint="resolve the config on this machine",
        )
    yield from _elsewhere(config, root)
    yield from _too_wide(root, facts)
    if "\0" in config.project:
        yield Refusal(
            f"the project directory {config.project!r} holds a NUL character",
            field="project",
            code=refusal_codes.UNUSABLE,
            hint="remove the character",
        )
        return
    yield from _outside(config, root)
    yield from _gone(config, files)


def moved(config: ResolvedSandboxConfig, root: str, files: Files) -> Iterator[Refusal]:
    """The reasons the file system may give after a config was judged.

    The workspace or the project may have been moved, or replaced by a link.
    """
    yield from _elsewhere(config, root)
    yield from _gone(config, files)


def _elsewhere(config: ResolvedSandboxConfig, root: str) -> Iterator[Refusal]:
    if config.workspace != root:
        yield Refusal(
            f"the config was resolved in the workspace {config.workspace} and is run in {root}",
            field="workspace",
            code=refusal_codes.MOVED,
            hint="resolve the config again",
        )


def _too_wide(root: str, facts: HostFacts) -> Iterator[Refusal]:
    for place, what in (("/", "the file system's root"), (facts.home, "the home directory")):
        if paths.at_or_under(place, root):
            yield Refusal(
                f"the workspace root {root} {'is' if root == place else 'holds'} {what}",
                field="workspace",
                code=refusal_codes.WORKSPACE_TOO_WIDE,
                hint="mark a directory below it as the workspace with .vx/workspace.toml",
            )
            return


def _outside(config: ResolvedSandboxConfig, root: str) -> Iterator[Refusal]:
    if not paths.at_or_under(config.project, root):
        yield Refusal(
            f"the project {config.project} is outside the workspace {root}",
            field="project",
            code=refusal_codes.MOVED,
            hint="run the task from the workspace its project is in",
        )
    if config.platform == "linux" and paths.at_or_under(config.project, "/dev"):
        yield Refusal(
            f"the project {config.project} is under /dev, which every sandbox has its own of",
            field="project",
            code=refusal_codes.UNDER_DEV,
            hint="move the project to another directory",
        )


def _gone(config: ResolvedSandboxConfig, files: Files) -> Iterator[Refusal]:
    if paths.canonical(config.project, files) != config.project or files.kind(config.project) is not Kind.DIRECTORY:
        yield Refusal(
            f"the project {config.project} is no longer a directory",
            field="project",
            code=refusal_codes.MOVED,
            hint="resolve the config again",
        )
