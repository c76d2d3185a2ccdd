"""Sockets of a task's own making work as they do without walls: every kind, every call, by every name of theirs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.support.observers import OBSERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kernel.conftest import Workspace

_PYTHON = os.path.realpath(sys.executable)
_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="not installed: node")

_HEAD = """
    import array, ctypes, errno, os, signal, socket, struct, sys, threading, time
    from socket import AF_UNIX, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET
    T = os.environ["TMPDIR"]
    def served(path, kind=SOCK_STREAM, backlog=8):
        s = socket.socket(AF_UNIX, kind)
        s.bind(path)
        if kind != SOCK_DGRAM:
            s.listen(backlog)
        return s
    def sock(kind=SOCK_STREAM, path=None):
        s = socket.socket(AF_UNIX, kind)
        if path is not None:
            s.connect(path)
        return s
    def code(what, *arguments):
        try:
            return what(*arguments) or "done"
        except OSError as error:
            return errno.errorcode[error.errno]
"""


@pytest.fixture(params=OBSERVERS[:2])
def observer(request: pytest.FixtureRequest) -> str:
    """Those that stop calls: a tracer makes none for the task."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _short(places: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary directory whose path leaves room: a socket's has 107 bytes."""
    assert places.is_dir()
    directory = tempfile.mkdtemp(prefix="vx", dir="/tmp")
    monkeypatch.setenv("VX_TMPDIR", directory)
    yield
    shutil.rmtree(directory)


def _run(shop: Workspace, program: str, **options: object) -> list[str]:
    (shop.project / "lib" / "program.py").write_text(dedent(_HEAD) + dedent(program), encoding="utf-8")
    command = shlex.join((_PYTHON, "-B", "lib/program.py"))
    return shop.passes(command, read=["lib/"], **options).splitlines()  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
def test_a_listener_by_every_name_of_its_place(shop: Workspace, kind: str) -> None:
    program = f"""
        for place in (T, "/dev/shm", os.path.abspath("out")):
            os.chdir(place)
            os.mkdir("deep")
            os.symlink("deep", "link")
            listener = served("deep/s", {kind})
            folder = os.open("deep", os.O_PATH)
            names = ["deep/s", "./deep/../deep/s", place + "/deep/s", "link/s", place + "/link/s",
                     f"/proc/self/fd/{{folder}}/s", f"/proc/{{os.getpid()}}/cwd/deep/s", "/proc/self/cwd/link/s"]
            # an address holds no more
            for name in (name for name in names if len(name) < 108):
                one = sock({kind}, name)
                other, _ = listener.accept()
                one.send(name.encode())
                assert other.recv(999).decode() == name
                other.send(b"back")
                assert one.recv(9) == b"back"
                assert one.getpeername() == "deep/s"
            os.chdir("deep")
            sock({kind}, "s"), sock({kind}, "../deep/s")
            os.chdir("/")
            print(len(names))
    """
    assert _run(shop, program, write=["out/"]) == ["8", "8", "8"]


