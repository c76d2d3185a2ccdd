"""A project with links, and its sandbox blocks, resolved from the text of a file's data."""

from __future__ import annotations

from tests.support.memory_files import MemoryFiles
from vxconf.resolve.resolve_block import Resolution, resolve
from vxconf.resolve.task_model_from_data import fill_defaults

SHOP_FILES = MemoryFiles.of(
    "/ws/base.toml",
    "/ws/apps/shop/lib/cart.py",
    "/ws/apps/shop/target/",
    "/ws/apps/shop/notes.md",
    "/ws/apps/shop/dist/",
    "/ws/apps/shop/[id]/x",
    "/ws/libs/money/src/coin.py",
    "/home/mel/.cache/pip/",
    links={
        "/ws/apps/shop/alias": "target",
        "/ws/apps/shop/out": "../../libs/money/src",
        "/ws/apps/shop/dangling": "../../gone",
        "/ws/apps/shop/loop": "loop",
        "/ws/link": "/ws/apps/shop/target",
    },
)


def resolved_block(
    block: dict[str, object], *, files: MemoryFiles = SHOP_FILES, project: str = "/ws/apps/shop"
) -> Resolution:
    """The resolution of a block of the project `/ws/apps/shop`, or of another."""
    model = fill_defaults({"tasks": {"t": {"exec": {"command": "x", "sandbox": block}}}})
    run = model.tasks[0].exec
    assert run is not None
    assert run.sandbox is not None
    return resolve(run.sandbox, platform="linux", workspace="/ws", project=project, home="/home/mel", files=files)
