"""The environment of a sandboxed task: the host's variables that pass, and those the task declares. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.base import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Host variables every task gets, besides those whose name starts with LC_.
PASSED = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "CI")

#: Directories of programs, most specific first, that come before the host's own.
OWN_PROGRAMS = ("node_modules/.bin", ".venv/bin")

#: Where programs are looked for when the host names no usable directory.
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

#: Variables that name the task's own temporary directory; the latter two only where the host or the task has them.
TEMPORARY = ("TMPDIR", "TMP", "TEMP")

#: Where a task's proxy listens, inside the task's own network.
HTTP_PORT = 3128
SOCKS_PORT = 1080
#: The user name of a task at a proxy that asks for a password.
USER = "vxconf"

#: Hosts that are reached without the proxy: the task's own servers, and the host ports it was granted.
_DIRECT = "localhost,127.0.0.1,::1"


def proxies(http_port: int, socks_port: int, password: str = "") -> dict[str, str]:
    """Variables that tell the programs inside of a proxy on 127.0.0.1.

    Args:
        http_port: where it speaks HTTP.
        socks_port: where it speaks SOCKS.
        password: the one it asks for, letters and digits; empty where it asks for none.
    """
    proxy = f"{USER}:{password}@127.0.0.1" if password else "127.0.0.1"
    http = f"http://{proxy}:{http_port}"
    # An HTTP proxy is named wherever one will do: many clients that know no SOCKS stop at the sight of such an address.
    either_case = {
        "HTTP_PROXY": http,
        "HTTPS_PROXY": http,
        "ALL_PROXY": http,
        "GRPC_PROXY": http,
        "FTP_PROXY": f"socks5h://{proxy}:{socks_port}",
        "NO_PROXY": _DIRECT,
    }
    return {
        **either_case,
        **{name.lower(): value for name, value in either_case.items()},
        "RSYNC_PROXY": f"{proxy}:{http_port}",
        "DOCKER_HTTP_PROXY": http,
        "DOCKER_HTTPS_PROXY": http,
        "CLOUDSDK_PROXY_TYPE": "http",
        "CLOUDSDK_PROXY_ADDRESS": "127.0.0.1",
        "CLOUDSDK_PROXY_PORT": str(http_port),
        # Node's own `fetch` reads the variables above only when this one is set (Node.js, `NODE_USE_ENV_PROXY`).
        "NODE_USE_ENV_PROXY": "1",
        # ssh resolves the name inside, and the answer leads to the proxy, so no program has to run in between. A proxy
        # command, a jump host or a running master of the user's configuration would lead elsewhere (ssh_config(5)).
        "GIT_SSH_COMMAND": "ssh -o ProxyCommand=none -o ProxyJump=none -o ControlPath=none",
        # git obeys the user's own `http.proxy` before any variable (git-config(1)).
        "GIT_CONFIG_PARAMETERS": f"'http.proxy={http}'",
    }


def java_flags(http_port: int, password: str = "") -> str:
    """Flags that tell Java of the proxy; a password is read only by programs that know these properties."""
    own = f" -Dhttp.proxyUser={USER} -Dhttp.proxyPassword={password}" if password else ""
    return (
        " ".join(f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={http_port}" for scheme in ("http", "https"))
        + own
    )


#: Variables that tell the programs inside of the proxy; programs that read none are met by the stand-in addresses.
PROXIES = proxies(HTTP_PORT, SOCKS_PORT)

#: The variable that says to a program that it runs in a sandbox.
MARKER = "VXCONF_SANDBOX"

#: Variables a task may not set, since they would speak to the proxy in its name.
_NEVER = ("CLOUDSDK_PROXY_USERNAME", "CLOUDSDK_PROXY_PASSWORD")

#: Variables of which a task's own value does not survive, since they are the sandbox's.
RESERVED = frozenset((*TEMPORARY, MARKER, *PROXIES, *_NEVER))

#: The one variable Java reads; the task's own flags come after the proxy's.
JAVA = "JAVA_TOOL_OPTIONS"
JAVA_FLAGS = java_flags(HTTP_PORT)

#: Where git finds what it puts into each new repository, hooks among them; an empty one is none (git-init(1)).
TEMPLATES = "GIT_TEMPLATE_DIR"

DISCOVERY = "GIT_DISCOVERY_ACROSS_FILESYSTEM"


def task_environment(
    host: Mapping[str, str],
    *,
    define: Mapping[str, str],
    pass_through: Iterable[str],
    project: str,
    workspace: str,
    temp: str,
    grants_git: bool = False,
    git_config: bool = False,
) -> dict[str, str]:
    """Exactly the variables the command starts with.

    Args:
        host: the caller's environment.
        define: variables the task declares; they win over the host's.
        pass_through: names the task takes from the host, as they are.
        project: canonical.
        workspace: canonical.
        temp: the task's own temporary directory.
        grants_git: whether a grant names a `.git`, whose repository git then finds through the mounts between.
        git_config: whether the task may make repositories, which get no hooks.
    """
    result = {name: value for name, value in host.items() if name in PASSED or name.startswith("LC_")}
    result["PATH"] = search_path(host.get("PATH", ""), project=project, workspace=workspace)
    result |= {name: host[name] for name in pass_through if name in host and name != "PATH"}
    result |= define
    if grants_git:
        result.setdefault(DISCOVERY, "1")
    if git_config:
        result.setdefault(TEMPLATES, "")
    for name in TEMPORARY:
        result.pop(name, None)
        if name == "TMPDIR" or name in host or name in define:
            result[name] = temp
    for name in _NEVER:
        result.pop(name, None)
    result |= PROXIES
    result[MARKER] = "1"
    own = result.get(JAVA)
    result[JAVA] = f"{JAVA_FLAGS} {own}" if own else JAVA_FLAGS
    return result


def search_path(host: str, *, project: str, workspace: str) -> str:
    """The project's own programs, the workspace's, then the host's absolute directories, each once.

    An empty or relative entry would let the directory a task stands in name its programs.
    """
    own = [paths.join(root, part) for root in (project, workspace) for part in OWN_PROGRAMS]
    usable = [entry for entry in host.split(":") if entry.startswith("/")]
    return ":".join(dict.fromkeys([*own, *(usable or DEFAULT_PATH.split(":"))]))


def names_git(grants: Iterable[str]) -> bool:
    """Whether a grant has `.git` as one of its components."""
    return any(".git" in grant.split("/") for grant in grants)
