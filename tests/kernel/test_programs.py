"""Ordinary programs that stay within their grants never notice the walls: they pass, and nothing is reported."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Link, make_tree
from tests.support.observers import ANSWERING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kernel.conftest import Workspace

_PYTHON = os.path.realpath(sys.executable)


def _needs(*programs: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def _python(shop: Workspace, program: str) -> str:
    (shop.project / "lib" / "program.py").write_text(dedent(program), encoding="utf-8")
    return shlex.join((_PYTHON, "-B", "lib/program.py"))


@_needs("make", "gcc")
def test_make_and_a_compiler(shop: Workspace) -> None:
    makefile = "out/tool: lib/tool.c lib/tool.h\n\tgcc -O1 -o $@ $<\n"
    source = '#include <stdio.h>\n#include "tool.h"\nint main(void) { puts(WORD); return 0; }\n'
    make_tree(shop.project, {"Makefile": makefile, "lib/tool.c": source, "lib/tool.h": '#define WORD "made"\n'})
    # the whole project: a linker looks for libraries where it stands
    assert shop.passes("make -s && out/tool && make -q", read=["."], write=["out/"]) == "made\n"


_NODE = """
    import { writeFileSync, readFileSync, mkdtempSync } from 'node:fs';
    import { Worker } from 'node:worker_threads';
    import { fork, execFileSync } from 'node:child_process';
    import own from 'own';
    import { word } from './word.mjs';
    writeFileSync('out/word', word);
    const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
    const answer = await new Promise((done) => worker.once('message', done));
    const child = fork('lib/child.mjs');
    const said = await new Promise((done) => child.once('message', done));
    mkdtempSync(process.env.TMPDIR + '/x-');
    const ran = execFileSync('echo', ['run']).toString().trim();
    console.log(own, readFileSync('out/word', 'utf8'), answer, said, ran);
