"""Files that are named almost like a task file: told, and not read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import vxconf
from tests.conftest import Tree
from vxconf.workspace.references import Unknown

Factory = Callable[[Tree], Path]

_TASK = '[tasks.t]\nexec.command = "true"\n'


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("VX.toml", "name it vx.toml"),
        ("Vx.json", "name it vx.json"),
        ("vx.jsonc", "name it vx.json and leave comments out"),
        ("vx.yaml", "write it as TOML in vx.toml"),
        ("vx.yml", "write it as TOML in vx.toml"),
        (".vx.toml", "name it vx.toml"),
    ],
)
@pytest.mark.parametrize("directory", ["", "a/b/"])
def test_a_file_that_is_named_almost_right_is_told(
    workspace_factory: Factory, name: str, remedy: str, directory: str
) -> None:
    root = workspace_factory({f"{directory}{name}": _TASK, "other/vx.toml": _TASK})
    (found,) = vxconf.load(str(root)).diagnostics
    assert (found.code, found.file, found.is_error) == ("VX423", f"{directory}{name}", False)
    assert found.help.startswith(remedy)
    # whoever asks for a task there is told as well
    with pytest.raises(Unknown, match=f"and {name} is not read: {remedy}"):
        vxconf.load(str(root / directory)).task("t")


def test_beside_a_task_file_and_where_nobody_looks_nothing_is_told(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": _TASK,
            "p/vx.yaml": "",
            "node_modules/x/vx.yaml": "",
            "docs/vx.yaml.md": "",
            "docs/my-vx.yaml": "",
        }
    )
    assert vxconf.load(str(root)).diagnostics == ()
