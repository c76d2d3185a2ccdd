"""Prints the ratios this project watches, each measured in one run: `make bench`.

Asserts nothing. The sides of a ratio take turns, so that a busy machine is busy for both, and the
median of each counts. Absolute figures are only context for the ratio beside them.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import sandbox

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench import compiling, names

if TYPE_CHECKING:
    from sandbox.contract.results import Observer

REPOSITORY = Path(__file__).resolve().parents[2]

Measure = Callable[[], object]


class Counts(NamedTuple):
    """How much of each thing is done."""

    files: int = 1000
    opens: int = 2000
    stats: int = 20_000
    grants: int = 1000
    outputs: int = 500
    modules: int = compiling.MODULES


_FEW = Counts(20, 20, 200, 20, 10, 3)


Clock = Callable[[], float]


def _processor_seconds() -> float:
    """The processor time of the children that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, slots=True)
class Ratio:
    """One line of the output: `subject` is divided by `base`; `budget` is what the design allows.

    `clock` gives seconds; the default is the time that passes.
    """

    name: str
    base: Measure
    subject: Measure
    budget: str
    rounds: int
    clock: Clock = time.perf_counter


def _once(measure: Measure, clock: Clock) -> float:
    started = clock()
    measure()
    return (clock() - started) * 1000


def _show(ratio: Ratio, *, few: bool) -> None:
    if not few:
        ratio.base()
        ratio.subject()
    rounds = 1 if few else ratio.rounds
    pairs = [(_once(ratio.base, ratio.clock), _once(ratio.subject, ratio.clock)) for _ in range(rounds)]
    base, subject = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"{ratio.name:<62} {subject / base:6.2f}x  ({base:.1f} -> {subject:.1f} ms; budget {ratio.budget})", flush=True
    )


def _program(*arguments: str, cwd: str | None = None, statuses: tuple[int, ...] = (0,)) -> Measure:
    def run() -> None:
        done = subprocess.run(arguments, cwd=cwd, check=False, stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode not in statuses:
            raise RuntimeError(
                f"{arguments[0]} exited {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}"
            )

    return run


class Box:
    """Sandboxed commands of one session, in a workspace made for it."""

    def __init__(self, session: sandbox.Session, root: str) -> None:
        self.session = session
        self.root = root

    def command(
        self,
        command: str,
        *,
        read: tuple[str, ...] = (),
        write: tuple[str, ...] = (),
        observer: Observer | Literal["auto"] = "auto",
    ) -> Measure:
        """A measure that runs `command` with these grants and insists on exit 0."""
        config = sandbox.ResolvedSandboxConfig(
            platform="linux",
            workspace=self.root,
            project=os.path.join(self.root, "app"),
            allow_read=read,
            allow_write=write,
        )
        request = self.session.request(config, workspace_root=self.root)
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}

        def run() -> None:
            result = self.session.run(request, command=command, env=environment, observer=observer)
            if result.exit_code != 0:
                raise RuntimeError(f"{command} exited {result.exit_code}: {result.refusals} {result.stderr[-500:]!r}")

        return run


_LOOKS = """
import os, sys, time
names = sys.argv[3:]
call = (lambda n: os.close(os.open(n, os.O_RDONLY))) if sys.argv[1] == "open" else os.stat
for i in range(int(sys.argv[2])):
    call(names[i % len(names)])
"""


#: What a compiler does with as many modules, but for the compiling: that would only make the ratio smaller.
_BUILD = """
import os, sys
for directory in range(10):
    os.makedirs(f"dist/{directory}", exist_ok=True)
for i in range(int(sys.argv[1])):
    with open(f"src/{i % 10}.txt") as source:
        text = source.read() * 4096
    for end in (".js", ".d.ts", ".js.map"):
        with open(f"dist/{i % 10}/{i}{end}", "w") as made:
            made.write(text)
"""