"""


@_needs("node")
def test_node_with_modules_workers_and_children(shop: Workspace) -> None:
    tree = {
        "lib/main.mjs": dedent(_NODE),
        "lib/word.mjs": "export const word = 'word';\n",
        "lib/child.mjs": "process.send('child'); process.disconnect();\n",
        "node_modules/own/package.json": '{"name": "own", "main": "i.js"}\n',
        "node_modules/own/i.js": "module.exports = 'own';\n",
        "package.json": '{"name": "shop"}\n',
    }
    make_tree(shop.project, tree)
    printed = shop.passes("node lib/main.mjs", read=["lib/", "package.json"], write=["out/"])
    assert printed == "own word 42 child run\n"


def test_python_with_processes_queues_threads_and_shared_memory(shop: Workspace) -> None:
    program = """
        import multiprocessing, os, tempfile, threading
        from multiprocessing import shared_memory

        def square(x):
            return x * x

        def put(queue):
            queue.put(os.getpid() != os.getppid())

        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                queue = context.Queue()
                child = context.Process(target=put, args=(queue,))
                child.start()
                print(queue.get())
                child.join()
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(square, range(4)))
            memory = shared_memory.SharedMemory(create=True, size=64)
            memory.buf[0] = 7
            print(memory.buf[0])
            memory.close()
            memory.unlink()
            thread = threading.Thread(target=print, args=("thread",))
            thread.start()
            thread.join()
            with tempfile.TemporaryDirectory() as place:
                open(place + "/x", "w").close()
    """
    assert shop.passes(_python(shop, program), read=["lib/"]) == "True\nTrue\n[0, 1, 4, 9]\n7\nthread\n"


def test_sockets_of_the_tasks_own_work(shop: Workspace) -> None:
    program = """
        import socket
        a, b = socket.socketpair()
        a.send(b"pair")
        print(b.recv(9).decode())
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen()
        client = socket.create_connection(server.getsockname())
        peer = server.accept()[0]
        client.sendall(b"tcp")
        print(peer.recv(9).decode())
    """
    assert shop.passes(_python(shop, program), read=["lib/"]) == "pair\ntcp\n"


def test_mapped_files_and_a_database(shop: Workspace) -> None:
    program = """
        import mmap, sqlite3
        with open("out/mapped", "wb") as file:
            file.truncate(8192)
        with open("out/mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            view[4096:4099] = b"map"
            view.flush()
        print(open("out/mapped", "rb").read()[4096:4099].decode())
        with open("lib/cart.py", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            print(view[:4].decode())
        for mode in ("delete", "wal"):
            database = sqlite3.connect("out/" + mode)
            database.execute("pragma journal_mode=" + mode)
            database.execute("create table t (x)")
            database.executemany("insert into t values (?)", [(i,) for i in range(99)])
            database.commit()
            print(database.execute("select sum(x) from t").fetchone()[0])
            database.close()
    """
    assert shop.passes(_python(shop, program), read=["lib/"], write=["out/"]) == "map\ncart\n4851\n4851\n"


@_needs("bash")
def test_bash_with_substituted_processes_here_documents_and_pipes(shop: Workspace) -> None:
    script = """
        set -euo pipefail
        diff <(sort lib/cart.py lib/tax.py) <(printf 'cart\\ntax\\n') && echo same
        tr a-z A-Z <<< here
        mapfile -t lines < <(cat lib/*.py)
        echo ${#lines[@]}
        exec 5> out/five
        echo five >&5
        exec 5>&-
        cat out/five
        coproc cat
        echo co >&${COPROC[1]}
        read -r word <&${COPROC[0]}
        echo $word
        shopt -s globstar
        echo lib/**
    """
    make_tree(shop.project, {"scripts/run.sh": dedent(script)})
    printed = shop.passes("bash scripts/run.sh", read=["lib/*.py", "scripts/"], write=["out/"])
    assert printed == "same\nHERE\n2\nfive\nco\nlib/ lib/cart.py lib/tax.py\n"


@_needs("tar", "find", "flock")
def test_trees_are_copied_packed_searched_and_locked(shop: Workspace) -> None:
    make_tree(shop.project, {"lib/deep/er/x": "x\n", "lib/link": Link("cart.py"), "lib/sp ace": "s\n"})
    script = """
        set -e
        find lib -type f | sort
        find . -name x -newermt 2000-01-01
        grep -r cart lib
        cp -a lib out/copy
        readlink out/copy/link
        tar cf out/lib.tar lib
        mkdir out/unpacked
        tar xf out/lib.tar -C out/unpacked
        diff -r lib out/unpacked/lib
        flock out/lock -c 'echo locked'
        du -s lib > out/sizes
        ls -lR lib > out/listing
        rm -r out/copy out/unpacked
        mv out/lib.tar out/moved.tar
        install -D -m 600 lib/cart.py out/in/stalled
        sed -i s/cart/trolley/ out/in/stalled
        cat out/in/stalled
    """
    printed = shop.passes(dedent(script), read=["lib/"], write=["out/"])
    files = ["lib/cart.py", "lib/deep/er/x", "lib/sp ace", "lib/tax.py"]
    assert printed.splitlines() == [*files, "./lib/deep/er/x", "lib/cart.py:cart", "cart.py", "locked", "trolley"]


@_needs("rsync")
def test_rsync_copies_a_tree(shop: Workspace) -> None:
    command = "rsync -a --delete lib/ out/copy/ && ls out/copy"
    assert shop.passes(command, read=["lib/"], write=["out/"]) == "cart.py\ntax.py\n"


def test_a_script_of_the_project_runs_by_its_interpreter_line(shop: Workspace) -> None:
    scripts = {"lib/run": '#!/bin/sh\necho "$0 $1"\n', "lib/sub/relative": "#!/usr/bin/env sh\ncat ../cart.py\n"}
    make_tree(shop.project, scripts)
    for name in scripts:
        (shop.project / name).chmod(0o755)
    assert shop.passes("lib/run one && cd lib/sub && ./relative", read=["lib/"]) == "lib/run one\ncart\n"


@_needs("strace")
@pytest.mark.parametrize("observer", ANSWERING, indirect=True)  # nobody is traced twice
def test_a_tracer_works_inside(shop: Workspace) -> None:
    command = "strace -f -e trace=execve -o $TMPDIR/t sh -c '/bin/true; /bin/true' && grep -c execve $TMPDIR/t"
    assert int(shop.passes(command)) >= 2


def test_watches_timers_events_and_process_descriptors_work(shop: Workspace) -> None:
    program = """
        import ctypes, os, select, signal
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(0)
        assert libc.inotify_add_watch(watch, b"out", 0x100) > 0
        poll = select.epoll()
        poll.register(watch, select.EPOLLIN)
        open("out/made", "w").close()
        print(len(poll.poll(9)), os.read(watch, 64)[16:20].decode())
        signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        signal.pause()
        print(os.eventfd_read(os.eventfd(3)))
        pid = os.fork()
        if pid == 0:
            os._exit(4)
        select.select([os.pidfd_open(pid)], [], [])
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    assert shop.passes(_python(shop, program), read=["lib/"], write=["out/"]) == "1 made\nalarm\n3\n4\n"


def test_the_sandboxs_own_devices_work(shop: Workspace) -> None:
    script = """
        set -e
        head -c 8 /dev/urandom | wc -c
        echo gone > /dev/null
        head -c 3 /dev/zero | od -An -tx1
        echo shared > /dev/shm/x
        cat /dev/shm/x
        echo err > /dev/stderr
        echo out > /dev/stdout
        ls /dev/fd > /dev/null
        tty || true
    """
    assert shop.passes(dedent(script)).split() == ["8", "00", "00", "00", "shared", "out", "not", "a", "tty"]
