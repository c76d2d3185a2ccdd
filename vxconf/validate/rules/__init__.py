"""Rules across fields: one small function each, in one tuple, run after the schema.

A rule sees a `FileView` and yields findings. It looks only at values of the right type, so that one
mistake is said once: by the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.validate.rules import env_rules as environment
from vxconf.validate.rules import sandbox_rules as sandbox
from vxconf.validate.rules import task_rules as tasks
from vxconf.validate.rules.view import FileView, view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.validate.finding import Finding

__all__ = ["RULES", "FileView", "view"]


RULES: tuple[Callable[[FileView], Iterator[Finding]], ...] = (
    tasks.cache_on_persistent,
    tasks.ready_output,
    tasks.malformed_reference,
    tasks.self_dependency,
    tasks.unknown_task,
    tasks.duplicate_reference,
    tasks.dependency_cycle,
    tasks.absolute_cache_path,
    environment.variable_name,
    environment.defined_and_passed,
    environment.reserved_variable,
    environment.nul,
    sandbox.host_pattern,
    sandbox.allowed_and_denied,
    sandbox.unbalanced_pattern,
    sandbox.write_to_everything,
    sandbox.system_name,
    sandbox.socket_path,
    sandbox.no_effect,
    sandbox.weaker,
)
