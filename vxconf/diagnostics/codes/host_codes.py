"""What a file is refused or warned for against a platform, the file system or the workspace: VX3xx to VX5xx."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, Stage, sandbox, task
from vxconf.diagnostics.diagnostic import Severity

REFUSALS = (
    Code(
        code="VX301",
        slug="grant-leaves-project",
        title="a link leads a grant to where its text does not",
        means="A link leads a write grant, or a socket, that is spelled in the project to a place outside it: then the "
        "link, which may be one that a task left there, would choose what is granted. The same holds for a read grant "
        "that a link leads into a credential store, a secret of the system or the repository's data. If the place is "
        "meant, grant it by its own path.",
        wrong=sandbox('allow.write = ["linked-out/"]'),
        right=sandbox('allow.write = ["out/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX302",
        slug="grant-holds-wall",
        title="a write grant holds a wall",
        means="`.git`, nested projects and the cache stay out of every task's reach. Grant a directory beside the "
        "wall, or "
        "name the wall itself.",
        wrong=sandbox('allow.write = ["../"]'),
        right=sandbox('allow.write = ["dist/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX303",
        slug="file-for-directory",
        title="a file is where a grant needs a directory",
        means="A grant ending in `/` or `/**` is a directory, and a file or a link to one has its name.",
        wrong=sandbox('allow.write = ["package.json/"]'),
        right=sandbox('allow.write = ["dist/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX305",
        slug="write-to-everything",
        title="a write grant of the root, of home or of what is above it",
        means="Such a grant would open every project, key and program of the user.",
        wrong=sandbox('allow.write = ["~"]'),
        right=sandbox('allow.write = ["~/.cache/tool/"]'),
    ),
    Code(
        code="VX306",
        slug="write-to-own-runtime",
        title="a write grant holds the running interpreter or this program",
        means="A task that can rewrite the program that guards it is not guarded.",
        wrong=sandbox('allow.write = [".venv/"]'),
        right=sandbox('allow.write = ["dist/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX307",
        slug="project-under-dev",
        title="the project is under /dev",
        means="A task sees a fresh `/dev`; a project there could not be shown in it. Move the project.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX308",
        slug="unusable-path",
        title="a path cannot be used",
        means="It holds NUL, is too long for the kernel, or its links go round in a circle.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX309",
        slug="missing-outside",
        title="a write grant outside the project names nothing",
        means="Outside the project only what exists can be granted by its bare name, and outside the workspace no "
        "pattern can. A directory to be made is spelled with a trailing `/`.",
        wrong=sandbox('allow.write = ["~/.cache/tool"]'),
        right=sandbox('allow.write = ["~/.cache/tool/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX310",
        slug="workspace-too-wide",
        title="the workspace root is the file system's, home or above home",
        means="Every wall is drawn around the workspace; one that holds home would draw none. Add a "
        "`.vx/workspace.toml` "
        "where the workspace really begins.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX311",
        slug="two-files",
        title="a project has both a vx.toml and a vx.json",
        means="Neither is preferred, so neither is read. Remove one.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX312",
        slug="unknown-reference",
        title="a task or project of another file does not exist",
        means="The project of `project#task` is its directory from the workspace root, or its name.",
        wrong=task('dependsOn = ["libs/mony#build"]'),
        right=task('dependsOn = ["libs/money#build"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX313",
        slug="pattern-too-wide",
        title="a pattern stands for too much",
        means="Its braces stand for more than 1,000 grants, or it would look at more than 250,000 directory entries "
        "before the task starts. Start it in a deeper directory, or grant the directory.",
        wrong=sandbox('allow.read = ["{1..2000}.txt"]'),
        right=sandbox('allow.read = ["data/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX314",
        slug="no-longer-as-resolved",
        title="the file system is no longer what the config was resolved for",
        means="A link stands where none did, the project is gone, or the config comes from another workspace. "
        "Following it would move the grants. Resolve again.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX315",
        slug="malformed-resolved-config",
        title="a resolved config is malformed",
        means="The JSON handed in is not what `vxconf resolve` prints: a key is missing, unknown or of the wrong kind.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX316",
        slug="keyed-file-unread",
        title="a cache key holds a file the task cannot read",
        means="An entry of `cache.inputs.workspaceFiles` takes a file outside the project that no grant reaches. "
        "The task would run without it, and what came of that would be kept under a key that holds the file. Grant "
        "it, take it out of the key, or list it in `ignore.read`.",
        stage=Stage.HOST,
    ),
)

WARNINGS = (
    Code(
        code="VX401",
        slug="no-effect-here",
        title="a grant does nothing on this platform",
        means="Some grants open what only one system has. They are accepted everywhere, so that one file serves both.",
        wrong=sandbox('allow.systemInfo = ["hw.ncpu"]'),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX402",
        slug="union-of-nothing",
        title="network = true where no task of the workspace lists a host",
        means="`true` reaches what the tasks of the run list, and none lists anything.",
        wrong=sandbox("allow.network = true"),
        right=sandbox('allow.network = ["registry.example.org"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX403",
        slug="matches-nothing",
        title="a pattern matches nothing now",
        means="It may match later; more often it is misspelt.",
        wrong=sandbox('allow.read = ["scr/**/*.py"]'),
        right=sandbox('allow.read = ["src/**/*.py"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX404",
        slug="already-covered",
        title="a grant is already covered by another",
        means="It adds nothing, and it would stay behind when the wider one goes.",
        wrong=sandbox('allow.read = ["src/", "src/main.py"]'),
        right=sandbox('allow.read = ["src/"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX405",
        slug="opens-credentials",
        title="a grant opens a credential store",
        means="The task, and everything it runs, can read the keys in it.",
        wrong=sandbox('allow.read = ["~/.npmrc"]'),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX406",
        slug="large-by-name",
        title="a write grant serves a large directory by name",
        means="`dist` grants a name, which may be removed and made again, and is served call by call. `dist/` grants "
        "the directory and everything below at native speed; it cannot itself be removed. The warning is for "
        "directories with more than 1,000 files.",
        wrong=sandbox('allow.write = ["dist"]'),
        right=sandbox('allow.write = ["dist/"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX407",
        slug="names-nothing",
        title="a read grant names nothing now",
        means="A file made after the task has started is not covered by it. A slash at the end names a directory, "
        "never a file. Variables, `~user`, a `!` in front and backslashes between names mean nothing here.",
        wrong=sandbox('allow.read = ["scr"]'),
        right=sandbox('allow.read = ["src"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX408",
        slug="reserved-variable",
        title="a variable is set by the sandbox itself",
        means="The sandbox gives the task its own temporary directory and its own proxies; a value of the task's "
        "for one "
        "of those variables does not survive.",
        wrong='[tasks.build.exec]\ncommand = "make"\nenv.define.TMPDIR = "/var/tmp"\nsandbox = {}\n',
        right='[tasks.build.exec]\ncommand = "make"\nsandbox = {}\n',
        severity=Severity.WARNING,
    ),
    Code(
        code="VX409",
        slug="allowed-and-denied",
        title="a host is both allowed and denied",
        means="`deny` is looked at first, so the entry under `allow` does nothing.",
        wrong=sandbox('allow.network = ["registry.example.org"]', 'deny.network = ["registry.example.org"]'),
        right=sandbox('allow.network = ["registry.example.org"]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX410",
        slug="opens-control-socket",
        title="a socket that commands the host is granted",
        means="Docker, an SSH or GPG agent, D-Bus, X11 and their like do for whoever connects what the sandbox keeps "
        "the task from: they start programs outside, sign with the user's keys, or read what the user types.",
        wrong=sandbox('allow.unixSockets = ["/var/run/docker.sock"]'),
        right=sandbox('allow.unixSockets = ["/run/postgresql/.s.PGSQL.5432"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX411",
        slug="own-port-listed",
        title="a port is both the task's own and one of the host's",
        means="`localBinding` makes the port the task's own, so the entry under `network` opens nothing.",
        wrong=sandbox("allow.localBinding = [8000]", 'allow.network = ["localhost:8000"]'),
        right=sandbox("allow.localBinding = [8000]"),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX412",
        slug="directory-for-socket",
        title="a socket's grant names a directory",
        means="A socket is granted by its own path; a directory opens none of those in it.",
        wrong=sandbox('allow.unixSockets = ["/run/postgresql"]'),
        right=sandbox('allow.unixSockets = ["/run/postgresql/.s.PGSQL.5432"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX413",
        slug="weaker-when-nested",
        title="a weaker sandbox is accepted",
        means="Where parts of `/proc` are hidden, as in most containers, the kernel gives a task none of its own, and "
        "the task is refused. With `weakerWhenNested` it is run all the same, with the `/proc` there is, read-only: it "
        "sees the names, command lines, mounts and network tables of processes outside. Their memory, environment, "
        "files and directories stay closed, and everything else is as in a full sandbox, which it gets wherever one "
        "can be built.",
        wrong=sandbox("weakerWhenNested = true"),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
    ),
    Code(
        code="VX414",
        slug="covers-strangers",
        title="a pattern covers servers of strangers",
        means="Anybody can have a server below this domain in a minute, so a task that reaches all of it can send what "
        "it reads to whom it likes. Name the hosts it needs.",
        wrong=sandbox('allow.network = ["*.amazonaws.com"]'),
        right=sandbox('allow.network = ["our-artifacts.s3.amazonaws.com"]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
    Code(
        code="VX415",
        slug="stops-at-the-workspace",
        title="a read grant holds the workspace and opens nothing in it",
        means="Nothing in the workspace is opened by a grant from outside it, however wide: it has to be granted where "
        "it is. What is outside may be read without a grant, unless the task is hermetic.",
        wrong=sandbox('allow.read = ["/"]'),
        right=sandbox('allow.read = ["."]'),
        severity=Severity.WARNING,
        stage=Stage.HOST,
    ),
)


NOT_YET = (
    Code(
        code="VX509",
        slug="platform-not-yet",
        title="this platform's sandbox is not built yet",
        means="Config files can be checked everywhere; tasks with a sandbox run on Linux alone so far.",
        stage=Stage.HOST,
    ),
)