def test_datagrams_by_every_call(shop: Workspace) -> None:
    program = """
        server = served(T + "/server", SOCK_DGRAM)
        client = served(T + "/client", SOCK_DGRAM)
        client.sendto(b"sendto", T + "/server")
        print(server.recvfrom(99) == (b"sendto", T + "/client"))
        server.sendto(b"reply", T + "/client")
        print(client.recv(99))
        client.sendmsg([b"send", b"msg"], [], 0, T + "/server")
        print(server.recv(99))
        with open("lib/cart.py") as file:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno(), 1]))]
            client.sendmsg([b"rights"], rights, 0, T + "/server")
        data, fds, _, _ = socket.recv_fds(server, 99, 2)
        print(data, os.read(fds[0], 99), os.fstat(fds[1]).st_ino == os.fstat(1).st_ino)
        client.connect(T + "/server")
        client.send(b"connected")
        os.write(client.fileno(), b"written")
        client.sendmsg([b"unaddressed"])
        print(server.recv(99), server.recv(99), server.recv(99))
        ctypes.CDLL(None).connect(client.fileno(), struct.pack("H", 0), 2)
        print(code(client.send, b"dissolved"))
        nameless = socket.socket(AF_UNIX, SOCK_DGRAM)
        nameless.bind("")
        nameless.sendto(b"autobound", T + "/server")
        data, name = server.recvfrom(99)
        server.sendto(b"to abstract", name)
        print(data, name[:1], nameless.recv(99))
        empty = client.sendto(b"", T + "/server")
        print(empty, server.recv(99))
    """
    assert _run(shop, program) == [
        "True",
        "b'reply'",
        "b'sendmsg'",
        "b'rights' b'cart\\n' True",
        "b'connected' b'written' b'unaddressed'",
        "ENOTCONN",
        "b'autobound' b'\\x00' b'to abstract'",
        "0 b''",
    ]


def test_many_messages_of_one_call(shop: Workspace) -> None:
    program = """
        LIBC = ctypes.CDLL(None, use_errno=True)
        def headers(messages):
            keep, packed = [], b""
            for name, data in messages:
                to = struct.pack("H", 1) + name.encode() + b"\\0" if name else b""
                buffers = [ctypes.create_string_buffer(raw, max(len(raw), 1)) for raw in (to, data)]
                part = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(buffers[1]), len(data)), 16)
                keep += [*buffers, part]
                packed += struct.pack("QixxxxQQQQixxxx", ctypes.addressof(buffers[0]) if to else 0, len(to),
                                   ctypes.addressof(part), 1, 0, 0, 0) + bytes(8)
            return ctypes.create_string_buffer(packed, len(packed)), keep
        def sendmmsg(sock, messages):
            raw, keep = headers(messages)
            done = LIBC.sendmmsg(sock.fileno(), raw, len(messages), 0)
            sizes = [struct.unpack_from("I", raw, 64 * i + 56)[0] for i in range(len(messages))]
            return done if done >= 0 else errno.errorcode[ctypes.get_errno()], sizes
        one, two = served(T + "/one", SOCK_DGRAM), served(T + "/two", SOCK_DGRAM)
        client = served(T + "/client", SOCK_DGRAM)
        client.connect(T + "/one")
        print(sendmmsg(client, [(T + "/one", b"a"), (T + "/two", b"bcd"), ("", b"unaddressed")]))
        print(one.recv(99), two.recv(99), one.recv(99))
        print(sendmmsg(client, [(T + "/two", b"first"), (T + "/none", b"second"), (T + "/two", b"third")]))
        print(two.recv(99), sendmmsg(client, [(T + "/none", b"x")])[0])
        inet = socket.socket(socket.AF_INET, SOCK_DGRAM)
        inet.bind(("127.0.0.1", 0))
        inet.connect(inet.getsockname())
        print(sendmmsg(inet, [("", b"over"), ("", b"inet")]), inet.recv(9), inet.recv(9))
    """
    assert _run(shop, program) == [
        "(3, [1, 3, 11])",
        "b'a' b'bcd' b'unaddressed'",
        "(1, [5, 0, 0])",
        "b'first' ENOENT",
        "(2, [4, 4]) b'over' b'inet'",
    ]


