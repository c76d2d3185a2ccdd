"""What libraries cost that were decided against, beside what stands in their place; see `docs/decisions`.

    python tests/bench/libraries.py [--few] [rounds]

Told is processor time, which another program's load changes little: of a process that starts and imports, less that of
one with what every process of this project imports; and of one call, the best of many rounds. A library that is not
installed here is left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.bench.arguments import arguments  # noqa: E402


class Way(NamedTuple):
    """One way to do a thing.

    Attributes:
        needs: modules that have to be there.
        code: for a start a whole program; for a call an expression.
        setup: for a call, what comes before it.
    """

    name: str
    needs: tuple[str, ...]
    code: str
    setup: str = ""


_TASK_FILE = """\
[tasks.build]
dependsOn = ["^build"]

[tasks.build.exec]
command = "tsc -b"

[tasks.build.exec.sandbox.allow]
read = ["package.json", "tsconfig.json", "src/", "../../tsconfig.base.json"]
write = ["dist/"]

[tasks.build.cache.inputs]
files = ["package.json", "tsconfig.json", "src/**"]
workspaceFiles = ["tsconfig.base.json"]

[tasks.build.cache.outputs]
files = ["dist/**"]
"""
_PNPM = "packages:\n  - 'apps/*'\n  - 'libs/*'\n  - '!**/test/**'\n"
_CONNECT = b"CONNECT registry.example.org:443 HTTP/1.1\r\nHost: registry.example.org:443\r\nUser-Agent: x/1\r\n\r\n"
_SCHEMA = f"open({str(REPOSITORY / 'schema/vx.schema.json')!r}).read()"
_PARSED = f"import tomllib; data = tomllib.loads({_TASK_FILE!r})"
_PATH = "/home/somebody/work/apps/shop/src/cart"

_HELLO = """
import ssl
out = ssl.MemoryBIO()
client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="registry.example.org")
try:
    client.do_handshake()
except ssl.SSLWantReadError:
    pass
hello = out.read()
"""
_OPENSSL = (
    _HELLO
    + """
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.sni_callback = lambda *told: ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
def name():
    inward = ssl.MemoryBIO()
    inward.write(hello)
    try:
        context.wrap_bio(inward, ssl.MemoryBIO(), server_side=True).do_handshake()
    except ssl.SSLError:
        pass
"""
)

#: What every process here has loaded, whatever else it does.
_EVERYWHERE = "import dataclasses, enum, functools, os, re, sandbox, vxconf"

#: What a process pays before it does anything.
STARTS: dict[str, tuple[Way, ...]] = {
    "the command line": (
        Way("the table of arguments alone", (), "import vxconf.cli.arguments, vxconf.cli.dispatch, vxconf.cli.console"),
        Way("argparse besides", (), "import vxconf.cli.arguments, vxconf.cli.dispatch, vxconf.cli.console, argparse"),
        Way("typer, one command read", ("typer",), "import vxconf.__main__ as m; m.main(['schema', '--help'])"),
    ),
    "the validator of a task file": (
        Way("generated code", (), "import vxconf.schema._generated_validator"),
        Way("fastjsonschema", ("fastjsonschema",), "import fastjsonschema"),
        Way("jsonschema", ("jsonschema",), "import jsonschema"),
    ),
    "TOML": (
        Way("read line by line", (), "import vxconf.document.toml_subset"),
        Way("tomllib", (), "import tomllib"),
        Way("tomlkit", ("tomlkit",), "import tomlkit"),
    ),
    "YAML": (
        Way("one list by hand", (), "import vxconf.workspace.pnpm_yaml"),
        Way("PyYAML", ("yaml",), "import yaml"),
        Way("ruamel.yaml", ("ruamel",), "import ruamel.yaml"),
    ),
    "this machine's addresses": (
        Way("netlink by hand", (), "import sandbox.proxy.io.interfaces as i; i.own_addresses()"),
        Way("psutil", ("psutil",), "import psutil; psutil.net_if_addrs()"),
        Way("pyroute2", ("pyroute2",), "from pyroute2 import IPRoute; IPRoute().get_addr()"),
    ),
    "SARIF": (
        Way("a dict", (), "import vxconf.diagnostics.sarif"),
        Way("sarif-om", ("sarif_om",), "import sarif_om"),
    ),
    "forks that share work": (
        Way("os.fork and marshal", (), "import vxconf.cli.workers"),
        Way("concurrent.futures", (), "from concurrent.futures import ProcessPoolExecutor"),
    ),
}

#: What one call takes.
CALLS: dict[str, tuple[Way, ...]] = {
    "a task file of 16 lines": (
        Way(
            "read line by line",
            (),
            "read(text)",
            f"from vxconf.document.toml_subset import read; text = {_TASK_FILE!r}",
        ),
        Way("tomllib", (), "loads(text)", f"from tomllib import loads; text = {_TASK_FILE!r}"),
        Way("tomlkit", ("tomlkit",), "parse(text)", f"from tomlkit import parse; text = {_TASK_FILE!r}"),
        Way(
            "tree-sitter, one place",
            ("tree_sitter_toml",),
            "locate(parse(raw, file='vx.toml'), ('tasks', 'build', 'exec', 'command'))",
            "from vxconf.document.parse import parse; from vxconf.document.spans import locate; "
            f"raw = {_TASK_FILE.encode()!r}",
        ),
    ),
    "the file against the schema": (
        Way(
            "generated code",
            (),
            "validate(data)",
            f"from vxconf.schema._generated_validator import validate; {_PARSED}",
        ),
        Way(
            "jsonschema",
            ("jsonschema",),
            "valid(data)",
            f"import json, jsonschema; valid = jsonschema.Draft7Validator(json.loads({_SCHEMA})).is_valid; {_PARSED}",
        ),
    ),
    "a list of pnpm's": (
        Way(
            "by hand",
            (),
            "top(text, 'packages')",
            f"from vxconf.workspace.pnpm_yaml import top_level_list as top; text = {_PNPM!r}",
        ),
        Way("PyYAML", ("yaml",), "load(text)", f"from yaml import safe_load as load; text = {_PNPM!r}"),
    ),
    "the head of a CONNECT": (
        Way("by hand", (), "read(data)", f"from sandbox.proxy.protocol.connect_head import read; data = {_CONNECT!r}"),
        Way(
            "h11",
            ("h11",),
            "told(data)",
            f"""
