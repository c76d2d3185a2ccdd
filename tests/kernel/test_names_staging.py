"""What a task may do beside and around granted names, and what the host sees of it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandbox import Session
from tests.support.named import NamedWorkspace
from tests.support.observers import ANSWERING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=ANSWERING)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NamedWorkspace]:
    with Session() as session:
        yield NamedWorkspace(str(tmp_path), session, observer=request.param)


HOST = ["gen", "lib", "notes.md", "plain"]


def test_a_granted_name_appears_on_the_host_and_needs_no_placeholder(shop: NamedWorkspace) -> None:
    outcome = shop.run(
        "test ! -e out.txt && echo made > out.txt && mkdir dist && echo a > dist/a && cat out.txt dist/a"
    )
    assert (outcome.status, outcome.out, outcome.leftovers) == (0, "made\na\n", ())
    assert shop.listed() == sorted([*HOST, "dist", "out.txt"])
    assert shop.text("dist/a") == "a\n"


def test_a_task_that_touches_nothing_leaves_nothing(shop: NamedWorkspace) -> None:
    assert shop.run("ls").out == "gen\nlib\nplain\n"
    assert shop.listed() == HOST
    assert os.listdir(os.path.join(shop.staging, "1")) == []


def test_a_name_beside_is_staged_and_renamed_into_place(shop: NamedWorkspace) -> None:
    shop.put("out.txt", "old\n")
    seen: list[list[str]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.001):
            seen.append(shop.listed())

    watcher = threading.Thread(target=watch)
    watcher.start()
    outcome = shop.run(
        "echo new > .out.tmp; ls -A; for i in 1 2 3 4 5; do cp .out.tmp .o2; mv .o2 out.txt; done; rm .out.tmp"
    )
    stop.set()
    watcher.join()
    assert (outcome.status, outcome.leftovers) == (0, ())
    assert ".out.tmp" in outcome.out.split()
    assert shop.text("out.txt") == "new\n"
    assert {name for names in seen for name in names} == {*HOST, "out.txt"}


def test_threads_that_replace_a_name_find_it_whole_at_any_time(shop: NamedWorkspace) -> None:
    script = """
import os, threading
def work(n):
    for i in range(60):
        with open(f'.t{n}', 'w') as file: file.write('whole')
        os.rename(f'.t{n}', 'out.txt')
        with open('out.txt') as file: found.add(file.read())
found = set()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for one in threads: one.start()
for one in threads: one.join()
os.unlink('out.txt')
print(found, os.path.exists('out.txt'))
"""
    os.mkdir(shop.path("dist"))
    shop.put("dist/script.py", script)
    outcome = shop.run("python3 dist/script.py")
    assert (outcome.out, outcome.err, outcome.leftovers) == ("{'whole'} False\n", "", ())


def test_the_attributes_of_a_link_are_changed_and_a_socket_is_bound_and_found(shop: NamedWorkspace) -> None:
    script = """
import errno, os, socket
os.symlink('nowhere', 'out.txt')
os.utime('out.txt', (1, 2), follow_symlinks=False)
os.chown('out.txt', os.getuid(), os.getgid(), follow_symlinks=False)
print(os.lstat('out.txt').st_mtime, os.access('.', os.W_OK))
os.unlink('out.txt')
try:
    os.link('lib/cart.py', 'out.txt')
except OSError as error:
    print(errno.errorcode[error.errno])
os.umask(0o027)
server = socket.socket(socket.AF_UNIX)
server.bind('out.txt')
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect('out.txt')
print(oct(os.stat('out.txt').st_mode))
os.unlink('out.txt')
for make in (os.open, os.mkdir):
    made = make('out.txt', os.O_CREAT | os.O_WRONLY, 0o666) if make is os.open else make('out.txt', 0o777)
    print(oct(os.stat('out.txt').st_mode & 0o777))
    os.unlink('out.txt') if make is os.open else os.rmdir('out.txt')