def test_pairs_of_every_kind_pass_descriptors(shop: Workspace) -> None:
    program = """
        for kind in (SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM):
            one, other = socket.socketpair(AF_UNIX, kind)
            socket.send_fds(one, [b"x" * 3000], [0, 1, 2])
            data, fds, _, _ = socket.recv_fds(other, 9000, 9)
            one.send(b"plain")
            print(len(data), len(fds), other.recv(9))
            mib = bytes(1 << 20)
            if kind == SOCK_STREAM:
                def drain():
                    left = len(mib)
                    while left:
                        left -= len(other.recv(65536))
                reader = threading.Thread(target=drain)
                reader.start()
                one.sendmsg([mib[:500], mib[500:]]) == len(mib) or sys.exit("short")
                reader.join()
        one, other = socket.socketpair()  # from here on every message is sent by the warden
        def drain():
            left = 3 << 20
            while left:
                left -= len(other.recv(65536))
        reader = threading.Thread(target=drain)
        reader.start()
        print(one.sendmsg([bytes(1 << 20), b"", bytes(2 << 20)]) == 3 << 20)
        reader.join()
        other.close()
        signal.signal(signal.SIGPIPE, lambda *_: print("SIGPIPE"))
        print(code(one.sendmsg, [b"x"]), code(lambda: one.sendmsg([b"x"], [], socket.MSG_NOSIGNAL)))
    """
    lines = _run(shop, program)
    assert lines[:4] == ["3000 3 b'plain'"] * 3 + ["True"]
    assert lines[4:] == ["SIGPIPE", "EPIPE EPIPE"]


def test_the_errors_are_the_kernels_own(shop: Workspace) -> None:
    program = """
        listener = served(T + "/s")
        letters = served(T + "/d", SOCK_DGRAM)
        connected = sock(SOCK_STREAM, T + "/s")
        open(T + "/file", "w").close()
        os.mkdir(T + "/closed")
        dead = served(T + "/dead"); dead.close()
        LIBC = ctypes.CDLL(None, use_errno=True)
        def raw(fd, address, size=None):
            if LIBC.connect(fd, address, len(address) if size is None else size):
                raise OSError(ctypes.get_errno(), "")
        s = sock()
        for what, arguments in (
            (sock, (SOCK_STREAM, T + "/none")), (sock, (SOCK_STREAM, T + "/file")), (sock, (SOCK_STREAM, T + "/dead")),
            (sock, (SOCK_STREAM, T + "/file/x")), (sock, (SOCK_STREAM, T)), (sock, (SOCK_DGRAM, T + "/s")),
            (sock, (SOCK_STREAM, T + "/d")), (sock, (SOCK_SEQPACKET, T + "/s")), (connected.connect, (T + "/s",)),
            (listener.connect, (T + "/s",)), (sock, (SOCK_STREAM, "\\0nobody")), (sock, (SOCK_STREAM, T + "/s/")),
            (raw, (s.fileno(), struct.pack("H", 1))), (raw, (s.fileno(), struct.pack("H", 9) + b"/x\\0")),
            (raw, (s.fileno(), b"")), (raw, (s.fileno(), bytes(129))),
            (raw, (s.fileno(), struct.pack("H", 1) + b"x" * 120)),
            (raw, (999, struct.pack("H", 1) + b"/x")), (raw, (0, struct.pack("H", 1) + b"/x")),
            (raw, (s.fileno(), None, 10)), (connected.sendto, (b"x", T + "/s")), (letters.sendto, (b"x", T + "/s")),
            (letters.sendto, (b"x" * (8 << 20), T + "/d")), (letters.send, (b"x",)),
        ):
            print(code(what, *arguments), end=" ")
    """
    (line,) = _run(shop, program)
    assert line.split() == [
        *("ENOENT", "ECONNREFUSED", "ECONNREFUSED", "ENOTDIR", "ECONNREFUSED", "EPROTOTYPE"),
        *("EPROTOTYPE", "EPROTOTYPE", "EISCONN", "EINVAL", "ECONNREFUSED", "ENOTDIR"),
        *("EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL"),
        *("EBADF", "ENOTSOCK", "EFAULT", "EISCONN", "EPROTOTYPE"),
        *("EMSGSIZE", "ENOTCONN"),
    ]


