"""The TypeScript compiler over many modules, as a task that writes a tree of outputs; needs node and npm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import platformdirs

MODULES = 500
_VERSION = "5.9.3"

_OPTIONS = {
    "compilerOptions": {
        "composite": True,
        "declaration": True,
        "sourceMap": True,
        "strict": True,
        "module": "commonjs",
        "target": "es2020",
        "lib": ["es2020"],
        "types": [],
        "rootDir": "src",
        "outDir": "dist",
        "tsBuildInfoFile": "dist/.tsbuildinfo",
    },
    "include": ["src"],
}

_MODULE = """import {{ total as before }} from "../p{parent}/m{before}";
export interface Line{n} {{ readonly name: string; readonly amount: number }}
export class Basket{n} {{
  private readonly lines: Line{n}[] = [];
  add(line: Line{n}): this {{ this.lines.push(line); return this; }}
  get sum(): number {{ return this.lines.reduce((sum, line) => sum + line.amount, 0); }}
}}
export function total(more: number): number {{
  return new Basket{n}().add({{ name: "m{n}", amount: more }}).sum + before(more);
}}
"""
_FIRST = "export function total(more: number): number { return more; }\n"


def compiler(*, fetch: bool = True) -> str:
    """Absolute path of `tsc`, fetched once into the user's cache; empty, having said why, where there is none."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            print(f"tsc is not measured: {program} is not installed")
            return ""
    place = str(platformdirs.user_cache_path("vxconf-bench", appauthor=False) / f"typescript-{_VERSION}")
    program = os.path.join(place, "node_modules", "typescript", "bin", "tsc")
    if not os.path.exists(program) and not fetch:
        print("tsc is not measured: it was not fetched yet")
        return ""
    if not os.path.exists(program):
        os.makedirs(place, exist_ok=True)
        install = ("npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", place, f"typescript@{_VERSION}")
        done = subprocess.run(install, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"tsc is not measured: npm could not fetch it: {done.stderr.strip()[-300:]}")
            return ""
    return program


def project(directory: str, modules: int = MODULES) -> None:
    """Write a project of `modules` modules in directories of fifty, each importing another."""
    os.makedirs(directory, exist_ok=True)
    Path(directory, "tsconfig.json").write_text(json.dumps(_OPTIONS), encoding="utf-8")
    for n in range(modules):
        place = Path(directory, "src", f"p{n // 50}")
        place.mkdir(parents=True, exist_ok=True)
        before = n // 2
        text = _MODULE.format(n=n, before=before, parent=before // 50) if n else _FIRST
        Path(place, f"m{n}.ts").write_text(text, encoding="utf-8")
