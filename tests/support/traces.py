"""The small workspace in which real tools were recorded, and what they were told to do in it."""

from __future__ import annotations

PROJECT = "/ws/apps/shop"
READ = (f"{PROJECT}/lib", f"{PROJECT}/src", f"{PROJECT}/run.sh")
WRITE = (f"{PROJECT}/out",)

#: Everything there is on the host below the workspace.
HOST = {
    "/ws/base.toml": "base\n",
    f"{PROJECT}/lib/cart.py": "TAX = 2\n",
    f"{PROJECT}/lib/sub/tax.txt": "tax\n",
    f"{PROJECT}/src/main.c": "int main(void) { return 0; }\n",
    f"{PROJECT}/src/Makefile": "all:\n\tcc -o ../out/main main.c\n\tcat ../notes.md || true\n",
    f"{PROJECT}/src/main.js": "console.log(require('../lib/missing.js'))\n",
    f"{PROJECT}/src/main.rs": 'fn main() { print!("{}", include_str!("../notes.md")) }\n',
    f"{PROJECT}/run.sh": "#!/bin/sh\ncat notes.md\n",
    f"{PROJECT}/notes.md": "notes\n",
    f"{PROJECT}/conf/real.json": "{}\n",
    f"{PROJECT}/tools/gen.sh": "#!/bin/sh\n",
    "/ws/libs/money/coin.py": "coin\n",
}

#: Recorded as `fixtures/traces/<name>.strace`.
COMMANDS = {
    "bash": "bash -c 'cd lib; cat sub/tax.txt < cart.py; (cd sub && cat < ../../notes.md); cd ../conf; . ./x; true'",
    "busybox": "busybox sh -c 'cat lib/cart.py notes.md; ls conf; mkdir new; cp lib/cart.py out/c; cd lib; wc nope'",
    "cp": "cp lib/cart.py out/c.py; cp notes.md out/; cp lib/cart.py new.py; cp -r lib out/all; true",
    "gcc": "cd src && gcc -c main.c -o ../out/main.o && gcc -I../conf -c ../conf/none.c; true",
    "git": "git hash-object lib/cart.py notes.md; git diff --no-index lib/cart.py lib/sub/tax.txt;"
    " cd lib; git status; git grep --no-index tax . ../conf; true",
    "grep": "grep -r tax lib; grep -r tax lib conf .; true",
    "make": "make -C src -s",
    "node": 'node src/main.js; node -e \'fs.existsSync("conf/real.json"); fs.writeFileSync("out/x", "");'
    ' fs.mkdirSync("gen/deep", {recursive: true})\'; true',
    "python": "PYTHONPATH=lib /usr/bin/python3 -S -c 'import cart, os, threading;"
    ' t = threading.Thread(target=os.access, args=("conf/real.json", 0)); t.start(); t.join();'
    ' os.scandir("conf")\' ; true',
    "rsync": "rsync -a lib/ out/lib/; rsync -a conf/ out/conf/; true",
    "rustc": "rustc --emit=metadata --out-dir out src/main.rs; true",
    "sqlite": "sqlite3 out/x.db 'create table t(a); insert into t values (1)';"
    " sqlite3 shop.db 'create table t(a)'; true",
    "tar": "tar -cf out/l.tar lib notes.md; tar -xf out/l.tar -C out; tar -xf out/l.tar; true",
}
