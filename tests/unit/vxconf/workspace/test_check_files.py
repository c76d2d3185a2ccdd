"""Checks of workspaces of real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import vxconf
from tests.conftest import Link, Tree, make_tree
from vxconf.workspace.check_files import check_project

if TYPE_CHECKING:
    from vxconf.diagnostics.diagnostic import Diagnostic

Factory = Callable[[Tree], Path]


def _task(block: str, name: str = "build") -> str:
    return f'[tasks.{name}.exec]\ncommand = "x"\n[tasks.{name}.exec.sandbox]\n{block}\n'


def _check(root: Path, project: str = "p") -> list[Diagnostic]:
    workspace = vxconf.load(str(root))
    return list(check_project(workspace.project(project), ("linux",)))


def _codes(root: Path, project: str = "p") -> list[str]:
    return [diagnostic.code for diagnostic in _check(root, project)]


def test_a_healthy_workspace_has_nothing_to_be_said_of_it(workspace_factory: Factory) -> None:
    root = workspace_factory({"p/vx.toml": _task('allow.read = ["src/"]\nallow.write = ["dist/"]'), "p/src/x": ""})
    workspace = vxconf.load(str(root / "p" / "src"))
    assert workspace.diagnostics == ()
    assert workspace.root == str(root)
    assert not (root / "p" / "dist").exists()


def test_problems_of_the_text_and_of_the_file_system_come_in_one_pass_in_file_order(workspace_factory: Factory) -> None:
    text = (
        _task('allow.write = ["a.txt/", "~", "out/"]', "one")
        + _task('allow.reads = ["x"]', "two")
        + _task('allow.write = ["linked/"]', "three")
    )
    root = workspace_factory({"p/vx.toml": text, "p/a.txt": "", "p/linked": Link("../elsewhere"), "elsewhere": None})
    found = _check(root)
    assert [(d.code, d.path) for d in found] == [
        ("VX303", "tasks.one.exec.sandbox.allow.write[0]"),
        ("VX305", "tasks.one.exec.sandbox.allow.write[1]"),
        ("VX101", "tasks.two.exec.sandbox.allow.reads"),
        ("VX301", "tasks.three.exec.sandbox.allow.write[0]"),
    ]
    assert [d.place.line for d in found] == [4, 4, 8, 12]
    assert [d.place.column for d in found][:2] == [16, 26]
    assert all(d.help for d in found)


def test_a_wall_in_a_grant_is_named(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {"p/vx.toml": _task('allow.write = ["sub/", "sub/kit/gen/"]'), "p/sub/kit/vx.toml": "", ".git/HEAD": ""}
    )
    (found,) = _check(root)
    assert found.code == "VX302"
    assert str(root / "p" / "sub" / "kit") in found.message


def test_a_weaker_sandbox_that_is_accepted_is_a_warning_of_the_file_and_refuses_nothing(
    workspace_factory: Factory,
) -> None:
    block = 'allow.network = ["pkg.test"]\nweakerWhenNested = true'
    root = workspace_factory({"p/vx.toml": _task(block)})
    (found,) = _check(root)
    assert (found.code, found.path) == ("VX413", "tasks.build.exec.sandbox.weakerWhenNested")
    assert (found.severity, found.platform) == (vxconf.Severity.WARNING, "linux")
    task = vxconf.load(str(root)).task("p#build")
    assert task.diagnostics() == ()
    assert task.resolve().weaker_when_nested
    task.request()


def test_refusals_of_one_list_keep_the_index_of_the_file(workspace_factory: Factory) -> None:
    block = 'allow.write = ["ok/", "a.txt/", "ok/", "b.txt/", ".git/hooks/x"]'
    root = workspace_factory({"p/vx.toml": _task(block), "p/a.txt": "", "p/b.txt": ""})
    paths = [d.path.rpartition(".")[2] for d in _check(root) if d.code in {"VX302", "VX303"}]
    assert paths == ["write[1]", "write[3]", "write[4]"]


@pytest.mark.parametrize(
    ("block", "code", "path"),
    [
        ('allow.read = ["scr/**/*.py"]', "VX403", "read[0]"),
        ('allow.read = ["scr"]', "VX407", "read[0]"),
        ('allow.read = ["src/", "src/x.py"]', "VX404", "read[1]"),
        ('allow.read = ["src/", "src/*.py"]', "VX404", "read[1]"),
        ('allow.read = ["src/x.py", "src/"]', "VX404", "read[0]"),
        ('allow.read = ["src/", "./src"]', "VX404", "read[1]"),
        ('allow.read = ["gen/x"]\nallow.write = ["gen/"]', "VX404", "read[0]"),
        ('allow.write = ["gen/", "gen/deep/"]', "VX404", "write[1]"),
        ('allow.read = ["src/x.py", "src/", "gen/x"]', "VX404", "read[0]"),
        ('allow.read = ["src/", "{src/x.py,src/*.py}"]', "VX404", "read[1]"),
        ('allow.read = ["/"]', "VX415", "read[0]"),
        ('allow.read = ["/", "src/x.py"]', "VX415", "read[0]"),
        ('allow.read = ["../../../..", "src/x.py"]', "VX415", "read[0]"),
        ('allow.read = ["src/x.py/", "src/x.py"]', "VX407", "read[0]"),
        ('allow.read = ["/etc/"]', "VX417", "read[0]"),
        ('allow.read = ["/var/**", "src/x.py"]', "VX417", "read[0]"),
        ('allow.read = ["/dev"]', "VX417", "read[0]"),
        ('allow.write = ["gen/", "/run/"]', "VX417", "write[1]"),
        ('allow.write = ["/etc/cron.d/"]', "VX417", "write[0]"),
        ('allow.read = ["~/.npmrc"]', "VX405", "read[0]"),
        ('allow.read = ["~/.ssh/id"]', "VX405", "read[0]"),
    ],
)
def test_a_grant_that_probably_does_not_do_what_was_meant_is_a_warning_with_its_place(
    workspace_factory: Factory, home: Path, block: str, code: str, path: str
) -> None:
    make_tree(home, {".npmrc": "", ".ssh/id": ""})
    root = workspace_factory({"p/vx.toml": _task(block), "p/src/x.py": "", "p/gen/x": "", "p/gen/deep/y": ""})
    (found,) = _check(root)
    assert (found.code, found.path.rpartition(".")[2]) == (code, path)
    assert found.severity is vxconf.Severity.WARNING
    assert found.help


@pytest.mark.parametrize(
    "block",
    [
        'allow.read = [".", "../.git/"]',
        'allow.read = [".", "sub/kit/x"]',
        'allow.read = ["."]\nallow.write = ["dist/"]',
        'allow.read = ["{src,gone}"]',
        'allow.read = ["src/", "srcs"]',
        'allow.read = ["src/", "{src/x,srcs}"]',
        'allow.read = ["src/", "linked/x"]',
        'hermetic = true\nallow.read = ["/"]',
        'allow.read = ["dist/made"]\nallow.write = ["dist2/"]',
    ],
)
def test_a_grant_that_opens_something_of_its_own_is_no_warning(workspace_factory: Factory, block: str) -> None:
    root = workspace_factory(
        {
            "p/vx.toml": _task(block)
            + '[tasks.gen.cache.outputs]\nfiles = ["dist/**"]\n[tasks.gen.exec]\ncommand = "x"\n',
            "p/src/x": "",
            "p/srcs": "",
            "p/linked": Link("src"),
            "p/sub/kit/vx.toml": "",
            "p/sub/kit/x": "",
            ".git/HEAD": "",
        }
    )
    assert _codes(root) == []


def test_a_missing_path_another_projects_task_makes_is_no_warning(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {"p/vx.toml": _task('allow.read = ["../q/dist/", "../q/gone/"]'), "q/vx.toml": _task('allow.write = ["dist/"]')}
    )
    assert [(d.code, d.path[-7:]) for d in _check(root)] == [("VX407", "read[1]")]


@pytest.mark.parametrize(
    ("entry", "help_"),
    [
        ("src/x/", 'without the slash: "src/x"'),
        ("$HOME/x", "variables"),
        ("${HOME}/x", "variables"),
        ("~bob/x", "no other user's"),
        ("%USERPROFILE%/x", "variables"),
        ("{projectRoot}/src", "begins in the project's directory"),
        ("[slug]/x", 'write "\\\\[slug]/x"'),
        ("C:/x", "drives"),
        ("src\\\\x", "backslash"),
        ("scr", "spelling"),
    ],
)
def test_an_entry_that_names_nothing_is_told_what_is_not_understood(
    workspace_factory: Factory, entry: str, help_: str
) -> None:
    root = workspace_factory({"p/vx.toml": _task(f'allow.read = ["{entry}"]'), "p/src/x": ""})
    (found,) = _check(root)
    assert found.code in {"VX403", "VX407", "VX418"}
    assert help_ in found.help


@pytest.mark.parametrize(
    ("name", "files", "is_told"), [("dist", 0, False), ("made", 3, False), ("made", 1001, True), ("made/", 1001, False)]
)
def test_a_large_directory_granted_by_name_is_told_the_slash(
    workspace_factory: Factory, name: str, files: int, is_told: bool
) -> None:
    root = workspace_factory(
        {"p/vx.toml": _task(f'allow.write = ["{name}"]')} | {f"p/made/{n}": "" for n in range(files)}
    )
    found = {d.code: d for d in _check(root)}
    assert ("VX406" in found) is is_told
    if is_told:
        assert f'"{name}/"' in found["VX406"].help


def test_a_pattern_that_reaches_too_far_into_what_is_read_is_refused(workspace_factory: Factory) -> None:
    block = 'allow.read = ["."]\nallow.write = ["src/**/*.log"]'
    root = workspace_factory({"p/vx.toml": _task(block)} | {f"p/src/{n}": "" for n in range(2001)})
    (found,) = [d for d in _check(root) if d.severity is vxconf.Severity.ERROR]
    assert (found.code, found.path.rpartition(".")[2]) == ("VX313", "write[0]")
    assert found.help == f'grant the directory "{root}/p/src/"'


def test_network_true_where_nobody_lists_a_host_is_a_warning(workspace_factory: Factory) -> None:
    tree = {"p/vx.toml": _task("allow.network = true"), "q/vx.toml": _task('allow.read = ["."]')}
    assert "VX402" in _codes(workspace_factory(tree))
    tree["q/vx.toml"] = _task('allow.network = ["pkg.test"]')
    assert "VX402" not in _codes(workspace_factory(tree))


def test_a_reference_to_another_project_must_lead_somewhere(workspace_factory: Factory) -> None:
    text = '[tasks.a]\ndependsOn = ["q#build", "qq#build", "@acme/q#build", "q#biuld"]\n'
    root = workspace_factory({"p/vx.toml": text, "q/vx.toml": _task(""), "q/package.json": '{"name": "@acme/q"}'})
    found = _check(root)
    assert [(d.code, d.path[-12:]) for d in found] == [("VX312", "dependsOn[1]"), ("VX312", "dependsOn[3]")]
    assert "build" in found[1].help


def test_both_formats_in_one_directory_are_refused_and_neither_is_read(workspace_factory: Factory) -> None:
    root = workspace_factory({"p/vx.toml": "not toml", "p/vx.json": "not json"})
    (found,) = _check(root)
    assert found.code == "VX311"
    assert vxconf.load(str(root)).tasks == ()


def test_a_broken_workspace_file_is_told_at_its_place(workspace_factory: Factory) -> None:
    root = workspace_factory({".vx/workspace.toml": '\nproject = ["a"]\n'})
    (found,) = vxconf.load(str(root)).problems
    assert (found.code, found.file, found.place.line, found.place.column) == ("VX101", ".vx/workspace.toml", 2, 1)
    assert "projects" in found.help


def test_a_workspace_that_holds_home_refuses_its_blocks_once(home: Path) -> None:
    make_tree(home, {"vx.toml": _task('allow.read = ["."]') + _task("", "other")})
    workspace = vxconf.load(str(home))
    (found,) = workspace.diagnostics
    assert (found.code, found.file) == ("VX310", "vx.toml")
    assert "workspace.toml" in found.help
    with pytest.raises(vxconf.Refused):
        workspace.task("build").resolve()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[tasks.a\n", "VX004"),
        (b"\xff\xfe", "VX003"),
        (b"a = 1\na = 2\n", "VX005"),
        (b"# " + b"x" * (9 * 1024 * 1024), "VX002"),
        (None, "VX001"),
        (Link("nowhere"), "VX001"),
        (Link("vx.toml"), "VX001"),
        (Link("/dev/zero"), "VX001"),
    ],
)
def test_a_file_that_is_no_document_is_one_diagnostic(
    workspace_factory: Factory, content: bytes | Link | None, code: str
) -> None:
    root = workspace_factory({"p/vx.toml": content})
    assert _codes(root) == [code]


@pytest.mark.slow
def test_ten_thousand_tasks_are_checked(workspace_factory: Factory) -> None:
    text = "".join(f'[tasks.t{index}.exec]\ncommand = "x"\nsandbox.allow.read = ["a"]\n' for index in range(10_000))
    root = workspace_factory({"p/vx.toml": text, "p/a": ""})
    workspace = vxconf.load(str(root))
    assert workspace.diagnostics == ()
    assert len(workspace.tasks) == 10_000


def test_a_task_file_behind_a_link_belongs_to_the_directory_of_the_link(workspace_factory: Factory) -> None:
    root = workspace_factory(
        {"shared.toml": _task('allow.read = ["src"]'), "p/vx.toml": Link("../shared.toml"), "p/src/x": ""}
    )
    assert vxconf.load(str(root)).task("p#build").resolve().allow_read == (f"{root}/p/src/",)


def test_the_result_is_the_same_through_a_link_to_the_workspace(workspace_factory: Factory, tmp_path: Path) -> None:
    root = workspace_factory({"p/vx.toml": _task('allow.read = ["src"]\nallow.write = ["../dist/"]'), "p/src/x": ""})
    (tmp_path / "alias").symlink_to(root)
    direct = vxconf.load(str(root)).task("p#build").resolve()
    assert vxconf.load(str(tmp_path / "alias" / "p")).task("build").resolve() == direct