def test_a_full_backlog_blocks_its_caller_alone(shop: Workspace) -> None:
    program = """
        listener = served(T + "/s", SOCK_STREAM, 0)
        waiting = sock(SOCK_STREAM, T + "/s")
        other = socket.socket(AF_UNIX)
        other.setblocking(False)
        print(errno.errorcode[other.connect_ex(T + "/s")])
        other.settimeout(None)
        done = []
        def blocked():
            one = sock()
            one.connect(T + "/s")
            done.append(one.getpeername())
        threads = [threading.Thread(target=blocked) for _ in range(20)]
        for thread in threads:
            thread.start()
        busy = served(T + "/busy")
        sock(SOCK_STREAM, T + "/busy").close()
        print(len(done))
        accepted = [listener.accept() for _ in range(21)]
        for thread in threads:
            thread.join()
        print(len(done), set(done) == {T + "/s"})
        limited = sock()
        limited.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300000))
        filler = sock(SOCK_STREAM, T + "/s")
        answer = code(limited.connect, T + "/s")
        print(answer, limited.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)[8:] != bytes(8))
    """
    assert _run(shop, program) == ["EAGAIN", "0", "20 True", "EAGAIN True"]


def test_a_blocked_connect_ends_by_a_signal_and_by_death(shop: Workspace) -> None:
    program = """
        listener = served(T + "/s", SOCK_STREAM, 0)
        filler = sock(SOCK_STREAM, T + "/s")
        def handler(*_):
            raise KeyError
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            sock(SOCK_STREAM, T + "/s")
        except KeyError:
            print("interrupted")
        child = os.fork()
        if child == 0:
            sock(SOCK_STREAM, T + "/s")
            os._exit(1)
        while open(f"/proc/{child}/syscall").read().split()[0] != str(SYS_CONNECT):
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        print(os.waitpid(child, 0)[1])
        # who is left blocked at the end does not hold the run
        if os.fork() == 0:
            sock(SOCK_STREAM, T + "/s")
    """
    number = {"x86_64": 42, "aarch64": 203}[os.uname().machine]
    assert _run(shop, program.replace("SYS_CONNECT", str(number))) == ["interrupted", "9"]


def test_what_the_other_end_learns_of_who_connected(shop: Workspace) -> None:
    program = """
        listener = served(T + "/s")
        one = sock(SOCK_STREAM, T + "/s")
        other, _ = listener.accept()
        def peer(s):
            return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        # the warden connects: it has the task's user, and no number in the task's own numbering
        print(peer(other) == (0, os.getuid(), os.getgid()), peer(one) == (os.getpid(), os.getuid(), os.getgid()))
        pair = socket.socketpair()
        print(peer(pair[0])[0] == os.getpid())
    """
    assert _run(shop, program) == ["True True", "True"]


def test_a_socket_of_a_granted_name(shop: Workspace) -> None:
    program = """
        listener = served("run/app.sock")
        one = sock(SOCK_STREAM, "run/app.sock")
        other, _ = listener.accept()
        one.send(b"hello")
        print(other.recv(9))
        os.unlink("run/app.sock")
    """
    assert _run(shop, program, write=["run/app.sock"]) == ["b'hello'"]


@pytest.mark.one_user
def test_pythons_own_processes_however_they_are_started(shop: Workspace) -> None:
    program = """
        import concurrent.futures, multiprocessing
        from multiprocessing.connection import Client, Listener
        def square(x):
            return x * x
        def child(address):
            with Client(address, authkey=b"key") as c:
                c.send({"some": [1, 2]})
        if __name__ == "__main__":
            for method in ("spawn", "forkserver", "fork"):
                context = multiprocessing.get_context(method)
                with context.Manager() as manager, context.Pool(2) as pool:
                    shared, lock = manager.dict(), manager.Lock()
                    with lock:
                        shared["sum"] = sum(pool.map(square, range(4)))
                    print(method, dict(shared))
            with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
                print(list(pool.map(square, range(3))))
            with Listener(family="AF_UNIX", authkey=b"key") as listener:
                process = multiprocessing.Process(target=child, args=(listener.address,))
                process.start()
                with listener.accept() as c:
                    print(c.recv())
                process.join()
    """
    expected = [f"{method} {{'sum': 14}}" for method in ("spawn", "forkserver", "fork")]
    assert _run(shop, program) == [*expected, "[0, 1, 4]", "{'some': [1, 2]}"]


