"""What a task leaves in its write grants under names that other programs execute, by whatever calls it made them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import ResolvedSandboxConfig
from sandbox.machine.ask_facts import HostFiles
from sandbox.planning import linux_plan
from sandbox.request.protected_names import named_below
from sandbox.scratch import names_left_behind
from sandbox.scratch.quarantine import Quarantine
from tests.conftest import Link, make_tree
from tests.redteam.conftest import PYTHON, Box, shown, violated
from tests.support.observers import NEEDS_MASK

_REFUSED = {"EROFS", "ENOENT", "ENOTEMPTY", "EEXIST", "EXDEV", "EPERM", "EBUSY", "EINVAL", "EOPNOTSUPP"}


def obeyed(directory: Path) -> set[str]:
    """What of a directory other programs would execute or obey, links not followed."""
    found = set()
    for here, directories, files in os.walk(directory):
        names = {name.lower() for name in (*directories, *files)}
        bare = "head" in names and names >= {"objects", "refs"}
        found |= {os.path.relpath(os.path.join(here, name), directory) for name in files if name == ".git"}
        for name in (*directories, *files):
            path = os.path.relpath(os.path.join(here, name), directory)
            if (bare and name.lower() in ("config", "hooks")) or named_below(f"/{path}", "/", git_config=False):
                found.add(path)
    return found


@pytest.mark.parametrize("deep", ["", "1/2/3/4/5"])
def test_files_without_a_name_exchanges_and_failed_removals_plant_nothing(each_box: Box, deep: str) -> None:
    told, result = each_box.attack("unnamed", "out", deep or "''", 0)
    assert told.pop("linked plain", "done") == "done"
    assert obeyed(each_box.project / "out") == set(), (told, shown(result))
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)
    if each_box.observer != "strace":
        wrong = {label: answer for label, answer in told.items() if answer not in _REFUSED and "number" not in label}
        assert wrong == {}, shown(result)


@NEEDS_MASK
@pytest.mark.parametrize("write", ["dist", "*"])
def test_the_server_of_names_judges_them_as_well(box: Box, write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the look afterwards taken away, what the server answered is all there is."""
    box.write = (write,)
    (box.project / "dist").mkdir()
    monkeypatch.setattr(names_left_behind, "set_aside", lambda *_arguments, **_options: ())
    told, result = box.attack("unnamed", "dist", "1/2/3/4", 0.4)
    assert obeyed(box.project / "dist") == set(), (told, shown(result))
    assert {told[label] for label in told if label.startswith(("rmdir", "rename"))} == {"EROFS"}, told


#: Each by itself makes what other programs execute, deeper than anybody names it.
_PLANTS = {
    "a file": "echo evil > .bashrc",
    "a directory": "mkdir .vscode; echo evil > .vscode/tasks.json",
    "a directory with one deep inside": "mkdir -p x/y/.husky; mv x z",
    "a link": "ln -s /etc/passwd .zshenv",
    "a second name": "echo evil > x; ln x .envrc",
    "a pipe": "mkfifo .exrc",
    "in capitals": "echo evil > .VIMRC; mkdir .Cursor",
    "settings of an agent": "mkdir .claude; echo '{}' > .claude/settings.local.json",
    "hooks": "mkdir -p x/.git/hooks; echo evil > x/.git/hooks/post-checkout",
    "a pointer to a repository": "echo 'gitdir: ../x' > .git",
    "a bare repository": "mkdir -p x/objects x/refs; echo 'ref: refs/heads/m' > x/HEAD; echo evil > x/config",
    "a bare repository in files": "mkdir x; cd x; touch objects refs; chmod +x *; echo evil > config; echo x > HEAD",
    "where its user may not look": "mkdir -p x/y/.idea; echo evil > x/y/.bashrc; chmod 0 x/y/.idea x/y; chmod 111 x",
    "where nobody may write": "mkdir -p x/.vscode; echo evil > x/.bashrc; chmod 555 x/.vscode x",
}
_DEEP = "out/1/2/3/4/5"


@pytest.mark.parametrize("plant", _PLANTS)
@pytest.mark.parametrize("looks", [True, pytest.param(False, marks=pytest.mark.one_user)])
def test_what_is_new_is_set_aside_at_any_depth_and_counts(
    box: Box, plant: str, monkeypatch: pytest.MonkeyPatch, *, looks: bool
) -> None:
    """Nobody watches here: the look afterwards is all there is, and without it the name stays."""
    box.observer = "none"
    if not looks:
        monkeypatch.setattr(names_left_behind, "set_aside", lambda *_arguments, **_options: ())
    result = box.run(f"mkdir -p {_DEEP}; cd {_DEEP}; {_PLANTS[plant]}")
    assert result.command_exit_code == 0, shown(result)
    subprocess.run(["chmod", "-R", "u+rwx", box.project / "out"], check=True)
    assert (obeyed(box.project / "out") == set()) is looks, shown(result)
    assert result.exit_code == int(looks), shown(result)
    assert all("set-aside/" in violation.line for violation in result.violations), shown(result)