os.close(os.open('out.txt', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o400))
"""
    os.mkdir(shop.path("dist"))
    shop.put("dist/script.py", script)
    outcome = shop.run("python3 dist/script.py")
    assert (outcome.out, outcome.err) == ("2.0 True\nEXDEV\n0o140750\n0o640\n0o750\n", "")
    assert os.stat(shop.path("out.txt")).st_mode & 0o777 == 0o400


def test_what_is_left_in_staging_is_told_and_never_reaches_the_host(shop: NamedWorkspace) -> None:
    outcome = shop.run("echo 1 > junk; mkdir -p made/deep; echo 2 > made/deep/f; cat junk made/deep/f; ls")
    assert outcome.out == "1\n2\ngen\njunk\nlib\nmade\nplain\n"
    assert outcome.leftovers == (shop.path("junk"), shop.path("made"))
    assert shop.listed() == HOST


def test_a_hidden_name_is_free_for_the_task_and_kept_for_the_host(shop: NamedWorkspace) -> None:
    outcome = shop.run("set -C; test ! -e notes.md && echo mine > notes.md && cat notes.md && mv notes.md out.txt")
    assert (outcome.status, outcome.out, outcome.leftovers) == (0, "mine\n", ())
    assert (shop.text("notes.md"), shop.text("out.txt")) == ("notes.md", "mine\n")
    outcome = shop.run("echo left > notes.md")
    assert outcome.leftovers == (shop.path("notes.md"),)
    assert shop.text("notes.md") == "notes.md"


def test_a_granted_name_moved_aside_goes_to_staging(shop: NamedWorkspace) -> None:
    shop.put("out.txt", "kept")
    outcome = shop.run(
        "mkdir dist; echo 1 > dist/f; mv dist dist.old; mv out.txt out.bak; mkdir dist; cat dist.old/f out.bak"
    )
    assert outcome.out == "1\nkept"
    assert outcome.leftovers == (shop.path("dist.old"), shop.path("out.bak"))
    assert shop.listed() == sorted([*HOST, "dist"])
    assert shop.listed("dist") == []


def test_a_tree_is_removed_and_made_again(shop: NamedWorkspace) -> None:
    for _ in range(2):
        outcome = shop.run(
            "rm -rf dist && mkdir dist && echo x > dist/x && mkdir -p dist/a/b/c && echo y > dist/a/b/c/y"
        )
        assert (outcome.status, outcome.err, outcome.leftovers) == (0, "", ())
        assert shop.text("dist/a/b/c/y") == "y\n"


def test_a_name_becomes_a_file_a_tree_and_a_link(shop: NamedWorkspace) -> None:
    command = "echo f > dist; cat dist; rm dist; mkdir dist; ls -d dist/; rmdir dist; ln -s lib dist; cat dist/cart.py"
    outcome = shop.run(command)
    assert outcome.out == "f\ndist/\nlib/cart.py"
    assert os.readlink(shop.path("dist")) == "lib"


def test_names_are_exchanged_between_host_and_staging(shop: NamedWorkspace) -> None:
    shop.put("out.txt", "host")
    script = (
        "import ctypes; libc = ctypes.CDLL(None); open('tmp', 'w').write('staged');"
        "print(libc.renameat2(-100, b'tmp', -100, b'out.txt', 2), open('tmp').read(), open('out.txt').read());"
        "print(libc.renameat2(-100, b'tmp', -100, b'out.txt', 1))"
    )
    outcome = shop.run(f'python3 -c "{script}"')
    assert outcome.out == "0 host staged\n-1\n"
    assert shop.text("out.txt") == "staged"
    assert outcome.leftovers == (shop.path("tmp"),)


def test_a_file_is_linked_out_of_staging(shop: NamedWorkspace) -> None:
    outcome = shop.run("echo x > t; ln t out.txt; stat -c %h out.txt; rm t; stat -c %h out.txt; cat out.txt")
    assert (outcome.out, outcome.leftovers) == ("2\n1\nx\n", ())
    assert shop.text("out.txt") == "x\n"


def test_what_the_plan_places_cannot_be_replaced(shop: NamedWorkspace) -> None:
    outcome = shop.run("echo x > lib/new; mv lib lib2; rm -r plain/../lib; mkdir dist; mv dist lib/; ls lib; ls -d lib")
    assert outcome.out == "cart.py\nlib\n"
    assert outcome.err.count("Read-only file system") >= 2
    assert shop.listed("lib") == ["cart.py"]


def test_a_pattern_shows_matches_and_the_way_to_them_alone(shop: NamedWorkspace) -> None:
    outcome = shop.run("find gen | sort; cat gen/sub/m.py; cat gen/a.txt gen/sub/m.txt; ls gen/secret")
    assert outcome.out == "gen\ngen/sub\ngen/sub/m.py\ngen/sub/m.py"
    assert outcome.err.count("No such file or directory") == 3
    hidden = {access.path for access in outcome.accesses if access.exists}
    assert hidden >= {shop.path("gen/a.txt"), shop.path("gen/sub/m.txt"), shop.path("gen/secret")}


def test_a_pattern_covers_what_is_made_during_the_run(shop: NamedWorkspace) -> None:
    outcome = shop.run(
        "mkdir -p gen/new/deep gen/empty/inner gen/secret; echo 1 > gen/new/deep/x.py; echo 2 > gen/y.py;"
        "echo 3 > gen/z.txt;"
        "rm gen/sub/m.py; rmdir gen/sub; find gen | sort; mv gen/z.txt gen/z.py; rmdir gen/new; true"
    )
    shown = ["gen", "gen/empty", "gen/empty/inner", "gen/new", "gen/new/deep", "gen/new/deep/x.py", "gen/secret"]
    assert outcome.out.split() == [*shown, "gen/y.py", "gen/z.txt"]
    assert "not empty" in outcome.err
    assert outcome.leftovers == ()
    assert shop.listed("gen") == ["a.txt", "new", "secret", "sub", "y.py", "z.py"]
    assert (shop.listed("gen/sub"), shop.listed("gen/secret/deep")) == (["m.txt"], ["k"])


def test_matching_directories_are_served_whole(shop: NamedWorkspace) -> None:
    outcome = shop.run(
        "mkdir gen/pkg.py; echo 1 > gen/pkg.py/anything; mv gen/pkg.py gen/other.py; cat gen/other.py/anything"
    )
    assert (outcome.out, outcome.leftovers) == ("1\n", ())
    assert shop.text("gen/other.py/anything") == "1\n"


def test_host_edits_are_seen_soon_and_lose_nothing(shop: NamedWorkspace) -> None:
    os.mkdir(shop.path("dist"))
    shop.put("dist/f", "one")
    shop.put("dist/log", "")
    script = """
