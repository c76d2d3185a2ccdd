from __future__ import annotations

import pytest

from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.request import cache_key_reach
from tests.support.memory_files import MemoryFiles
from tests.support.plans import request

WS, SHOP = "/ws", "/ws/apps/shop"


def task(
    *write: str, project: str = SHOP, sandboxed: bool = True, group: bool = False, cached: bool = False
) -> cache_key_reach.KeyedTask:
    config = ResolvedSandboxConfig(platform="linux", workspace=WS, project=project, allow_write=write)
    return cache_key_reach.KeyedTask(
        workspace=WS, project=project, config=config if sandboxed else None, group=group, cached=cached
    )


@pytest.mark.parametrize(
    ("given", "reach"),
    [
        (task(f"{SHOP}/out/", cached=True), "none"),
        (task(sandboxed=False, cached=True), "none"),
        (task(group=True, sandboxed=False), "none"),
        (task(sandboxed=False), "project"),
        (task(), "none"),
        (task(f"{SHOP}/out/**"), "project"),
        (task(f"{SHOP}/out.txt"), "project"),
        (task("/ws/libs/money/gen/**"), "workspace"),
        (task("/ws/shared/x"), "workspace"),
        (task("/"), "workspace"),
        (task("/home/mel/.c/t/**"), "none"),
        (task("/else/**"), "none"),
        (task("/else/**", f"{SHOP}/out/**"), "project"),
        (task(f"{SHOP}/out/", "/ws/libs/"), "workspace"),
        (task("/ws/{apps/shop/a,libs}/"), "workspace"),
    ],
)
def test_where_a_task_may_have_written_what_nothing_declares(given: cache_key_reach.KeyedTask, reach: str) -> None:
    assert cache_key_reach.undeclared_write_reach(given) == reach


@pytest.mark.parametrize(
    ("given", "reach"),
    [
        (task(sandboxed=False, cached=True), "project"),
        (task(cached=True), "none"),
        (task(f"{SHOP}/out/**", cached=True), "project"),
        (task(group=True, cached=True), "none"),
    ],
)
def test_where_a_command_may_write_whatever_its_cache_says(given: cache_key_reach.KeyedTask, reach: str) -> None:
    assert cache_key_reach.command_write_reach(given) == reach


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (task(f"{SHOP}/out/"), ("out/**",)),
        (task(f"{SHOP}/out/**", f"{SHOP}/gen/"), ("out/**", "gen/**")),
        (task(f"{SHOP}/a.bin"), ("a.bin", "a.bin/**")),
        (task(f"{SHOP}/*.py"), ("*.py", "*.py/**")),
        (task(f"{SHOP}/"), ("**",)),
        (task("/ws/apps/"), ("**",)),
        (task("/ws/libs/", "/else/"), ()),
        (task(sandboxed=False), ()),
        (task("/ws/apps/s\\[x\\]/out/", project="/ws/apps/s[x]"), ("out/**",)),
    ],
)
def test_where_write_grants_reach_in_the_own_project(given: cache_key_reach.KeyedTask, found: tuple[str, ...]) -> None:
    assert cache_key_reach.granted_write_globs(given) == found


@pytest.mark.parametrize(
    ("given", "claimed", "may"),
    [
        (task(sandboxed=False, project=WS), (), False),
        (task(sandboxed=False, project=WS), ("lock.yaml",), True),
        (task(sandboxed=False), ("lock.yaml",), False),
        (task("/ws/out/**", project=WS), ("lock.yaml",), False),
        (task("/ws/lock.yaml", project=WS), ("lock.yaml",), True),
        (task("/ws/lock.yaml"), ("other.yaml", "lock.yaml"), True),
        (task("/ws/**"), ("lock.yaml",), True),
        (task("/ws/*.yaml"), ("lock.yaml",), True),
        (task("/ws/libs/**"), ("lock.yaml",), False),
        (task(group=True, sandboxed=False, project=WS), ("lock.yaml",), False),
    ],
)
def test_whether_a_file_others_take_for_a_fingerprint_may_be_rewritten(
    given: cache_key_reach.KeyedTask, claimed: tuple[str, ...], *, may: bool
) -> None:
    assert cache_key_reach.may_write_fingerprint(given, claimed) is may


FILES = MemoryFiles.of(
    "/ws/base.toml",
    "/ws/apps/shop/x",
    "/ws/libs/money/src/coin.py",
    "/ws/node_modules/pad/i.js",
    "/else/x",
    links={"/ws/link.toml": "base.toml", "/ws/out.toml": "/else/x"},
)
KEYED = ("base.toml", "apps/shop/x", "libs/money/src/coin.py", "node_modules/pad/i.js", "link.toml", "out.toml")


@pytest.mark.parametrize(
    ("read", "ignore", "left"),
    [
        ((), (), ("base.toml", "libs/money/src/coin.py", "link.toml")),
        (("/ws/base.toml",), (), ("libs/money/src/coin.py",)),
        (("/ws/libs/**/*.ts", "/ws/base.toml"), (), ()),
        (("/ws/",), (), ()),
        ((), ("/ws/base.toml",), ("libs/money/src/coin.py",)),
        ((), ("../../*.toml", "/ws/libs/**"), ("base.toml", "link.toml")),
        ((), ("/ws/libs/**", "/ws/*.toml"), ()),
    ],
)
def test_what_a_key_holds_and_no_grant_reaches(
    read: tuple[str, ...], ignore: tuple[str, ...], left: tuple[str, ...]
) -> None:
    made = request(FILES, read=read, fields={"ignore": Ignore(read=ignore)})
    assert cache_key_reach.keyed_outside_grants(made, KEYED, FILES) == left