import h11
data = {_CONNECT!r}
def told(data):
    server = h11.Connection(h11.SERVER)
    server.receive_data(data)
    return server.next_event()
""",
        ),
    ),
    "the server's name in a TLS greeting": (
        Way(
            "by hand",
            (),
            "GreetingReader().read(hello)",
            _HELLO + "from sandbox.proxy.protocol.tls_hello import GreetingReader",
        ),
        Way("OpenSSL", (), "name()", _OPENSSL),
    ),
    "every directory above a path": (
        Way("strings", (), "list(parents(path))", f"from sandbox.base.paths import parents; path = {_PATH!r}"),
        Way(
            "pathlib",
            (),
            "list(map(str, P(path).parents))",
            f"from pathlib import PurePosixPath as P; path = {_PATH!r}",
        ),
    ),
    "which ports of this machine are listened on": (
        Way("one port, by hand", (), "listens(48173)", "from sandbox.machine.listening_ports import listens"),
        Way("psutil", ("psutil",), "ask('tcp')", "from psutil import net_connections as ask"),
    ),
}

_TIMED = """
import json, sys, time
sys.path.insert(0, {root!r})
{setup}
def once(count):
    begun = time.process_time()
    for _ in range(count):
        {code}
    return time.process_time() - begun
count = 1
while once(count) < {least}:
    count *= 4
print(json.dumps(min(once(count) for _ in range({rounds})) / count))
"""


def _here(way: Way) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in way.needs)


def _used(program: str) -> float:
    """Seconds of processor time of a process."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        (sys.executable, "-c", program), check=True, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts(rounds: int) -> None:
    """Print what each start takes, each beside the others, by turns."""
    print("a start, beyond what every process here imports; median of processor time")
    for title, ways in STARTS.items():
        there = [Way("nothing more", (), "pass"), *filter(_here, ways)]
        taken: dict[str, list[float]] = {way.name: [] for way in there}
        for turn in range(rounds + 1):
            for way in there:
                used = _used(f"{_EVERYWHERE}; {way.code}")
                if turn:  # the first one compiles
                    taken[way.name].append(used)
        nothing = statistics.median(taken.pop("nothing more"))
        print(f"  {title}")
        for name, each in taken.items():
            print(f"    {name:32} {(statistics.median(each) - nothing) * 1e3:8.1f} ms")


def calls(rounds: int, least: float) -> None:
    """Print what each call takes."""
    print("a call; best of processor time")
    for title, ways in CALLS.items():
        print(f"  {title}")
        for way in filter(_here, ways):
            program = _TIMED.format(root=str(REPOSITORY), setup=way.setup, code=way.code, least=least, rounds=rounds)
            done = subprocess.run((sys.executable, "-c", program), check=True, capture_output=True, text=True)
            print(f"    {way.name:32} {json.loads(done.stdout) * 1e6:8.1f} us")


def main() -> None:
    """Print both tables."""
    rounds, few = arguments(__doc__, "rounds", 20)
    with tempfile.TemporaryDirectory() as elsewhere:  # nothing here is to find a workspace around it
        os.chdir(elsewhere)
        starts(1 if few else rounds)
        calls(1 if few else rounds, 1e-4 if few else 0.02)


if __name__ == "__main__":
    main()
