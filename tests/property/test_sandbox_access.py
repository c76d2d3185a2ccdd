"""What a plan says of a path is what a task finds there, over random trees, links, grants and walls."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, event, example, given, note, settings

from sandbox import Session
from sandbox.base import paths
from sandbox.contract.config import Reach
from sandbox.contract.intents import Intent
from sandbox.machine.ask_facts import HostFiles
from sandbox.planning.operations import Absent, Bind, Cover, Empty, Held, Make, ReadOnlyRoot, Seal, Way
from sandbox.request.protected_names import CARRIERS
from tests.support import inside, worlds
from tests.support.observers import OBSERVERS
from tests.support.plans import placed_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.contract.results import RunResult
    from sandbox.planning.path_reach import Plan

pytestmark = pytest.mark.kernel

#: What the program adds to a name, or makes in a directory.
_BESIDE = ".probe-beside"
_WRITABLE = (Reach.WRITE, Reach.NAME)
_PROGRAM = Path(inside.__file__).resolve()
_PROGRAMS = (os.path.realpath(sys.base_prefix), str(_PROGRAM.parent))
_COMMAND = shlex.join((os.path.realpath(sys.executable), "-I", "-S", str(_PROGRAM)))

# an example is a whole sandbox: a profile that wants more of everything gets more of these as well
_EXAMPLES = max(1, settings.default.max_examples // 5) if settings.default is not None else 10

#: A path goes on behind a link to something that may be made, and so leads nowhere.
_THROUGH_NOTHING = worlds.World(
    workspace="ws",
    project="",
    entries={"ws/node_modules/config": "-> ../b", "ws/config/a": "dir"},
    reads=(),
    writes=(),
    nested=(),
    cache=None,
    names=(("ws/config/a", ""), ("ws/node_modules/config", "")),
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


class _Expected:
    """What a plan says of one path, with the host for what a visible place holds."""

    def __init__(self, plan: Plan, path: str, host: dict[str, Any], *, base: str, traced: bool) -> None:
        self._plan = plan
        self._base = base
        self._path = path
        self._host = host
        self._files = HostFiles()
        self.reach = plan.access(path, self._files)
        self.real = os.path.realpath(path)
        #: The name itself, were it a link; empty where the way to it is hidden or it has none of its own.
        self.name = ""
        head, _, tail = path.rpartition("/")
        if tail not in {"", ".", ".."} and plan.access(head or "/", self._files) is not Reach.HIDDEN:
            self.name = os.path.join(os.path.realpath(head or "/"), tail)
        within = os.path.join(self.real, _BESIDE)
        changed = {"write": self.real, "create in": within, "mkdir in": within}
        changed |= dict.fromkeys(("create", "rename", "unlink"), self.name)
        #: What strace only hears of: a change that no mount keeps the task from, and where it is made.
        self._told = {what: place for what, place in changed.items() if traced and self._is_open_for_its_name(place)}

    def wrong(self, found: dict[str, Any]) -> list[str]:
        """Every difference, as a line for people."""
        wanted = self._reads() | self._writes()
        if not (self.real + "/").startswith(self._base + "/"):
            # who else is at work there is nobody's business here
            wanted.pop("list")
            found.pop("list")
        lines = [
            f"{name}: wanted {wanted[name]!r}, found {found[name]!r}"
            for name in wanted
            if not self._fits(wanted, found, name)
        ]
        missing = [name for name in found if name not in wanted]
        assert not missing, f"nothing is expected of {missing}"
        return [f"{self._path!r} ({self.reach.value}; name {self.name!r}): {line}" for line in lines]

    def _fits(self, wanted: dict[str, Any], found: dict[str, Any], name: str) -> bool:
        if name in self._told:
            return True
        # which errno a refusal has is the kernel's choice among several that are true at once
        if wanted[name] is None:  # a directory on the way to names may have to be copied
            return True
        if wanted[name] == "refused":
            return isinstance(found[name], str)
        return bool(wanted[name] == found[name])

    def untold(self, found: dict[str, Any], told: set[str]) -> list[str]:
        """What was done though no task may, and is no violation either."""
        done = {what: place for what, place in self._told.items() if not isinstance(found[what], str)}
        return [
            f"{self._path!r}: nobody told of {what} at {place!r}" for what, place in done.items() if place not in told
        ]

    def _is_open_for_its_name(self, place: str) -> bool:
        """Whether a path is protected for its name and lies in what the mounts let be written."""
        if not place:
            return False
        decided = self._plan.decided_by(place)
        named = self._plan.executed.protects(place) or os.path.basename(place).lower() in CARRIERS
        return named and isinstance(decided, Bind) and decided.writable and decided.path != place

    def _reads(self) -> dict[str, Any]:
        host = self._host
        wanted: dict[str, Any] = {"lstat": "refused", "stat": "refused", "read": "refused", "list": "refused"}
        if self.name and (self._is_shown(self.name) or self._sealed(self.name)):
            wanted["lstat"] = [stat.S_IFREG, ""] if self._sealed(self.name) else host["lstat"]
        elif not self.name and self.reach is not Reach.HIDDEN:
            wanted["lstat"] = host["lstat"]
        if self.reach is Reach.HIDDEN:
            if self._sealed(self.real) and wanted["lstat"] != "refused":
                wanted["stat"] = [stat.S_IFREG, True]
            return wanted
        wanted |= {"stat": host["stat"], "read": host["read"], "list": host["list"]}
        decided = self._plan.decided_by(self.real)
        if isinstance(decided, (Cover, Way, Empty)) and isinstance(host["list"], list):
            wanted["list"] = sorted({*placed_in(self._plan, self.real), *self._served_in(self.real, host["list"])})
        elif isinstance(decided, Held) and isinstance(host["list"], list):
            # what is made for the run alone is not there before or after
            makes = (one.path for one in self._plan.operations if isinstance(one, Make))
            here = f"{self.real}/"
            made = {path.removeprefix(here).split("/")[0] for path in makes if path.startswith(here)}
            wanted["list"] = sorted({*host["list"], *made})
        return wanted

    def _is_shown(self, real: str) -> bool:
        return self._plan.reach(real) is not Reach.HIDDEN or self._plan.is_way(real, self._files)

    def _served_in(self, directory: str, names: list[str]) -> list[str]:
        """What is served by name in a directory that shows nothing else of the host's."""
        paths = {name: os.path.join(directory, name) for name in names}
        return [n for n, p in paths.items() if self._plan.granted.granted(p) or self._plan.is_way(p, self._files)]

    def _writes(self) -> dict[str, Any]:
        plan = self._plan
        writable = self.reach in _WRITABLE
        directory = isinstance(self._host["list"], list)
        own = bool(self.name) and plan.reach(self.name) in _WRITABLE
        # beside a granted name anything can be made; where a pattern leads, directories
        shown = directory and self.reach is not Reach.HIDDEN
        stages = shown and (
            plan.stages(self.real) or (plan.granted.stages(self.real) and plan.is_way(self.real, self._files))
        )
        within = os.path.join(self.real, _BESIDE)
        stages = stages and not plan.executed.protects(within)
        leads = shown and not writable and plan.leads(within) and not plan.executed.protects(within)
        beside = bool(self.name) and plan.beside(self.name) and not self._is_shown(self.name)
        there = isinstance(self._host["lstat"], list)
        # a mount point can be neither moved nor removed
        mounted = self._mounted(self.name)
        movable = own and there and not mounted
        # what would bring hooks or settings along is neither moved nor made
        carrier = os.path.basename(self.name).lower() in CARRIERS
        protected = plan.executed.refuses("openat", Intent.CREATE, self.name, exists=False)
        empty = not directory or not self._host["list"]
        link = there and bool(self._host["lstat"][1])
        parent = os.path.isdir(os.path.dirname(self._path))

        # where no mask serves names, mounts keep what other programs execute in them, and the directories above it
        kept = plan.executed.holds(self.name) and plan.granted.served(self.name)
        either = directory and (plan.leads(f"{self.name}{_BESIDE}") or kept)

        def given(yes: bool) -> Any:
            return [True] if yes else "refused"

        return {
            "write": given(writable and isinstance(self._host["stat"], list) and not directory),
            "create in": given((writable and directory) or stages),
            "mkdir in": given((writable and directory) or stages or leads),
            "create": given(not (carrier or protected) and parent and ((own and not there) or beside)),
            "rename": None if either else given(movable and not carrier),
            "unlink": given(movable and (link or empty)),
        }

    def _sealed(self, real: str) -> bool:
        decided = self._plan.decided_by(real)
        return isinstance(decided, Seal) and decided.path == real

    def _mounted(self, real: str) -> bool:
        decided = self._plan.decided_by(real)
        return isinstance(decided, (Absent, Bind, Empty, Seal, Cover, ReadOnlyRoot)) and decided.path == real