@pytest.mark.parametrize("levels", [200, 2500])
def test_no_depth_hides_one(box: Box, levels: int) -> None:
    box.observer = "none"
    command = (
        f"import os\nfor _ in range({levels}):\n os.mkdir('dd')\n os.chdir('dd')\n"
        "open('.bashrc', 'w').close()\nos.mkdir('.vscode')\n"
    )
    (box.project / "lib/deep.py").write_text(command)
    result = box.run(f"cd out && {PYTHON} ../lib/deep.py")
    assert (result.command_exit_code, result.exit_code) == (0, 1), shown(result)
    assert {violation.path.rpartition("/")[2] for violation in result.violations} == {".bashrc", ".vscode"}
    subprocess.run(["rm", "-rf", box.project / "out"], check=True)


def test_what_makes_a_directory_a_repository_goes_and_what_was_there_stays(box: Box) -> None:
    make_tree(box.project, {"out/src/config": "mine\n", "out/src/hooks/use.js": "mine\n"})
    box.observer = "none"
    result = box.run("cd out/src && mkdir objects refs && echo 'ref: refs/heads/m' > HEAD")
    assert violated(result, box.project) == {("write", "out/src/HEAD")}, shown(result)
    assert (
        (box.project / "out/src/config").read_text() == (box.project / "out/src/hooks/use.js").read_text() == "mine\n"
    )
    assert not (box.project / "out/src/HEAD").exists()


def test_a_grant_outside_the_workspace_is_looked_through(box: Box, base: Path) -> None:
    make_tree(base / "elsewhere", {"a/.zshrc": "mine\n"})
    config = ResolvedSandboxConfig(
        platform="linux", workspace=str(box.root), project=str(box.project), allow_write=(f"{base}/elsewhere/",)
    )
    request = box.session.request(config, workspace_root=str(box.root))
    command = f"cd {base}/elsewhere; echo evil > a/.zshrc; mkdir -p b/.vscode"
    result = box.session.run(request, command=command, observer="none")
    assert obeyed(base / "elsewhere") == {"a/.zshrc"}, shown(result)
    assert (base / "elsewhere/a/.zshrc").read_text() == "mine\n"


_KEPT = {"a/b/c/d/.bashrc": "mine\n", "a/b/c/d/.git/hooks/x": "mine\n", "e.git/HEAD": "x\n", "e.git/config": "mine\n"}
_KEPT |= {"e.git/objects/x": "x\n", "e.git/refs/x": "x\n", "e.git/hooks/x": "mine\n"}


@pytest.mark.parametrize("mounts", [True, pytest.param(False, marks=pytest.mark.one_user)])
def test_one_that_exists_is_laid_over_at_any_depth(box: Box, monkeypatch: pytest.MonkeyPatch, *, mounts: bool) -> None:
    """Without the mounts it is changed in place, and a look at names tells nothing of that."""
    make_tree(box.project / "out", dict(_KEPT))
    box.observer = "none"
    if not mounts:
        monkeypatch.setattr(linux_plan, "_pin", lambda *_arguments: None)
    files = " ".join(name for name, text in _KEPT.items() if text == "mine\n")
    result = box.run(f"cd out; for f in {files}; do echo evil > $f; done; mv a/b a/x; mv e.git f.git; true")
    left = {name: (box.project / "out" / name) for name in _KEPT}
    same = all(path.exists() and path.read_text() == _KEPT[name] for name, path in left.items())
    assert same is mounts, shown(result)


@pytest.mark.parametrize("attack", ["rm a/.zshrc a/vx.toml", "mv a/.zshrc x; mv a/vx.toml y; echo evil > a/vx.toml"])
def test_a_link_that_is_taken_away_or_replaced_is_put_back(box: Box, attack: str) -> None:
    """Nothing can be mounted over a link."""
    links = {"out/a/.zshrc": Link("rc"), "out/b/.zshrc": Link("rc"), "out/a/vx.toml": Link("../../base.toml")}
    make_tree(box.project, {**links, "out/b/rc": "x\n"})
    box.observer = "none"
    result = box.run(f"cd out; {attack}; echo evil > a/.zshrc; mkdir new")
    assert violated(result, box.project) == {("write", "out/a/.zshrc"), ("write", "out/a/vx.toml")}, shown(result)
    assert {name: Link(os.readlink(box.project / name)) for name in links} == links
    assert obeyed(box.project / "out") == {"a/.zshrc", "a/vx.toml", "b/.zshrc"}


def test_what_others_do_meanwhile_is_told_and_nothing_is_deleted(box: Box) -> None:
    make_tree(box.project, {"out/a/.bashrc": "mine\n", "out/.vscode/settings.json": "mine\n"})

    def meanwhile(_: bytes) -> None:
        make_tree(box.project, {"out/b/.bashrc": "of the host\n", "out/new": "replaced\n"})
        os.rename(box.project / "out/new", box.project / "out/a/.bashrc")
        (box.project / "out/.vscode/settings.json").write_text("edited\n")
        (box.project / "out/ready").touch()

    command = "echo go; until [ -e out/ready ]; do sleep 0.05; done"
    result = box.run(command, observer="none", on_stdout=meanwhile)
    lines = {os.path.relpath(v.path, box.project): v.line for v in result.violations}
    assert lines.keys() == {"out/a/.bashrc", "out/b/.bashrc"}, shown(result)
    assert (box.project / "out/a/.bashrc").read_text() == "replaced\n"
    assert (box.project / "out/.vscode/settings.json").read_text() == "edited\n"
    moved = Path(lines["out/b/.bashrc"].partition(" was moved to ")[2])
    assert moved.read_text() == "of the host\n"


