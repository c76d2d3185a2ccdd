"""The codes VX4xx: warnings."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, Stage, sandbox, task
from vxconf.diagnostics.diagnostic import Severity

WARNINGS = (
    Code(
        code="VX401",
        slug="no-effect-here",
        title="a grant does nothing on this platform",
        means="Some grants open something that only one system has. Every system accepts them, so that one file "
        "serves all.",
        wrong=sandbox('allow.systemInfo = ["hw.ncpu"]'),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX402",
        slug="union-of-nothing",
        title="network = true where no task of the workspace lists a host",
        means="`true` stands for the hosts that the tasks of the run list, and no task of the workspace lists one.",
        wrong=sandbox("allow.network = true"),
        right=sandbox('allow.network = ["registry.example.org"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX403",
        slug="matches-nothing",
        title="a pattern matches nothing now",
        means="The pattern may match later; more often it is misspelt.",
        wrong=sandbox('allow.read = ["scr/**/*.py"]'),
        right=sandbox('allow.read = ["src/**/*.py"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX404",
        slug="already-covered",
        title="a grant is already covered by another",
        means="The entry adds nothing to the wider one, and would stay behind when the wider one is removed.",
        wrong=sandbox('allow.read = ["src/", "src/main.py"]'),
        right=sandbox('allow.read = ["src/"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX405",
        slug="opens-credentials",
        title="a grant opens a credential store",
        means="The task, and every program it runs, can read the keys in the store.",
        wrong=sandbox('allow.read = ["~/.npmrc"]'),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX406",
        slug="large-by-name",
        title="a write grant serves a large directory by name",
        means="`dist` grants a name: the task may remove it and make it again, and another process serves each call "
        "on it. `dist/` grants the directory and everything below at native speed, and the directory itself cannot be "
        "removed. Directories with more than 1,000 files are reported.",
        wrong=sandbox('allow.write = ["dist"]'),
        right=sandbox('allow.write = ["dist/"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX407",
        slug="names-nothing",
        title="a read grant names nothing now",
        means="A read grant covers what exists when the task starts, and no file made later. A slash at the end names "
        "a directory, never a file. Variables, `~user`, a leading `!` and backslashes between names are not expanded.",
        wrong=sandbox('allow.read = ["scr"]'),
        right=sandbox('allow.read = ["src"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX408",
        slug="reserved-variable",
        title="a variable is set by the sandbox itself",
        means="The sandbox gives the task its own temporary directory and its own proxies, and overwrites these "
        "variables.",
        wrong='[tasks.build.exec]\ncommand = "make"\nenv.define.TMPDIR = "/var/tmp"\nsandbox = {}\n',
        right='[tasks.build.exec]\ncommand = "make"\nsandbox = {}\n',
        severity=Severity.WARNING,
    ),
    Code(
        code="VX409",
        slug="allowed-and-denied",
        title="a host is both allowed and denied",
        means="`deny` wins over `allow`, so the entry under `allow` does nothing.",
        wrong=sandbox('allow.network = ["registry.example.org"]', 'deny.network = ["registry.example.org"]'),
        right=sandbox('allow.network = ["registry.example.org"]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX410",
        slug="opens-control-socket",
        title="a socket that commands the host is granted",
        means="A task that connects to Docker, an SSH or GPG agent, D-Bus or X11 can go around the sandbox: these "
        "servers start programs outside, sign with the user's keys, or read what the user types.",
        wrong=sandbox('allow.unixSockets = ["/var/run/docker.sock"]'),
        right=sandbox('allow.unixSockets = ["/run/postgresql/.s.PGSQL.5432"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX411",
        slug="own-port-listed",
        title="a port is both the task's own and one of the host's",
        means="`localBinding` makes the port the task's own, so the entry under `network` opens no port of the host.",
        wrong=sandbox("allow.localBinding = [8000]", 'allow.network = ["localhost:8000"]'),
        right=sandbox("allow.localBinding = [8000]"),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX412",
        slug="directory-for-socket",
        title="a socket's grant names a directory",
        means="A socket is granted by its own path; the path of a directory opens none of the sockets in it.",
        wrong=sandbox('allow.unixSockets = ["/run/postgresql"]'),
        right=sandbox('allow.unixSockets = ["/run/postgresql/.s.PGSQL.5432"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX413",
        slug="weaker-when-nested",
        title="a weaker sandbox is accepted",
        means="In most containers parts of `/proc` are hidden, and the kernel then gives a task no `/proc` of its "
        "own. The task is refused there, unless it has `weakerWhenNested`: it then runs with the `/proc` of the "
        "container, read-only, and sees the names, command lines, mounts and network tables of processes outside. "
        "Their memory, environment, files and directories stay closed. Where a full sandbox can be built the task gets "
        "one.",
        wrong=sandbox("weakerWhenNested = true"),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX414",
        slug="covers-strangers",
        title="a pattern covers servers of strangers",
        means="Anybody can rent a server below this domain within minutes, so a task that reaches the whole domain "
        "can send the files it reads to anybody. Name the hosts the task needs.",
        wrong=sandbox('allow.network = ["*.amazonaws.com"]'),
        right=sandbox('allow.network = ["our-artifacts.s3.amazonaws.com"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX415",
        slug="stops-at-the-workspace",
        title="a read grant holds the workspace and opens nothing in it",
        means="A grant of a directory outside the workspace opens nothing inside it, however wide it is: grant the "
        "places in the workspace themselves. Everything outside may be read without a grant, unless the task is "
        "hermetic.",
        wrong=sandbox('allow.read = ["/"]'),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX416",
        slug="opens-the-policy",
        title="a grant opens a file that says what tasks are granted",
        means="`vx.toml`, `vx.json` and `.vx/workspace.toml` are read-only for every task, whatever it may write, "
        "unless an entry of its block names the very file, as this one does. The task can then grant itself, and every "
        "other task of that project, anything from the next run on.",
        wrong=sandbox('allow.write = ["vx.toml"]'),
        right=sandbox('allow.write = ["dist/"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX417",
        slug="opens-the-system",
        title="a grant opens a directory of the system",
        means="What lies in `/etc`, `/var`, `/run`, `/dev` and their kind belongs to every program and user of the "
        "machine: settings, sockets, secrets, devices. A task that root runs can read, or write, nearly all of it "
        "through such a grant. Name the files the task needs.",
        wrong=sandbox('allow.write = ["/var/"]'),
        right=sandbox('allow.write = ["/var/cache/acme/"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX418",
        slug="taken-literally",
        title="a text is taken literally that another tool expands",
        means="Paths, names and values are taken as they are written: no `$VAR`, no `{projectRoot}`, no "
        "`$TURBO_DEFAULT$`, and no name of a variable with `*` or `!`, such as `VITE_*`. In paths `~/` stands for "
        "home, and everything else begins in the project's directory.",
        wrong=task('exec.command = "make"', 'exec.env.passThrough = ["VITE_*"]'),
        right=task('exec.command = "make"', 'exec.env.passThrough = ["VITE_API_URL"]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX419",
        slug="brackets-are-a-class",
        title="a name in brackets is read as a class of characters",
        means="In a pattern `[slug]` stands for one of the characters s, l, u and g. A name with brackets takes a "
        "backslash before each opening one.",
        wrong=sandbox('allow.write = ["pages/[slug]/"]'),
        right=sandbox("allow.write = ['pages/\\[slug]/']"),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX420",
        slug="input-takes-nothing",
        title="an input of a cache key takes no file",
        means="The key holds nothing for this entry, so that the result is kept whatever changes. Entries of `files` "
        "begin in the project's directory, those of `workspaceFiles` at the workspace root. What a task makes may be "
        "missing.",
        wrong=task('exec.command = "make"', 'cache.inputs.files = ["scr/**"]'),
        right=task('exec.command = "make"', 'cache.inputs.files = ["src/**"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX421",
        slug="output-not-granted",
        title="an output that no write grant makes",
        means="The task may not write what it says it makes, so that the cached result would be without it.",
        wrong=sandbox('allow.write = ["build/"]') + '\n[tasks.build.cache]\noutputs.files = ["dist/**"]\n',
        right=sandbox('allow.write = ["dist/"]') + '\n[tasks.build.cache]\noutputs.files = ["dist/**"]\n',
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX422",
        slug="read-outside-key",
        title="a read grant that the cache key does not hold",
        means="The task may read files that its key knows nothing of, so that a result is kept although they have "
        "changed. Only a task that lists files in its key gets the warning, where no entry of it meets the grant.",
        wrong=sandbox('allow.read = ["src/", "config/"]') + '\n[tasks.build.cache]\ninputs.files = ["src/**"]\n',
        right=sandbox('allow.read = ["src/"]') + '\n[tasks.build.cache]\ninputs.files = ["src/**"]\n',
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX423",
        slug="misnamed-file",
        title="a file is named almost like a task file",
        means="Task files are `vx.toml` and `vx.json`, in small letters. A `VX.toml`, `vx.jsonc` or `vx.yaml` is not "
        "read, so that its tasks do not exist.",
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
)
