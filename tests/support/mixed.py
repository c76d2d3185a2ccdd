"""Tasks of many kinds, none of which meets another's files: for running many of them at once and one by one."""

from __future__ import annotations

from typing import NamedTuple


class Mixed(NamedTuple):
    """One task; paths are relative to a project that has `lib/cart.py`, `lib/tax.py` and `notes.md`."""

    command: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


_KINDS = (
    Mixed("cat lib/cart.py lib/tax.py | wc -c; ls lib", ("lib",)),
    Mixed("cat lib/cart.py; cat notes.md; exit 3", ("lib",)),
    Mixed("mkdir -p out/{n}/a && for i in 1 2 3; do echo $i > out/{n}/a/$i; done; cat out/{n}/a/*", (), ("out/{n}/",)),
    Mixed(
        "echo {n} > made-{n}.txt && mv made-{n}.txt made-{n}.txt.old; ls; cat made-{n}.txt.old", write=("made-{n}.txt",)
    ),
    Mixed("echo {n} > refused-{n}; test -e notes.md; exit {n}"),
    Mixed("test -e notes.md || echo unseen; : > lib/cart.py", ("lib",)),
    Mixed("sh -c 'cat notes.md & cat lib/tax.py & wait' | sort", ("lib/tax.py",)),
    Mixed("echo own > $TMPDIR/own-{n}; cat $TMPDIR/own-{n}; ls -A $TMPDIR; kill -TERM $$"),
    Mixed(
        "for i in 1 2 3 4 5 6 7 8 9; do cat lib/*.py > hits/{n}-$i.txt; done; cat hits/{n}-*.txt | wc -c",
        ("lib",),
        ("hits/{n}-*.txt",),
    ),
    Mixed("cat ../../root-note.txt; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $i"),
)


def mixed(count: int) -> list[Mixed]:
    """So many of them, numbered: the same each time."""
    made = []
    for number in range(count):
        command, read, write = _KINDS[number % len(_KINDS)]
        made.append(
            Mixed(command.replace("{n}", str(number)), read, tuple(w.replace("{n}", str(number)) for w in write))
        )
    return made
