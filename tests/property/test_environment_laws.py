"""Laws of a task's environment: the sandbox's own values stand, and nothing of the host comes along unasked."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.base.task_environment_variables import (
    JAVA,
    JAVA_FLAGS,
    MARKER,
    PASSED,
    PROXIES,
    RESERVED,
    TEMPORARY,
    task_environment,
)

_NAMES = st.sampled_from([*sorted(RESERVED), JAVA, "PATH", "HOME", "MINE", "LC_ALL"])
_VARIABLES = st.dictionaries(_NAMES, st.sampled_from(["", "/mine", "http://corp:8080", "*"]), max_size=8)


@settings(max_examples=80)
@given(_VARIABLES, _VARIABLES, st.lists(_NAMES, max_size=6))
def test_no_task_and_no_host_says_what_the_sandbox_says(
    host: dict[str, str], define: dict[str, str], passed: list[str]
) -> None:
    found = task_environment(host, define=define, pass_through=passed, project="/ws/p", workspace="/ws", temp="/tmp/t")
    assert {name: found[name] for name in PROXIES} == PROXIES
    assert found[MARKER] == "1"
    assert {found[name] for name in TEMPORARY if name in found} == {"/tmp/t"}
    assert set(found) & RESERVED <= {*PROXIES, MARKER, *TEMPORARY}
    own = define.get(JAVA, host.get(JAVA, "") if JAVA in passed else "")
    assert found[JAVA] == f"{JAVA_FLAGS} {own}".rstrip()
    asked = {*PASSED, *passed, *define, *PROXIES, *TEMPORARY, MARKER, JAVA, "PATH", "LC_ALL"}
    assert set(found) <= asked