def _points_to_a_repository(path: str) -> bool:
    return os.path.basename(path).lower() in CARRIERS and (os.path.islink(path) or not os.path.isdir(path))


def _run(
    session: Session, made: worlds.Made, asked: list[str], observer: str
) -> tuple[RunResult, list[dict[str, Any]]]:
    result = session.run(made.request, command=_COMMAND, stdin=json.dumps(asked).encode(), observer=observer)
    assert result.started, result.refusals
    assert result.command_exit_code == 0, result.stderr.decode()
    return result, json.loads(result.stdout)


@pytest.mark.timeout(600)  # a failing world is made smaller, and each step is a sandbox
@pytest.mark.parametrize("observer", OBSERVERS)
@settings(max_examples=_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(world=worlds.worlds())
@example(world=_THROUGH_NOTHING)
def test_a_task_finds_what_the_plan_says(session: Session, observer: str, world: worlds.World) -> None:
    if observer == "strace":
        world = dataclasses.replace(world, names=())  # it answers for no held directory
    base = os.path.realpath(tempfile.mkdtemp(prefix="world-"))
    try:
        made = worlds.make(world, base, programs=_PROGRAMS, served=observer in ("mask", "notify"))
        for refusal in made.refused:
            note(f"left out: {refusal}")
        plan = made.plan()
        if any(os.path.islink(path) and not os.path.exists(path) for path in made.interesting()):
            # a link may lead to what is made for the run alone, and what is there then is asked of the host afterwards
            for path in [one.path for one in plan.operations if isinstance(one, Make)]:
                os.makedirs(path, exist_ok=True)
            plan = made.plan()
        for line in plan.describe():
            note(line)
        event(f"{len(made.request.config.allow_write)} write grants")
        # what says where a repository is could be taken away, deep down, and not put back
        asked = [path for path in made.interesting() if not _points_to_a_repository(path)]
        if world.hermetic:
            # the way to the task's own temporary directory is there, and it is in no plan made before the run
            real = {path: os.path.realpath(path) for path in asked}
            asked = [p for p in asked if real[p] != base and not paths.at_or_under(real[p], f"{base}/tmp")]
        result, found = _run(session, made, asked, observer)
        assert (result.observer, result.trace) == (observer, "complete"), result.trace_reason
        traced = observer == "strace"
        expected = [
            _Expected(plan, path, inside.found_at(path, inside.READS), base=base, traced=traced) for path in asked
        ]
        told = {violation.path for violation in result.violations}
        wrong = [
            line
            for one, there in zip(expected, found, strict=True)
            for line in (*one.untold(there, told), *one.wrong(there))
        ]
        assert not wrong, "\n".join(wrong)
        for reach in {one.reach for one in expected}:
            event(f"some {reach.value}")
    finally:
        worlds.remove(base)
