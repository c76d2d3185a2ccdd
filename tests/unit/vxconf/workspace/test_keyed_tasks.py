"""A cache key includes the tasks it depends on; packages may be read, and keys trusted, accordingly."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import vxconf
from tests.conftest import Link
from vxconf.workspace.keyed_tasks import keyed_projects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Factory = Callable[[Mapping[str, object]], Path]

_CACHED = '[tasks.{0}]\ndependsOn = [{1}]\ncache = {{}}\nexec = {{ command = "x", sandbox = {{}} }}\n'
_UNCACHED = '[tasks.{0}]\ndependsOn = [{1}]\nexec.command = "x"\n'
_GROUP = "[tasks.{0}]\ndependsOn = [{1}]\n"


def cached(name: str, *needs: str) -> str:
    return _CACHED.format(name, ", ".join(f'"{need}"' for need in needs))


def uncached(name: str, *needs: str) -> str:
    return _UNCACHED.format(name, ", ".join(f'"{need}"' for need in needs))


def group(name: str, *needs: str) -> str:
    return _GROUP.format(name, ", ".join(f'"{need}"' for need in needs))


def keyed(root: Path, reference: str) -> set[str] | None:
    workspace = vxconf.load(str(root))
    found = keyed_projects(workspace.graph, workspace.task(reference))
    return None if found is None else {os.path.relpath(path, root) for path in found}


def test_a_task_without_a_cache_and_a_server_have_no_key(workspace_factory: Factory) -> None:
    server = cached("serve", "q#build").replace('command = "x"', 'command = "x", persistent = {}')
    root = workspace_factory({"p/vx.toml": uncached("build", "q#build") + server, "q/vx.toml": cached("build")})
    assert keyed(root, "p#build") is None
    assert keyed(root, "p#serve") is None


def test_a_key_folds_what_it_names_and_what_that_folds(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": cached("test", "build", "q#build", "nobody#x", "none") + cached("build"),
            "q/vx.toml": cached("build", "r#build"),
            "r/vx.toml": cached("build", "p#test"),
            "s/vx.toml": cached("build"),
        }
    )
    assert keyed(root, "p#test") == {"p", "q", "r"}
    assert keyed(root, "s#build") == set()


def test_a_group_is_passed_through_and_a_task_without_a_key_is_not(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": cached("test", "all", "q#plain") + group("all", "q#both", "r#build"),
            "q/vx.toml": group("both", "build") + cached("build") + uncached("plain", "s#build"),
            "r/vx.toml": cached("build"),
            "s/vx.toml": cached("build"),
        }
    )
    assert keyed(root, "p#test") == {"q", "r"}


def test_a_caret_names_that_task_of_the_packages_depended_on(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": cached("test", "^build"),
            "p/package.json": '{"dependencies": {"@a/q": "*", "left-pad": "1"}, "devDependencies": {"r": "*"}}',
            "q/vx.toml": cached("build"),
            "q/package.json": '{"name": "@a/q"}',
            "r/vx.toml": cached("build"),
            "r/package.json": '{"name": "r"}',
            "s/vx.toml": cached("build"),
            "s/package.json": '{"name": "s"}',
        }
    )
    assert keyed(root, "p#test") == {"q", "r"}


def test_a_caret_reads_the_dependencies_of_a_python_project(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": cached("test", "^build"),
            "p/pyproject.toml": (
                '[project]\nname = "p"\ndependencies = ["Acme_Money[x]>=1 ; python_version > \'3\'", "requests"]\n'
                'optional-dependencies.more = ["dates"]\n[dependency-groups]\ndev = ["kit", {include-group = "x"}]\n'
            ),
            **{
                f"{place}/{name}": text
                for place, project in (("q", "acme.money"), ("r", "dates"), ("s", "kit"), ("t", "other"))
                for name, text in (
                    ("vx.toml", cached("build")),
                    ("pyproject.toml", f'[project]\nname = "{project}"\n'),
                )
            },
        }
    )
    assert keyed(root, "p#test") == {"q", "r", "s"}


def test_tasks_whose_outputs_are_inputs_are_folded(workspace_factory: Factory) -> None:
    text = '[tasks.test]\ncache.inputs.tasks = ["q#build"]\nexec.command = "x"\n'
    root = workspace_factory({"p/vx.toml": text, "q/vx.toml": cached("build")})
    assert keyed(root, "p#test") == {"q"}


def test_a_request_holds_the_packages_its_key_answers_for(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": cached("test", "q#build")
            + cached("build")
            + '[tasks.open.exec]\ncommand = "x"\nsandbox = {}\n',
            "q/vx.toml": cached("build"),
            "r/vx.toml": cached("build"),
            "node_modules/q": Link("../q"),
            "node_modules/r": Link("../r"),
            **{f"{name}/package.json": json.dumps({"name": name}) for name in "qr"},
        }
    )

    def reads(task: str) -> set[str]:
        request = vxconf.load(str(root)).task(task).request()
        return {os.path.relpath(read.path, root) for read in request.reads}

    assert reads("p#open") == {"node_modules", "q", "r"}
    assert reads("p#test") == {"node_modules", "q"}
    assert reads("p#build") == {"node_modules"}
    withheld = vxconf.load(str(root)).task("p#test").request().withheld
    assert [(one.target, one.name, one.project) for one in withheld] == [("r", "r", True)]


def test_a_request_holds_the_outputs_its_key_folds_as_they_are_now(workspace_factory: Factory) -> None:
    made = cached("build").replace("cache = {}", 'cache.outputs.files = ["dist/**", "gen/*.js", "!gen/b.js"]')
    root = workspace_factory({"p/vx.toml": cached("test", "q#build"), "q/vx.toml": made})
    task = vxconf.load(str(root)).task("p#test")
    assert task.request().reads == ()
    for name in ("dist/a", "gen/a.js", "gen/b.js"):
        (root / "q" / name).parent.mkdir(exist_ok=True)
        (root / "q" / name).touch()
    request = task.request()
    assert [os.path.relpath(read.path, root) for read in request.reads] == ["q/dist", "q/gen/a.js"]
    assert {os.path.relpath(path, root) for path in request.reported} == {"q/dist", "q/gen"}


@pytest.mark.parametrize(
    ("inputs", "block", "named"),
    [
        ('"base.toml"', "{}", "base.toml"),
        ('"base.toml"', '{ allow.read = ["../base.toml"] }', None),
        ('"base.toml"', '{ allow.read = ["../*.toml"] }', None),
        ('"base.toml"', '{ allow.write = ["../"] }', "refused"),
        ('"base.toml"', '{ ignore.read = ["../base.toml"] }', None),
        ('"none.toml"', "{}", None),
        ('"*.toml", "!base.toml"', "{}", None),
        ('"shared/**"', '{ allow.read = ["../shared/a"] }', "shared/b"),
        ('"shared"', '{ allow.read = ["../shared/"] }', None),
        ('"shared/", "!shared/b"', '{ allow.read = ["../shared/a"] }', None),
        ('"p/x"', "{}", None),
    ],
)
def test_a_key_that_holds_what_no_grant_reaches_is_refused_before_the_run(
    workspace_factory: Factory, inputs: str, block: str, named: str | None
) -> None:
    text = f'[tasks.t]\ncache.inputs.workspaceFiles = [{inputs}]\nexec = {{ command = "x", sandbox = {block} }}\n'
    root = workspace_factory(
        {".vx/workspace.toml": "", "p/vx.toml": text, "base.toml": "", "shared/a": "", "shared/b": "", "p/x": ""}
    )
    task = vxconf.load(str(root)).task("p#t")
    if named is None:
        task.request()
        return
    with pytest.raises(vxconf.Refused) as caught:
        task.request()
    if named != "refused":
        (found,) = caught.value.diagnostics
        assert (found.code, found.path) == ("VX316", "tasks.t.cache.inputs.workspaceFiles[0]")
        assert f"the cache key holds {named}," in found.message
        assert f'"../{named}"' in found.help


def test_the_files_in_a_tasks_own_key_are_known(workspace_factory: Factory) -> None:
    inputs = '[tasks.build.cache.inputs]\nfiles = ["src/**", "!src/{a,b}.log"]\nworkspaceFiles = ["base.json"]\n'
    root = workspace_factory({"p/vx.toml": f'[tasks.build.exec]\ncommand = "x"\nsandbox = {{}}\n{inputs}'})
    declared = vxconf.load(str(root)).task("p#build").request().workspace.declared
    held = {name: declared.keys(str(root / name)) for name in ("p/src/x/y", "p/src/b.log", "base.json", "p/base.json")}
    assert held == {"p/src/x/y": True, "p/src/b.log": False, "base.json": True, "p/base.json": False}
    assert declared.keys(str(root / "p/src"), directory=True)
