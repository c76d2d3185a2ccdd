"""A workspace with granted names and real sandboxes over it, planned by hand; also a program another user runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.linux.run.attempt import Attempt
from sandbox.linux.warden_messages import Base, Failed, Spec
from sandbox.machine.required_programs import find_bwrap
from sandbox.planning.operations import Bind, Cover, Name, Names, Origin, ReadOnlyRoot, Way
from sandbox.planning.served_and_staged_names import GrantedNames
from sandbox.session.session import Session
from sandbox.terminal.output_stream import OutputStream

if TYPE_CHECKING:
    from sandbox.contract.results import Access
    from sandbox.planning.operations import Operation

_WHY = Origin(reason="a test")


@dataclass
class Outcome:
    """What one command came to."""

    status: int
    out: str
    err: str
    leftovers: tuple[str, ...]
    incomplete: str
    accesses: list[Access] = field(default_factory=list)


class NamedWorkspace:
    """A project: `dist`, `out.txt` and `gen/**/*.py` are granted by name, `lib` may be read, `plain/` written."""

    def __init__(self, base: str, session: Session, *, pattern: bool = True, observer: str = "auto") -> None:
        self.observer = observer
        self.root = os.path.join(base, "ws")
        self.project = os.path.join(self.root, "apps", "shop")
        self.staging = os.path.join(self.root, ".vx", "tmp")
        self._runs = 0
        self.session = session
        for name in ("lib", "plain", "gen/sub", "gen/secret/deep"):
            os.makedirs(os.path.join(self.project, name))
        os.makedirs(self.staging)
        for name in ("lib/cart.py", "notes.md", "gen/a.txt", "gen/sub/m.py", "gen/sub/m.txt", "gen/secret/deep/k"):
            self.put(name, name)
        self.operations: tuple[Operation, ...] = (
            ReadOnlyRoot(path="/", origin=_WHY),
            Cover(path=self.root, origin=_WHY),
            Way(path=self.root + "/apps", origin=_WHY),
            Way(path=self.project, origin=_WHY),
            Bind(path=self.project + "/lib", directory=True, origin=_WHY),
            Bind(path=self.project + "/plain", directory=True, writable=True, origin=_WHY),
            Name(path=self.project + "/dist", origin=_WHY),
            Name(path=self.project + "/out.txt", origin=_WHY),
        )
        if pattern:
            gen = self.project + "/gen"
            self.operations += (Names(path=gen, pattern=gen + "/**/*.py", origin=_WHY),)

    def path(self, name: str) -> str:
        """A path of the project on the host."""
        return os.path.join(self.project, name)

    def put(self, name: str, text: str) -> None:
        """Write a file of the project on the host."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def text(self, name: str) -> str:
        """What a file of the project holds on the host."""
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def listed(self, name: str = ".") -> list[str]:
        """What the host has in a directory of the project."""
        return sorted(os.listdir(self.path(name)))

    def run(self, command: str, *, observer: str = "", without: tuple[str, ...] = ()) -> Outcome:
        """Run `/bin/sh -c command` in the project.

        Args:
            command: as the task.
            observer: as a session takes it; the workspace's own if empty.
            without: kinds of operations left out, by the names of their classes.
        """
        operations = tuple(op for op in self.operations if type(op).__name__ not in without)
        accesses: list[Access] = []
        self._runs += 1
        staging = os.path.join(self.staging, str(self._runs))
        os.mkdir(staging)
        spec = Spec(
            operations=operations,
            boundary=(self.project,),
            command=("/bin/sh", "-c", command),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
            cwd=self.project,
            observer=observer or self.observer,
            granted=GrantedNames(operations),
            staging=staging,
        )
        attempt = Attempt(spec, stdin=None, stdout=OutputStream(), stderr=OutputStream(), on_access=accesses.append)
        bwrap = find_bwrap(os.environ.get("PATH", ""), self.root)
        report = attempt.run(lambda fds: self.session.hand_over(Base(bwrap), fds))
        out, err = report.stdout.decode("utf-8", "replace"), report.stderr.decode("utf-8", "replace")
        if report.finished is None or report.finished.status is None:
            failed = report.failed or Failed(reason="no word of its end")
            raise AssertionError(f"the sandbox did not run: {failed.reason}; {out}; {err}")
        status = os.waitstatus_to_exitcode(report.finished.status)
        return Outcome(status, out, err, report.finished.leftovers, report.finished.incomplete, accesses)


def main() -> None:
    """Run the command of the second argument in a workspace made in the first, and pass its output on."""
    os.umask(0o022)
    with Session() as session:
        # a bare interpreter has not the library patterns are read with
        outcome = NamedWorkspace(sys.argv[1], session, pattern=False).run(sys.argv[2])
    sys.stdout.write(outcome.out)
    sys.stderr.write(outcome.err + outcome.incomplete)
    sys.exit(outcome.status)


if __name__ == "__main__":
    main()
