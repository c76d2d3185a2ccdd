"""The ports that a task opens to the host."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.proxy.policy.published_ports import published_ports


@pytest.mark.parametrize(("given", "expected"), [((8000, 8001, 8000), (8000, 8001)), (True, ()), (False, ())])
def test_ports_are_published_once_and_only_from_a_list(given: Any, expected: tuple[int, ...]) -> None:
    config = ResolvedSandboxConfig(platform="linux", workspace="/ws", project="/ws/app", local_binding=given)
    assert published_ports(config) == expected