def _engine(box: Box, rounds: int, counts: Counts) -> list[Ratio]:
    app = os.path.join(box.root, "app")
    os.makedirs(os.path.join(app, "src"))
    os.makedirs(os.path.join(app, "many"))
    many = tuple(os.path.join(app, "many", f"{index}.txt") for index in range(counts.grants))
    for path in (*many, *(os.path.join(app, "src", f"{index}.txt") for index in range(10))):
        Path(path).write_text("x", encoding="utf-8")
    looks = os.path.join(app, "src", "looks.py")
    Path(looks).write_text(_LOOKS, encoding="utf-8")
    source = (os.path.join(app, "src") + "/",)
    names = " ".join(f"src/{index}.txt" for index in range(10))
    python = os.path.realpath(sys.executable)

    def looking(call: str, count: int) -> tuple[Measure, Measure]:
        command = f"{python} -I -S src/looks.py {call} {count} {names}"
        return box.command(command, read=source, observer="none"), box.command(command, read=source)

    build = os.path.join(app, "src", "build.py")
    Path(build).write_text(_BUILD, encoding="utf-8")
    for name in ("one", "dist"):
        os.makedirs(os.path.join(app, name))
    Path(app, "one", "0.txt").touch()

    def building(grant: str) -> Measure:
        command = f"rm -rf dist/* && {python} -I -S src/build.py {counts.outputs}"
        return box.command(command, read=source, write=(os.path.join(app, grant),))

    def hits(directory: str) -> Measure:
        return box.command("true", write=(os.path.join(app, directory, "*.txt"),))

    def seen(directory: str) -> Measure:
        return box.command("true", read=(os.path.join(app, directory, "*.txt"),))

    bare = _program("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")
    true = box.command("true")
    opens, stats = looking("open", counts.opens), looking("stat", counts.stats)
    return [
        Ratio("sandboxed `true` / bare bwrap --unshare-all true", bare, true, "3", rounds * 3),
        # the start is part of the two behind it
        Ratio("sandboxed `true`, observed / not", box.command("true", observer="none"), true, "-", rounds * 3),
        Ratio(f"{counts.opens:,} opens of granted files, observed / not", *opens, "1.1", rounds * 3),
        Ratio(f"{counts.stats:,} stats of granted files, observed / not", *stats, "1.1", rounds * 3),
        Ratio(
            f"start with {counts.grants:,} one-file grants / with one",
            box.command("true", read=many[:1]),
            box.command("true", read=many),
            "4",
            rounds,
        ),
        Ratio(f"start with a pattern of {counts.grants:,} names / of one", hits("one"), hits("many"), "4", rounds),
        Ratio(f"start with a read pattern of {counts.grants:,} hits / of one", seen("one"), seen("many"), "4", rounds),
        Ratio(
            f"{3 * counts.outputs:,} files into `dist` by name / into `dist/`",
            building("dist/"),
            building("dist"),
            "-",
            rounds,
        ),
    ]


