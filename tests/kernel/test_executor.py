"""The engine where a program expects an executor."""

from __future__ import annotations

import concurrent.futures
import pickle
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox import Session, as_executor
from tests.conftest import make_tree
from tests.kernel.conftest import SHOP, Workspace, shown, violated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def shop(places: Path) -> Iterator[Workspace]:
    root = make_tree(places / "ws", SHOP)
    with Session() as session:
        yield Workspace(session, places, root, root / "apps" / "shop", places / "home")


def test_requests_become_futures_of_results_and_every_verdict_is_its_own(shop: Workspace) -> None:
    with as_executor(max_workers=4) as executor:
        assert isinstance(executor, concurrent.futures.Executor)
        may, may_not = shop.request(["notes.md"]), shop.request(["lib/"])
        futures = [
            executor.submit(request, command=f"cat notes.md; exit {status}")
            for status in range(4)
            for request in (may, may_not)
        ]
        results = [future.result(60) for future in concurrent.futures.as_completed(futures, 60)]
        assert len(results) == 8
        for status in range(4):
            allowed, denied = futures[2 * status].result(), futures[2 * status + 1].result()
            assert (allowed.exit_code, allowed.stdout) == (status, b"notes\n"), shown(allowed)
            assert violated(denied, shop.project) == [("read", "notes.md")]
            assert denied.exit_code == (status or 1), shown(denied)
    with pytest.raises(RuntimeError):
        executor.submit(may, command="true")


def test_a_callable_is_called_as_any_executor_does(shop: Workspace) -> None:
    with as_executor(shop.session) as executor:
        assert executor.submit(pow, 2, 5).result(30) == 32
        assert list(executor.map(len, ["a", "bb"])) == [1, 2]
        result = executor.submit(shop.session.run, shop.request(), command="echo run").result(30)
        assert result.stdout == b"run\n", shown(result)
    # the session was not its own
    assert shop.passes("echo still") == "still\n"


def test_what_has_not_begun_can_be_cancelled_and_what_has_is_ended_by_the_session(shop: Workspace) -> None:
    begun = threading.Event()
    executor = as_executor(shop.session, max_workers=1)
    running = executor.submit(shop.request(), command="echo up; sleep 300", on_stdout=lambda _: begun.set())
    waiting = executor.submit(shop.request(write=["made"]), command="touch made")
    assert begun.wait(60)
    assert waiting.cancel()
    shop.session.signal(9)
    assert running.result(60).signal == "SIGKILL"
    executor.shutdown()
    assert not (shop.project / "made").exists()


def test_a_shutdown_that_does_not_wait_lets_what_runs_finish(shop: Workspace) -> None:
    executor = as_executor(max_workers=1)
    future = executor.submit(shop.request(), command="sleep 0.3; echo done")
    executor.shutdown(wait=False)
    assert future.result(60).stdout == b"done\n"


@pytest.mark.parametrize("given", [((), {}), ((1,), {"command": "true"}), ((), {"command": 3})])
def test_a_request_without_a_command_is_the_callers_mistake(
    shop: Workspace, given: tuple[tuple[object, ...], dict[str, object]]
) -> None:
    args, kwargs = given
    with as_executor(shop.session) as executor, pytest.raises(TypeError, match="command="):
        executor.submit(shop.request(), *args, **kwargs)  # type: ignore[call-overload]


def test_requests_and_results_pickle(shop: Workspace) -> None:
    request = shop.request(["lib/**/*.py"], ["out.txt", "dist/"])
    again = pickle.loads(pickle.dumps(request))  # noqa: S301  our own bytes
    assert again == request
    result = shop.session.run(again, command="cat lib/cart.py notes.md; echo x > out.txt")
    assert violated(result, shop.project) == [("read", "notes.md")], shown(result)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301  the same