@pytest.mark.parametrize("pattern", ["gen/*", "gen/**", "gen/*/.vscode/*"])
def test_below_a_pattern_what_it_matches_is_looked_through(box: Box, pattern: str) -> None:
    """No call gets past the server of names, so the files are put there by hand."""
    make_tree(box.project, {"gen/old/.vscode/x": "mine\n", "other/.vscode/x": "mine\n"})
    box.write = (pattern,)
    plan = linux_plan.plan(box.request(), HostFiles())
    was = names_left_behind.before(plan, HostFiles())
    make_tree(box.project, {"gen/new/.vscode/x": "evil\n", "gen/old/.vscode/y": "x\n", "other/new/.vscode/x": "mine\n"})
    told = names_left_behind.set_aside(plan, was, shelf=Quarantine(str(box.root.parent / "temp")))
    assert [os.path.relpath(violation.path, box.project) for violation in told] == ["gen/new/.vscode"]
    assert obeyed(box.project / "gen") == {"old/.vscode", "old/.vscode/x", "old/.vscode/y"}
    assert (box.project / "other/new/.vscode/x").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may look into everything")
def test_directories_nobody_could_come_into_are_left_as_they_are(box: Box) -> None:
    make_tree(box.project, {"out/closed/.vscode/x": "mine\n", "out/known/.vscode/x": "mine\n"})
    box.observer = "none"
    (box.project / "out/closed").chmod(0)
    result = box.run("mkdir out/new")
    assert (result.exit_code, result.violations) == (0, ()), shown(result)
    assert os.stat(box.project / "out/closed").st_mode & 0o777 == 0
    (box.project / "out/closed").chmod(0o755)
    assert (box.project / "out/closed/.vscode/x").read_text() == "mine\n"


def test_what_is_told_of_a_name_stays_on_one_line_and_says_the_remedy(box: Box) -> None:
    box.observer = "none"
    result = box.run('cd out; d=$(printf \'a\\033[2J\\nb\'); mkdir "$d"; echo x > "$d/vx.toml"')
    (told,) = result.violations
    assert told.path.endswith("/a\x1b[2J\nb/vx.toml")
    assert told.line.isprintable(), told.line
    assert told.line.endswith("name that very file in allow.write")


def test_one_that_was_replaced_below_a_granted_name_is_set_aside(box: Box) -> None:
    """Nothing is mounted there. The server of names lets no call past, so it is replaced by hand."""
    make_tree(box.project, {"dist/a/.bashrc": "mine\n", "dist/new": "evil\n"})
    box.write = ("dist",)
    plan = linux_plan.plan(box.request(), HostFiles())
    was = names_left_behind.before(plan, HostFiles())
    os.rename(box.project / "dist/new", box.project / "dist/a/.bashrc")
    told = names_left_behind.set_aside(plan, was, shelf=Quarantine(str(box.root.parent / "temp")))
    assert [os.path.relpath(violation.path, box.project) for violation in told] == ["dist/a/.bashrc"]
    assert obeyed(box.project / "dist") == set()


_NAMELESS = """
import ctypes, os, sys
fd, libc = os.open("out", os.O_TMPFILE | os.O_RDWR, 0o644), ctypes.CDLL(None, use_errno=True)
old, flags = {"number": (b"", 0x1000), "link": (b"/proc/self/fd/%d" % fd, 0x400)}[sys.argv[1]]
print(libc.linkat(fd, old, -100, b"lib/new", flags))
"""


@pytest.mark.parametrize("way", ["number", "link"])
def test_a_file_without_a_name_that_is_linked_where_nothing_is_granted_counts(each_box: Box, way: str) -> None:
    make_tree(each_box.project, {"lib/nameless.py": _NAMELESS})
    result = each_box.run(f"{PYTHON} lib/nameless.py {way}")
    assert result.stdout == b"-1\n", shown(result)
    assert violated(result, each_box.project) == {("write", "lib/new")}, shown(result)


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGHUP])
def test_what_a_run_left_that_a_signal_ended_is_looked_at(base: Path, number: int) -> None:
    block = 'exec.sandbox.allow.write = ["out/"]\nexec.command = "touch out/.bashrc; echo ready; sleep 60"\n'
    root = make_tree(base / "ws", {".vx/workspace.toml": "", "vx.toml": f"[tasks.t]\n{block}", "out": None})
    command = [sys.executable, "-m", "vxconf", "run", "--observer", "none", "t"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(number)
    assert (running.returncode, os.listdir(root / "out")) == (128 + number, [])