import os, sys, time
print(open('dist/f').read(), flush=True)
fd = os.open('dist/f', os.O_RDONLY)
log = os.open('dist/log', os.O_WRONLY | os.O_APPEND)
seen, turns = set(), 0
open('dist/began', 'w').close()
end = time.monotonic() + 40
while time.monotonic() < end and (len(seen) < 3 or turns <= 20):
    turns += 1
    if os.path.exists('dist/new'): seen.add('new')
    if open('dist/f').read() == 'two, and longer': seen.add('replaced')
    if os.pread(fd, 100, 0) == b'grown in place': seen.add('in place')
    os.write(log, b't')
    time.sleep(0.02)
print(sorted(seen), 'gone' if not os.path.exists('dist/away') else 'there')
"""
    shop.put("dist/script.py", script)
    shop.put("dist/away", "")

    def edit() -> None:
        end = time.monotonic() + 40
        while not os.path.exists(shop.path("dist/began")) and time.monotonic() < end:
            time.sleep(0.02)
        with open(shop.path("dist/f"), "r+", encoding="utf-8") as file:
            file.write("grown in place")
        for _ in range(20):
            with open(shop.path("dist/log"), "a", encoding="utf-8") as file:
                file.write("h")
            time.sleep(0.01)
        time.sleep(1.5)
        shop.put("dist/.f.new", "two, and longer")
        os.replace(shop.path("dist/.f.new"), shop.path("dist/f"))
        shop.put("dist/new", "")
        os.unlink(shop.path("dist/away"))
        # a name nobody granted, made while the task runs
        shop.put("secret.txt", "hidden")

    editor = threading.Thread(target=edit)
    editor.start()
    outcome = shop.run("python3 dist/script.py; cat secret.txt")
    editor.join()
    assert outcome.out.splitlines() == ["one", "['in place', 'new', 'replaced'] gone"]
    assert "secret.txt: No such file" in outcome.err
    log = shop.text("dist/log")
    assert log.count("h") == 20
    assert log.count("t") == len(log) - 20 > 20


def test_a_link_planted_on_the_host_leads_nowhere_but_where_the_task_could_go(shop: NamedWorkspace) -> None:
    os.symlink(shop.path("notes.md"), shop.path("out.txt"))
    outcome = shop.run("cat out.txt; echo over > out.txt; cat out.txt; readlink out.txt; ls -l notes.md")
    assert "No such file or directory" in outcome.err
    assert shop.text("notes.md") == "notes.md"


def test_the_observer_none_serves_no_name(shop: NamedWorkspace) -> None:
    with pytest.raises(AssertionError, match="need an observer that answers calls"):
        shop.run("echo x > out.txt", observer="none")
    assert shop.listed() == HOST


def test_a_program_on_served_pages_may_name_files_from_them(shop: NamedWorkspace) -> None:
    # the path of the notified call lies in a page of a served file that nobody has read yet
    script = """
import ctypes, mmap, os
fd = os.open('dist/pages', os.O_RDWR)
pages = mmap.mmap(fd, 1 << 20, mmap.MAP_SHARED)
libc = ctypes.CDLL(None, use_errno=True)
at = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + 512 * 1024
print(libc.mkdir(ctypes.c_void_p(at), 0o755), os.path.isdir('dist/made'))
"""
    os.mkdir(shop.path("dist"))
    shop.put("dist/script.py", script)
    with open(shop.path("dist/pages"), "wb") as file:
        file.write(b"\0" * (512 * 1024) + b"dist/made\0" + b"\0" * (512 * 1024))
    outcome = shop.run("timeout 20 python3 dist/script.py")
    assert (outcome.out, outcome.incomplete) == ("0 True\n", "")
