"""Programs people run, writing under granted names."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.support.named import NamedWorkspace
from tests.support.observers import ANSWERING_LONG

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=ANSWERING_LONG)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NamedWorkspace]:
    with Session() as session:
        workspace = NamedWorkspace(str(tmp_path), session, observer=request.param)
        os.mkdir(workspace.path("dist"))
        yield workspace


def done(shop: NamedWorkspace, command: str) -> str:
    outcome = shop.run(f"set -e; {command}")
    assert (outcome.status, outcome.incomplete, outcome.leftovers) == (0, "", ()), outcome.err
    return outcome.out


def needs(*programs: str) -> None:
    if missing := [
        program for program in programs if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None
    ]:
        pytest.skip(f"not installed: {', '.join(missing)}")


def test_archives_are_unpacked_copied_and_removed(shop: NamedWorkspace) -> None:
    for n in range(200):
        directory = f"lib/tree/d{n % 7}/e{n % 3}"
        os.makedirs(shop.path(directory), exist_ok=True)
        shop.put(f"{directory}/f{n}", "x" * n * 100)
        os.chmod(shop.path(f"{directory}/f{n}"), 0o444 if n % 5 == 0 else 0o755)
        os.utime(shop.path(f"{directory}/f{n}"), (n, n))
        os.symlink(f"f{n}", shop.path(f"{directory}/l{n}"))
    done(shop, "tar cf dist/lib.tar -C lib/tree .; mkdir dist/a; tar xf dist/lib.tar -C dist/a; cp -a dist/a dist/b")
    assert done(shop, "diff -r dist/a dist/b; diff -r lib/tree dist/a; stat -c '%a %Y %s %F' dist/b/d6/e1/f13") == (
        "755 13 1300 regular file\n"
    )
    done(shop, "rm -rf dist; mkdir dist")
    assert shop.listed("dist") == []


def test_a_repository_lives_under_a_name(shop: NamedWorkspace) -> None:
    needs("git")
    out = done(
        shop,
        "cd dist; git init -q .; echo a > a; git add .; git -c user.email=a@b -c user.name=n commit -qm one;"
        "git gc -q; git status --porcelain; git log --format=%s; git fsck",
    )
    assert out == "one\n"


def test_a_database_with_a_write_ahead_log(shop: NamedWorkspace) -> None:
    script = """
import os, sqlite3
db = sqlite3.connect('dist/db', timeout=30)
db.execute('pragma journal_mode=wal')
db.execute('create table t (x)')
for child in range(3):
    if os.fork() == 0:
        own = sqlite3.connect('dist/db', timeout=30)
        for n in range(20):
            with own: own.execute('insert into t values (?)', (child * 100 + n,))
        os._exit(0)
for _ in range(3): assert os.wait()[1] == 0
print(db.execute('select count(*), sum(x) from t').fetchone(), db.execute('pragma integrity_check').fetchone()[0])
"""
    shop.put("dist/script.py", script)
    assert done(shop, "python3 dist/script.py") == f"(60, {sum(c * 100 + n for c in range(3) for n in range(20))}) ok\n"


def test_atomic_writers_replace_a_name(shop: NamedWorkspace) -> None:
    script = (
        "import tempfile, os; f = tempfile.NamedTemporaryFile('w', dir='.', delete=False); f.write('python');"
        "f.close();"
        "os.replace(f.name, 'out.txt')"
    )
    done(shop, f'python3 -c "{script}"')
    assert shop.text("out.txt") == "python"
    done(shop, "sed -i s/py/PY/ out.txt; cp out.txt dist/o; install -m 600 dist/o dist/p; echo tail | tee -a out.txt")
    assert shop.text("out.txt") == "PYthontail\n"
    assert os.stat(shop.path("dist/p")).st_mode & 0o777 == 0o600


def test_a_build_is_made_from_nothing(shop: NamedWorkspace) -> None:
    needs("node")
    script = """
const fs = require('fs'), path = require('path');
for (let i = 0; i < 300; i++) {
  const file = path.join('dist', 'd' + i % 10, 'm' + i + '.js');
  fs.mkdirSync(path.dirname(file), {recursive: true});
  fs.writeFileSync(file, 'x'.repeat(3000));
  fs.writeFileSync(file + '.map', JSON.stringify({i}));
}
fs.writeFileSync('out.txt', fs.readdirSync('dist').length + '');
"""
    shop.put("lib/build.js", script)
    done(shop, "rm -rf dist; node lib/build.js")
    assert shop.text("out.txt") == "10"
    assert len(list(Path(shop.path("dist")).rglob("*.js"))) == 300


def test_a_program_is_built_and_run(shop: NamedWorkspace) -> None:
    needs("cc")
    shop.put(
        "lib/main.c",
        '#include <stdio.h>\nint main(void) { FILE *f = fopen("dist/said", "w"); fputs("hi", f); return 0; }\n',
    )
    done(shop, "cc -o dist/main lib/main.c; dist/main")
    assert shop.text("dist/said") == "hi"


@pytest.mark.slow
def test_descriptors_are_given_back_when_many_files_are_known(shop: NamedWorkspace) -> None:
    script = """
import os
for n in range(3000):
    with open(f'dist/{n}', 'w') as f: f.write(str(n))
kept = [open(f'dist/{n}') for n in range(0, 100)]
assert all(os.stat(f'dist/{n}').st_size == len(str(n)) for n in range(3000))
for n in range(3000): os.rename(f'dist/{n}', f'dist/r{n}')
assert all(open(f'dist/r{n}').read() == str(n) for n in range(3000))
for n in range(3000): os.unlink(f'dist/r{n}')
assert [f.read() for f in kept] == [str(n) for n in range(100)]
print(os.listdir('dist'))
"""
    shop.put("lib/script.py", script)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # inherited by the supervisor this session starts first; a limit once lowered for good needs a process of its own
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
            outcome = shop.run("python3 lib/script.py")
            code = 0 if (outcome.status, outcome.out, outcome.incomplete) == (0, "[]\n", "") else 2
            if code:
                os.write(2, repr(outcome).encode())
            shop.session.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
