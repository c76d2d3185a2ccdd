"""EFFECT: the process in which a task's proxy runs on macOS: its input, and its reports to the run.

The process is given the listeners, and on its input the hosts that may be reached; the end of that input is the task's.
Its reports are one JSON list in each line: `refused` with the host asked for and the reason, `missed` with why not all
is told, `settled` last.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import resource
import socket
import sys
import traceback

from sandbox.proxy.io import getifaddrs
from sandbox.proxy.io.idle_loop import IdleLoop
from sandbox.proxy.proxy import Proxy

_INPUT, _OUTPUT = 0, 1
#: The most descriptors a Mac lets a process have (OPEN_MAX), where it names no limit.
_DESCRIPTORS = 10240
_LONGEST = 1000


def main() -> None:
    """Serve one task's proxy until its input ends."""
    with open(_INPUT, "rb", closefd=False) as given:
        policy, password = pickle.load(given)  # noqa: S301  the run is of this program
    _have_descriptors()
    listeners = [socket.socket(fileno=int(text)) for text in sys.argv[1:]]
    http, socks = (int(listener.getsockname()[1]) for listener in listeners)
    loop = IdleLoop()
    proxy = Proxy(
        loop,
        policy,
        listen=lambda _places: [],
        report=_refused,
        failed=_failed,
        places=(http, socks),
        password=password,
        own=getifaddrs.own_addresses,
    )
    proxy.take(listeners)
    loop.set_exception_handler(lambda _, context: _failed(context.get("exception") or RuntimeError(context["message"])))
    os.set_blocking(_INPUT, False)
    loop.add_reader(_INPUT, lambda: _hear(loop))
    loop.run_forever()
    if proxy.settle():
        _say("settled")
    os._exit(0)


def _have_descriptors() -> None:
    """Raise the limit of descriptors as far as it goes: a shell on a Mac allows 256."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _DESCRIPTORS):
        # A hard limit of none is no soft limit a Mac takes (setrlimit(2), macOS).
        if wanted != resource.RLIM_INFINITY:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return


def _say(*words: str) -> None:
    data = json.dumps(words).encode() + b"\n"
    try:
        while data:
            data = data[os.write(_OUTPUT, data) :]
    except BrokenPipeError:  # nobody is there to hear it
        os._exit(1)


def _refused(asked: str, reason: str) -> None:
    if reason:
        _say("refused", asked, reason)
    else:
        _say("missed", "more hosts were refused than can be told")


def _failed(error: Exception) -> None:
    if os.environ.get("VXCONF_DEBUG"):
        traceback.print_exception(error)
    _say("missed", f"the network's proxy failed: {type(error).__name__}: {error}"[:_LONGEST])


def _hear(loop: IdleLoop) -> None:
    """Stop once the task has ended, or the run is gone."""
    with contextlib.suppress(BlockingIOError):
        if not os.read(_INPUT, 1):
            loop.remove_reader(_INPUT)
            loop.stop()
