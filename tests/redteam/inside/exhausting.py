"""Takes every descriptor of whoever serves a name, then does what is not allowed, and prints how far it came."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys

held, wanted = sys.argv[2], int(sys.argv[3])
told: dict[str, str] = {}
holders = []
reading, writing = os.pipe()
for _ in range(4):
    holder = os.fork()
    if holder == 0:
        opened = 0
        try:
            while opened < wanted:
                os.open(held, os.O_RDONLY)
                opened += 1
        except OSError as error:
            os.write(writing, f"{errno.errorcode[error.errno or 0]}\n".encode())
        else:
            os.write(writing, b"enough\n")
        signal.pause()
    holders.append(holder)
answers = b""
while answers.count(b"\n") < len(holders):
    answers += os.read(reading, 100)
told["holders"] = " ".join(sorted(set(answers.decode().split())))
for path in sys.argv[4:]:
    try:
        (os.mkdir if path.endswith("/") else lambda one: open(one, "w").close())(path)
        told[path] = "done"
    except OSError as error:
        told[path] = errno.errorcode[error.errno or 0]
for holder in holders:
    os.kill(holder, 9)
    os.waitpid(holder, 0)
try:
    with open(held) as again:
        told["after"] = again.read()
except OSError as error:
    told["after"] = str(error)
sys.stdout.write(json.dumps(told))
