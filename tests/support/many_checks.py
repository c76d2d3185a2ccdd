"""A program: checks a workspace together, in several processes, and one thing at a time, and says where they differ.

One of its own, since it forks, which a process that runs tests in threads should not.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from vxconf.cli.commands.check import CheckCommand
from vxconf.diagnostics.diagnostic import Diagnostic, in_order
from vxconf.workspace.check_files import PLATFORMS, _block, _cache
from vxconf.workspace.unknown_references import unknown_references
from vxconf.workspace.workspace import Workspace, load

_READS = (
    *(
        "src",
        "src/",
        "src/*.ts",
        "src/**",
        "missing",
        "miss*ng",
        "{src,lib}/",
        "lib",
        "link",
        "out",
        "../p0/src",
        "/etc/",
    ),
    *("~/.ssh/", "~/.npmrc", "sub/", ".", "a[", "{", "\\*"),
)
_WRITES = (
    "dist",
    "dist/",
    "src",
    "link/",
    "out/x",
    "../p1/dist",
    "sub/dist",
    ".git/",
    "/",
    "dist/*.js",
    "../.vx/cache/",
)
_HOSTS = ("pkg.test", "pkg.test:443", "*.packages.test", "localhost:5432", "http://x.test", "169.254.169.254", "*")
_OTHERS = (
    "exec.sandbox.pty = true",
    "exec.sandbox.allow.network = true",
    "exec.sandbox.allow.systemInfo = ['x y', 'hw.ncpu']",
    "exec.sandbox.allow.unixSockets = ['/var/run/docker.sock', 'src']",
    "exec.sandbox.deny.network = ['pkg.test']",
    "exec.sandbox.allow.localBinding = [80, 70000]",
    "exec.sandbox.hermetic = 1",
    "dependsOn = ['b', 'p1#a', '../p2#b']",
    "cache.outputs.files = ['dist/**']",
    "exec.sandbox.ignore.read = ['~/.ssh/**']",
)


def make(root: Path, seed: int, projects: int) -> None:
    """Writes a workspace whose files are alike, healthy or not."""
    draw = random.Random(seed)  # noqa: S311  the same one again for the same number
    (root / ".vx").mkdir(parents=True)
    (root / ".vx" / "workspace.toml").write_text(draw.choice(("", 'projects = ["p*"]\n', "projects = 1\n")))
    texts = [_text(draw) for _ in range(max(2, projects // 3))]
    for index in range(projects):
        directory = root / f"p{index}"
        for name in draw.sample(("src", "lib", "dist", "out", "sub"), draw.randint(0, 5)):
            (directory / name).mkdir(parents=True, exist_ok=True)
            (directory / name / draw.choice(("a.ts", "b.js"))).touch()
        directory.mkdir(exist_ok=True)
        if draw.random() < 0.3:
            (directory / "link").symlink_to(draw.choice(("src", "/etc", "../p0", "link", "nowhere", "../.vx")))
        if draw.random() < 0.1 and (directory / "sub").is_dir():
            (directory / "sub" / "vx.toml").write_text(draw.choice(texts))
        if draw.random() < 0.1:
            (directory / "vx.json").write_text("{}")
        (directory / "vx.toml").write_text(draw.choice(texts))


def _text(draw: random.Random) -> str:
    if draw.random() < 0.05:
        return "[tasks\n"
    text = draw.choice(("", 'name = "x"\n', "# nothing\n"))
    blocks = [_lines(draw) for _ in range(2)]
    for name in draw.sample("abcd", draw.randint(1, 4)):
        text += f"[tasks.{name}]\nexec.command = 'x'\n" + draw.choice(blocks)
    return text


def _lines(draw: random.Random) -> str:
    def some(entries: tuple[str, ...]) -> str:
        return "[" + ", ".join(f"'{entry}'" for entry in draw.sample(entries, draw.randint(0, 2))) + "]"

    text = f"exec.sandbox.allow.read = {some(_READS)}\n"
    if draw.random() < 0.4:
        text += f"exec.sandbox.allow.write = {some(_WRITES)}\n"
    more = draw.sample(_OTHERS, draw.choice((0, 0, 0, 1, 2)))
    if draw.random() < 0.3 and not any("allow.network" in line for line in more):
        text += f"exec.sandbox.allow.network = {some(_HOSTS)}\n"
    return text + "".join(f"{line}\n" for line in more)


def together(paths: list[str], processes: int) -> CheckCommand:
    """The files checked in one go."""
    checker = CheckCommand(PLATFORMS, processes=processes)
    for path in paths:
        checker.path(path)
    checker.finish()
    return checker


def alone(path: str) -> tuple[Diagnostic, ...]:
    """What is wrong with a file, when nothing was looked at before and every block is judged by itself."""
    workspace = Workspace(load(os.path.dirname(path)).chosen_by, name_of=os.path.relpath)
    project = workspace.project_at(os.path.realpath(os.path.dirname(path)))
    loaded = project.loaded
    assert loaded is not None
    found = list(loaded.diagnostics)
    said = {diagnostic.path for diagnostic in found if diagnostic.is_error}
    for task in project.tasks if loaded.document is not None else ():
        if task.model is not None and loaded.document is not None:
            judged = [*unknown_references(task), *_cache(task, task.model, loaded.document)]
            block = task.model.exec.sandbox if task.model.exec is not None else None
            if block is not None:
                judged += _block(task, block, loaded.document, PLATFORMS)
            found += [diagnostic for diagnostic in judged if diagnostic.path not in said]
    return in_order(found)


def main(root: str, seed: str, projects: str) -> None:
    """Prints how many problems there are, and every difference."""
    make(Path(root), int(seed), int(projects))
    os.chdir(root)
    paths = sorted(str(path) for path in Path().rglob("vx.toml"))
    one = together(paths, 1)
    for processes in (2, 5, None):
        several = together(paths, processes or 1 << 10)
        for what in ("found", "sources", "files"):
            if getattr(several, what) != getattr(one, what):
                sys.stdout.write(f"{what} differ with {processes} processes\n")
        if list(several.workspaces) != list(one.workspaces):
            sys.stdout.write(f"workspaces differ with {processes} processes\n")
    for path in paths:
        names = {path, os.path.join(os.path.dirname(path), "vx.json")}
        mine = [diagnostic for diagnostic in one.found if diagnostic.file in names]
        if mine != list(alone(path)):
            sys.stdout.write(f"{path} alone: {mine} is not {alone(path)}\n")
    sys.stdout.write(f"{len(one.found)} found in {one.files}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
