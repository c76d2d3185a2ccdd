from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vxconf.run.schedule import Cycle, schedule


@dataclass(frozen=True)
class Node:
    id: str


_NODES = [Node(str(number)) for number in range(8)]
_GRAPHS = st.fixed_dictionaries({node: st.lists(st.sampled_from(_NODES), max_size=3) for node in _NODES})


def reachable(graph: dict[Node, list[Node]], asked: list[Node]) -> set[Node]:
    found: set[Node] = set()
    todo = list(asked)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += graph[node]
    return found


@given(_GRAPHS, st.lists(st.sampled_from(_NODES), max_size=4))
def test_each_comes_once_after_what_it_refers_to_or_there_is_a_cycle(
    graph: dict[Node, list[Node]], asked: list[Node]
) -> None:
    needed = reachable(graph, asked)
    circular = any(node in reachable(graph, graph[node]) for node in needed)
    if circular:
        with pytest.raises(Cycle) as found:
            schedule(asked, lambda node: graph[node])
        circle = found.value.ids
        assert circle[0] == circle[-1]
        assert all(Node(other) in graph[Node(one)] for one, other in itertools.pairwise(circle))
        return
    steps = schedule(asked, lambda node: graph[node])
    places = {step.task: place for place, step in enumerate(steps)}
    assert set(places) == needed
    assert len(places) == len(steps)
    for step in steps:
        assert set(step.after) == {node.id for node in graph[step.task]}
        assert all(places[other] < places[step.task] for other in graph[step.task])
        assert step.asked == (step.task in asked)


def test_a_chain_longer_than_the_interpreters_stack_is_ordered() -> None:
    steps = schedule([Node("9999")], lambda node: [Node(str(int(node.id) - 1))] if node.id != "0" else [])
    assert [step.task.id for step in steps] == [str(number) for number in range(10_000)]


def test_a_task_that_waits_for_itself_is_a_cycle() -> None:
    with pytest.raises(Cycle, match="a -> a is a cycle"):
        schedule([Node("a")], lambda node: [node])
