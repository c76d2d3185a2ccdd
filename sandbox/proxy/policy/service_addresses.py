"""The addresses at which a task finds its proxy, the same for every task, since each has a network of its own. Pure."""

from __future__ import annotations

from sandbox.base.task_environment_variables import HTTP_PORT, SOCKS_PORT

__all__ = ["DNS_PORT", "HTTP_PORT", "LOOPBACK", "LOOPBACK6", "LOOPBACKS", "SOCKS_PORT"]

LOOPBACK, LOOPBACK6 = LOOPBACKS = ("127.0.0.1", "::1")
DNS_PORT = 53