def _compiler(box: Box, rounds: int, modules: int, *, fetch: bool) -> list[Ratio]:
    """`tsc -b` into outputs granted by name and as a directory, from nothing and with nothing to do."""
    app = os.path.join(box.root, "app")
    compiling.project(app, modules)
    tsc = compiling.compiler(fetch=fetch)
    if not tsc:
        return []
    read = (os.path.join(app, "src") + "/", os.path.join(app, "tsconfig.json"))
    whole, name = (os.path.join(app, "dist") + end for end in ("/", ""))
    anew, again = f"rm -rf dist/* dist/.tsbuildinfo && node {tsc} -b", f"node {tsc} -b"

    def build(command: str, grant: str) -> Measure:
        return box.command(command, read=read, write=(grant,))

    by_name = f"`tsc -b` of {modules} modules into `dist` by name / into `dist/`"
    return [
        Ratio(by_name, build(anew, whole), build(anew, name), "1.5", max(1, rounds // 3)),
        Ratio("the same with nothing to do", build(again, whole), build(again, name), "1.5", rounds),
    ]


_TASK = """\
[tasks.{name}.exec]
command = "node scripts/{name}.js {word}"

[tasks.{name}.exec.sandbox.allow]
read = ["src/", "{read}"]
write = ["dist/"]

"""


def _files(root: str, count: int, *, alike: bool) -> list[str]:
    """Task files of three tasks each, in a workspace of their own: the same in every project, or no block twice."""
    os.makedirs(os.path.join(root, ".vx"))
    Path(root, ".vx", "workspace.toml").touch()
    files = []
    for index in range(count):
        project = Path(root, f"p{index}")
        (project / "src").mkdir(parents=True)
        text = ""
        for name in ("build", "test", "lint"):
            word = "all" if alike else f"{name}-{index}"
            read = "package.json" if alike else f"{word}.json"
            (project / read).touch()
            text += _TASK.format(name=name, word=word, read=read)
        files.append(str(project / "vx.toml"))
        Path(files[-1]).write_text(text, encoding="utf-8")
    return files


def _check(root: str, rounds: int, count: int) -> list[Ratio]:
    check = (sys.executable, "-m", "vxconf", "check")
    schema = str(REPOSITORY / "schema" / "vx.schema.json")
    other = (sys.executable, "-m", "check_jsonschema", "--schemafile", schema)
    nothing = _program(sys.executable, "-c", "pass")
    (one,) = _files(os.path.join(root, "one"), 1, alike=True)
    alike, varied = (_files(os.path.join(root, str(kind)), count, alike=kind) for kind in (True, False))
    few = max(1, rounds // 3)
    ratios = [
        Ratio(
            "vxconf check of one file / python -c pass, processor time",
            nothing,
            _program(*check, one),
            "at most 6",
            rounds * 3,
            _processor_seconds,
        ),
        Ratio(
            f"the same among {count:,} projects",
            nothing,
            _program(*check, alike[0]),
            "-",
            rounds * 3,
            _processor_seconds,
        ),
        Ratio(
            f"check-jsonschema of {count:,} files x 3 tasks / vxconf check",
            _program(*check, *alike),
            _program(*other, *alike),
            "at least 8",
            few,
        ),
        Ratio(
            "the same of files no two of which are alike",
            _program(*check, *varied),
            _program(*other, *varied),
            "-",
            few,
        ),
    ]
    taplo = shutil.which("taplo")
    if taplo:
        linted = _program(taplo, "lint", "--schema", f"file://{schema}", *alike)
        ratios.append(
            Ratio(f"vxconf check of {count:,} files / taplo lint", linted, _program(*check, *alike), "2", few)
        )
    return ratios


def _machine() -> str:
    """One line: the day and what the figures were taken on."""
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    return (
        f"{time.strftime('%Y-%m-%d')}  {platform.node()}  {kernel}  {os.cpu_count()} x {model or 'unknown'}"
        f"  {memory:.1f} GiB  Python {platform.python_version()}"
    )


def main() -> None:
    """Measures everything and prints one line for each ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="pairs to measure for each ratio")
    parser.add_argument("--few", action="store_true", help="do next to nothing, to see whether this bench still works")
    given = parser.parse_args()
    rounds, counts = (1, _FEW) if given.few else (given.rounds, Counts())
    # an installed program has its bytecode; one that may not keep it compiles itself every time
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(_machine(), flush=True)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="vxconf-bench-"))
    try:
        for ratio in _check(os.path.join(scratch, "files"), rounds, counts.files):
            _show(ratio, few=given.few)
        report = sandbox.probe()
        if not report.available:
            print(f"no sandbox can be built here: {report.reason}")
            return
        print(f"observer: {report.observer}")
        with sandbox.Session() as session:
            for ratio in _engine(Box(session, os.path.join(scratch, "workspace")), rounds, counts):
                _show(ratio, few=given.few)
            box = Box(session, os.path.join(scratch, "compiled"))
            for ratio in _compiler(box, rounds, counts.modules, fetch=not given.few):
                _show(ratio, few=given.few)
        print("through the mask / on the plain file system")
        names.main(5 if given.few else 500, few=given.few)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
