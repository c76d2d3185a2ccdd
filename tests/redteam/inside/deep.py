"""Goes deeper than any path can say, makes there what other programs execute, and prints the answer."""

from __future__ import annotations

import json
import os

os.chdir("out")
told = {"mkdir": 0}
try:
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    os.mkdir(".vscode")
except OSError as error:
    told["mkdir"] = error.errno or 0
os.write(1, json.dumps(told).encode())
