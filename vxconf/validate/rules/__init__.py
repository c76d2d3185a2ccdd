"""The rules across fields: one function each, in one tuple, run after the schema.

A rule takes a `FileView` and yields findings. Values of the wrong type are not in the view: they are the schema's
findings, and one mistake is reported once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vxconf.validate.rules import env_rules, literal_rules, sandbox_rules, task_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vxconf.validate.finding import Finding
    from vxconf.validate.rules.well_typed_view import FileView

RULES: tuple[Callable[[FileView], Iterator[Finding]], ...] = (
    task_rules.cache_on_persistent,
    task_rules.ready_output,
    task_rules.malformed_reference,
    task_rules.self_dependency,
    task_rules.unknown_task,
    task_rules.duplicate_reference,
    task_rules.dependency_cycle,
    task_rules.absolute_cache_path,
    env_rules.variable_name,
    env_rules.defined_and_passed,
    env_rules.reserved_variable,
    env_rules.nul,
    sandbox_rules.host_pattern,
    sandbox_rules.allowed_and_denied,
    sandbox_rules.unbalanced_pattern,
    sandbox_rules.taken_back,
    sandbox_rules.write_to_everything,
    sandbox_rules.system_name,
    sandbox_rules.socket_path,
    sandbox_rules.no_effect,
    sandbox_rules.weaker,
    literal_rules.taken_literally,
    literal_rules.brackets_of_routes,
)
