"""The tasks that a task's cache key folds, and the projects the key answers for.

A group has no cache key, and a key folds what the group names. A task without a cache has no key either: a key stops
there and folds neither that task nor what it depends on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.contract.errors import Refusal
from sandbox.request.task_outputs import Declared, anchored
from vxconf.resolve.judge_block import UpstreamTasks

if TYPE_CHECKING:
    from vxconf.workspace.project import Task
    from vxconf.workspace.task_graph import TaskGraph


def keyed_tasks(graph: TaskGraph, task: Task) -> tuple[Task, ...]:
    """The tasks with a cache whose keys the key of a task includes, nearest first; none for one without a cache."""
    if task.model is None or task.model.cache is None:
        return ()
    # a task that runs without a cache ends the search; a group only leads on to others
    keyed = graph.before(task, through=lambda model: model.exec is None or model.cache is not None)
    return tuple(other for other in keyed if other.model is not None and other.model.exec is not None)


def keyed_projects(graph: TaskGraph, task: Task) -> frozenset[str] | None:
    """The directories of the projects a task's cache key answers for; `None` for a task without a cache key.

    A server has no key either: it runs on after the key was made.
    """
    model = task.model
    if model is None or model.cache is None or (model.exec is not None and model.exec.persistent is not None):
        return None
    return frozenset(other.project.directory for other in keyed_tasks(graph, task))


def upstream_of(graph: TaskGraph, task: Task) -> UpstreamTasks:
    """The outputs of the tasks before a task, and the projects its cache key answers for."""
    return UpstreamTasks(
        keyed=keyed_projects(graph, task),
        made=tuple((other.project.directory, other.output_files) for other in keyed_tasks(graph, task)),
        declared=Declared(
            own=anchored(task.project.directory, task.output_files),
            upstream=tuple(
                (one.id, anchored(one.project.directory, one.output_files)) for one in graph.makers_before(task)
            ),
            inputs=_input_patterns(task),
        ),
    )


def _input_patterns(task: Task) -> tuple[str, ...]:
    """The patterns of the files in a task's own cache key."""
    cache = task.model.cache if task.model is not None else None
    if cache is None:
        return ()
    try:
        return (
            *anchored(task.project.directory, cache.input_files),
            *anchored(task.project.workspace.root, cache.input_workspace_files),
        )
    except Refusal:  # braces that stand for too many patterns: an input is then told once more
        return ()
