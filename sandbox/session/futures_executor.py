"""EFFECT: the engine as a `concurrent.futures.Executor`: requests in, futures of results out."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from sandbox.request.request import Request
from sandbox.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.contract.results import RunResult
    from sandbox.contract.run_options import RunOptions

_P = ParamSpec("_P")
_T = TypeVar("_T")


class SandboxExecutor(Executor):
    """An executor that runs requests in one session, at most `max_workers` at once, in their order."""

    def __init__(self, session: Session | None = None, *, max_workers: int | None = None) -> None:
        """Make an executor; nothing is started before the first request.

        Args:
            session: the session of the runs, left open at the end; one of the executor's own when absent.
            max_workers: as many as this process has processors when absent.

        Raises:
            ValueError: `max_workers` is below 1.
        """
        workers = max_workers if max_workers is not None else os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="vxconf-run")
        self._is_own = session is None
        self.session = session if session is not None else Session()

    @overload
    def submit(self, fn: Request, /, *, command: str, **options: Unpack[RunOptions]) -> Future[RunResult]: ...
    @overload
    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]: ...
    def submit(self, fn: Request | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a request's command, or call a function, as soon as a worker is free.

        Args:
            fn: from `Session.request`; a callable is called in a thread, in no sandbox, as any executor's is.
            args: for a callable alone.
            kwargs: for a request: `command`, and the options of `Session.run`.

        Returns:
            A future of a `RunResult`: a refusal or a violation is a result, no exception. Cancelling one that has not
            begun keeps it from running; `Session.close` and signals end those that have.

        Raises:
            RuntimeError: the executor was shut down.
            TypeError: neither a request nor callable, or a request without a command.
        """
        if not isinstance(fn, Request):
            if not callable(fn):
                raise TypeError(f"submit takes a request or a callable, not a {type(fn).__name__}")
            return self._threads.submit(fn, *args, **kwargs)
        if args or not isinstance(kwargs.get("command"), str):
            raise TypeError('a request is submitted with command="..." and the options of Session.run')
        return self._threads.submit(self.session.run, fn, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; submitted work is finished, unless `cancel_futures` takes back the rest of it.

        Args:
            wait: return only when all is done and, if it is the executor's own, the session is closed.
            cancel_futures: cancel work that has not begun.
        """
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if not self._is_own:
            return
        if wait:
            self.session.close()
        else:
            threading.Thread(target=self._close_later, name="vxconf-shutdown").start()

    def _close_later(self) -> None:
        self._threads.shutdown(wait=True)
        self.session.close()


def as_executor(session: Session | None = None, *, max_workers: int | None = None) -> SandboxExecutor:
    """The engine as a `concurrent.futures.Executor`.

    Args:
        session: the session of the runs, left open at the end; one of its own, closed with it, when absent.
        max_workers: how many run at once; as many as there are processors when absent.
    """
    return SandboxExecutor(session, max_workers=max_workers)
