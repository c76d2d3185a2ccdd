"""The variables that lead a task on macOS to its own proxy: ports of its own, and a password. Pure."""

from __future__ import annotations

import base64
import shlex
from typing import TYPE_CHECKING

from sandbox.base.task_environment_variables import JAVA, JAVA_FLAGS, USER, java_flags, proxies

if TYPE_CHECKING:
    from collections.abc import Mapping

# Only the proxy looks up names, so ssh has to be led through it. Every Mac has bash, which dials by itself (`/dev/tcp`,
# bash(1)). A percent sign is doubled, since ssh reads one itself (ssh_config(5), TOKENS).
_THROUGH = """\
to=$1:$2; case $1 in *:*) to=[$1]:$2;; esac
exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1
printf "CONNECT %%s HTTP/1.1\\r\\nHost: %%s\\r\\nProxy-Authorization: Basic {known}\\r\\n\\r\\n" "$to" "$to" >&3
read -r _ status _ <&3
if [ "$status" != 200 ]; then printf "the sandbox gave no way to %%s (%%s)\\n" "$to" "$status" >&2; exit 1; fi
while IFS= read -r line <&3 && [ ${{#line}} -gt 1 ]; do :; done
cat <&3 & exec cat >&3"""


def proxy_variables(variables: Mapping[str, str], *, ports: tuple[int, int], password: str) -> dict[str, str]:
    """The task's variables, with those that lead to its proxy.

    Args:
        variables: as `task_environment` makes them.
        ports: for HTTP, and for SOCKS.
        password: the proxy's.
    """
    http, socks = ports
    own = variables.get(JAVA, "").removeprefix(JAVA_FLAGS).strip()
    flags = java_flags(http, password)
    return {
        **variables,
        **proxies(http, socks, password),
        "CLOUDSDK_PROXY_USERNAME": USER,
        "CLOUDSDK_PROXY_PASSWORD": password,
        "GIT_SSH_COMMAND": _ssh(http, password),
        JAVA: f"{flags} {own}" if own else flags,
    }


def _ssh(port: int, password: str) -> str:
    known = base64.b64encode(f"{USER}:{password}".encode()).decode("ascii")
    script = "; ".join(_THROUGH.format(port=port, known=known).splitlines())
    command = f"/bin/bash -c {shlex.quote(script)} ssh %h %p"
    return f"ssh -o {shlex.quote(f'ProxyCommand={command}')} -o ProxyJump=none -o ControlPath=none"