@pytest.mark.slow
@pytest.mark.one_user
def test_pytest_over_several_processes(shop: Workspace) -> None:
    (shop.project / "lib" / "test_some.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n):\n    assert n < 9\n", encoding="utf-8"
    )
    packages = shlex.quote(os.path.dirname(os.path.dirname(pytest.__file__)))
    python = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={packages} {shlex.quote(sys.executable)}"
    command = f"{python} -m pytest -q -p no:cacheprovider -p no:randomly -n 2 lib"
    assert "8 passed" in shop.passes(command, read=["lib/"])


@_NODE
def test_nodes_processes_and_servers_by_path(shop: Workspace) -> None:
    (shop.project / "lib" / "main.cjs").write_text(
        dedent("""
        const { fork } = require("node:child_process"), net = require("node:net"), cluster = require("node:cluster");
        if (process.argv[2] === "child") {
            process.on("message", (m, handle) => {
                process.send({ got: m, handle: !!handle }, () => { handle.close(); process.disconnect(); });
            });
        } else if (cluster.isWorker) {
            net.createServer((c) => c.end("worker")).listen(process.env.TMPDIR + "/w.sock");
        } else {
            const path = process.env.TMPDIR + "/n.sock";
            const server = net.createServer((c) => c.pipe(c)).listen(path, () => {
                const client = net.connect(path);
                client.end("echo");
                client.on("data", (d) => console.log(String(d)));
                client.on("close", () => {
                    const child = fork(__filename, ["child"]);
                    child.on("message", (m) => { console.log(JSON.stringify(m)); });
                    child.on("exit", () => {
                        server.close();
                        const worker = cluster.fork();
                        cluster.on("listening", () => {
                            const c = net.connect(process.env.TMPDIR + "/w.sock");
                            c.on("data", (d) => console.log(String(d)));
                            c.on("close", () => worker.disconnect());
                        });
                    });
                    child.send("hello", server);
                });
            });
        }
        """),
        encoding="utf-8",
    )
    assert shop.passes("node lib/main.cjs", read=["lib/"]).splitlines() == [
        "echo",
        '{"got":"hello","handle":true}',
        "worker",
    ]


def test_the_first_datagram_socket_waits_for_nobody(shop: Workspace) -> None:
    program = """
        one, other = socket.socketpair()
        stop = []
        def sends():
            while not stop:
                one.sendmsg([b"x"])
        def reads():
            while not stop:
                other.recv(4096)
        def spins():
            x, y = socket.socketpair()
            x.sendmsg([b"x"])
            while not stop:
                pass
        def blocks():
            x, y = socket.socketpair()
            try:
                while True:
                    x.sendmsg([bytes(65536)])
            except OSError:
                pass
            blocked.append(x)
        blocked = []
        threads = [threading.Thread(target=t, daemon=True) for t in (sends, reads, spins, blocks)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        letters = served(T + "/d", SOCK_DGRAM)
        letters.sendto(b"own", T + "/d")
        print(letters.recv(9))
        stop.append(1)
    """
    assert _run(shop, program) == ["b'own'"]


def test_interfaces_are_listed_before_and_after(shop: Workspace) -> None:
    program = """
        print([name for _, name in socket.if_nameindex()])
        letters = socket.socket(AF_UNIX, SOCK_DGRAM)
        print([name for _, name in socket.if_nameindex()])
        class Ifaddrs(ctypes.Structure):
            pass
        head = ctypes.c_void_p()
        print(ctypes.CDLL(None).getifaddrs(ctypes.byref(head)), bool(head))
    """
    assert _run(shop, program) == ["['lo']", "['lo']", "0 True"]
