"""The same tasks under every observer: the same verdict, but for what the documentation says one alone sees."""

from __future__ import annotations

import shlex
import shutil
import sys

import pytest

from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown, violated
from tests.support.observers import NEEDS_MASK
from tests.support.traces import COMMANDS, HOST, PROJECT

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here"),
    NEEDS_MASK,
]

_OBSERVERS = ("mask", "notify", "strace")
_PYTHON = f"{sys._base_executable} -I -S -c"  # type: ignore[attr-defined]

_READS = {
    "open": "cat notes.md",
    "open of nothing": "cat nowhere",
    "probe": "test -e notes.md; test -e nowhere",
    "listing": "ls conf",
    "listing of what leads to a grant": "ls . .. ../..",
    "chdir": "cd conf",
    "chdir and relative": "cd lib && cat ../notes.md ../conf/real.json",
    "execute": "./notes.md",
    "execute through a path": "PATH=conf:$PATH; gen",
    "readlink": "readlink notes.md",
    "through a granted directory and out again": "cat lib/../conf/real.json",
    "left again": "cat conf/../lib/cart.py",
    "a neighbour's": "cat ../../libs/money/src/coin.py",
    "the root's": "cat ../../base.toml",
    "outside": "cat /etc/hostname /nowhere ~/.nowhere",
    "own directory in proc": "cat /proc/self/cwd/notes.md",
    "odd names": "cat 'a b' 'q\"t' 'é' '= -1 ENOENT (x)' '<unfinished ...>'",
    "long names": f"cat {'n' * 255}",
    "threads": f"""{_PYTHON} 'import threading as t, os
for n in range(8): t.Thread(target=os.path.exists, args=("notes.md",)).start()'""",
    "children": "for n in 1 2 3; do (cd lib; cat ../notes.md) & done; wait",
    "vfork": f'{_PYTHON} \'import subprocess; subprocess.run(["cat", "../notes.md"], cwd="lib")\'',
    "a descriptor of a directory": f"""{_PYTHON} 'import os; d = os.open("lib", os.O_RDONLY)
try: os.stat("../notes.md", dir_fd=d)
except OSError: pass
os.fchdir(d); os.access("../conf/real.json", 0)'""",
}

_WRITES = {
    "create": "echo x > new",
    "create in what is read": "echo x > lib/new",
    "change": "echo x >> lib/cart.py",
    "truncate": ": > lib/cart.py",
    "mkdir": "mkdir new; mkdir -p lib; mkdir lib/new",
    "deep mkdir": "mkdir -p new/deep; cd new/deep",
    "remove": "rm -f lib/cart.py; rm -rf lib",
    "remove nothing": "rm -f lib/nowhere nowhere",
    "rename": "mv lib/cart.py lib/other; mv lib/cart.py out/x",
    "link": "ln lib/cart.py lib/other; ln -s cart.py lib/link",
    "attributes": "chmod 600 lib/cart.py",
    "times": "touch -c lib/cart.py; touch lib/cart.py",
    "into grants": "echo x > out/a; mkdir out/d; mv out/a out/d/b; rm -r out/d",
    "outside": "echo x > ~/new; echo x > /etc/new; echo x > ../new",
    "temporary": 'echo x > "$TMPDIR/a"; mkdir "$TMPDIR/b"; echo x > /dev/null',
}

_TASKS = {**{f"read: {name}": text for name, text in _READS.items()}, **{f"write: {n}": t for n, t in _WRITES.items()}}


_Found = dict[str, tuple[int | None, list[tuple[str, str]]]]


def _verdicts(shop: Workspace, command: str, read: list[str], write: list[str]) -> _Found:
    found: _Found = {}
    for observer in _OBSERVERS:
        for directory in write:
            shutil.rmtree(shop.project / directory, ignore_errors=True)
            (shop.project / directory).mkdir()
        result = shop.run(f"{command}\ntrue", read=read, write=write, observer=observer)
        assert (result.observer, result.trace) == (observer, "complete"), shown(result)
        found[observer] = (result.exit_code, sorted(set(violated(result, shop.project))))
    return found


@pytest.mark.parametrize("name", _TASKS)
def test_every_observer_gives_the_same_verdict(quick_shop: Workspace, name: str) -> None:
    (quick_shop.project / "out").mkdir()
    (quick_shop.project / "notes.md").chmod(0o755)
    found = _verdicts(quick_shop, _TASKS[name], ["lib/"], ["out/"])
    assert found["mask"] == found["notify"] == found["strace"], found


#: Links that no grant covers but those in `lib`, each to what one does.
_LINKS = {
    "file": "lib/cart.py",
    "absolute": "{project}/lib/cart.py",
    "directory": "lib",
    "dangling": "lib/nowhere",
    "link": "file",
    "out-link": "out/x",
    "lib/shown": "../file",
    "lib/shown-directory": "../directory",
    "lib/round": "../directory/../notes.md",
}
_THROUGH_LINKS = {
    "to a file": "cat file",
    "absolute": "cat absolute",
    "to a directory": "cat directory/cart.py; ls directory; cd directory",
    "dangling": "cat dangling; test -e dangling; readlink dangling",
    "to a link": "cat link",
    "not followed": "readlink file; test -L absolute; ls -ld link",
    "a slash behind it": "ls directory/ directory/.",
    "left again": "cat directory/../notes.md",
    "behind a granted one": "cat lib/shown",
    "to a directory behind a granted one": "cat lib/shown-directory/cart.py",
    "behind a granted one, and out": "cat lib/round",
    "through a descriptor": "cat /proc/self/cwd/file",
    "written through": "echo x > out-link; echo x > file",
    "into it": "echo x > directory/new; mkdir directory/more",
    "taken away": "rm -f file; mv absolute other; ln -s x dangling; ln link out/copy",
    "executed": "./file; directory/cart.py",
}


@pytest.mark.parametrize("name", _THROUGH_LINKS)
def test_a_link_that_is_hidden_leads_nowhere_whoever_observes(quick_shop: Workspace, name: str) -> None:
    for link, target in _LINKS.items():
        (quick_shop.project / link).symlink_to(target.format(project=quick_shop.project))
    found = _verdicts(quick_shop, _THROUGH_LINKS[name], ["lib/"], ["out/"])
    assert found["mask"] == found["notify"] == found["strace"], found
    code, told = found["mask"]
    assert code == 1
    assert told


@pytest.mark.parametrize("name", COMMANDS)
def test_real_tools_get_the_same_verdict_from_every_observer(quick_shop: Workspace, name: str) -> None:
    program = shlex.split(COMMANDS[name].removeprefix("cd src && ").removeprefix("PYTHONPATH=lib "))[0]
    if shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")
    make_tree(quick_shop.project, {f[len(PROJECT) + 1 :]: text for f, text in HOST.items() if f.startswith(PROJECT)})
    (quick_shop.project / "run.sh").chmod(0o755)
    found = _verdicts(quick_shop, COMMANDS[name], ["lib/", "src/", "run.sh"], ["out/"])
    assert found["mask"] == found["notify"] == found["strace"], found


def test_what_the_kernel_looks_up_itself_the_mask_alone_sees(quick_shop: Workspace) -> None:
    project = quick_shop.project
    make_tree(project, {"lib/script": f"#!{project}/conf/interpreter\n", "conf/interpreter": "#!/bin/sh\n"})
    for path in ("lib/script", "conf/interpreter"):
        (project / path).chmod(0o755)
    found = _verdicts(quick_shop, "lib/script", ["lib/"], [])
    assert found["mask"] == (1, [("read", "conf")])
    assert found["notify"] == found["strace"] == (0, [])
