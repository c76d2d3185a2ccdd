"""The codes found from the text of a file alone: the file VX0xx, the schema VX1xx, rules across fields VX2xx."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, Stage, sandbox, task

_GOOD = task('exec.command = "make"')

FILE = (
    Code(
        code="VX001",
        slug="file-unreadable",
        title="the file cannot be read",
        means="The name is a directory, a device or a dangling link, or its permissions keep it from being read.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX002",
        slug="file-too-large",
        title="the file is too large",
        means="A config file may have 8 MiB. A larger one is almost always another file under the wrong name.",
    ),
    Code(
        code="VX003",
        slug="not-utf-8",
        title="the file is not UTF-8",
        means="Config files are UTF-8, with or without a byte order mark. The report points at the first byte that is "
        "not UTF-8.",
    ),
    Code(
        code="VX004",
        slug="syntax",
        title="the file does not parse",
        means="The text is not TOML or JSON. Nothing else can be said about the file until it parses.",
        wrong='[tasks.build]\nexec.command = "make\n',
        right=_GOOD,
    ),
    Code(
        code="VX005",
        slug="duplicate-key",
        title="a key is defined twice",
        means="Of two values for one key one would silently win, so neither does. In TOML a table may be opened once.",
        wrong='[tasks.build]\nexec.command = "make"\nexec.command = "make all"\n',
        right='[tasks.build]\nexec.command = "make all"\n',
    ),
    Code(
        code="VX006",
        slug="nested-too-deep",
        title="values are nested too deep",
        means="Lists and tables may be nested 32 deep; the format itself needs 8.",
    ),
    Code(
        code="VX007",
        slug="not-finite",
        title="a number is not finite",
        means="JSON has no NaN and no infinity, and a number too large for a double reads as one.",
    ),
    Code(
        code="VX008",
        slug="number-too-long",
        title="a number has too many digits",
        means="A whole number may have 4,300 digits; no field takes one that large.",
    ),
    Code(
        code="VX009",
        slug="lone-surrogate",
        title="an escape is half a character",
        means="A JSON escape from `\\ud800` to `\\udfff` stands for a character only in a pair; alone it cannot be "
        "a path "
        "or an argument.",
    ),
    Code(
        code="VX010",
        slug="unknown-format",
        title="the file is neither TOML nor JSON by its name",
        means="The format is taken from the file's ending: `.toml` or `.json`.",
    ),
)

SCHEMA = (
    Code(
        code="VX101",
        slug="unknown-key",
        title="a key is not known here",
        means="Nothing is ignored silently: a misspelt grant would otherwise be no grant. The nearest known key is "
        "suggested, and the place of a key that belongs elsewhere.",
        wrong=sandbox('allow.reads = ["src"]'),
        right=sandbox('allow.read = ["src"]'),
    ),
    Code(
        code="VX102",
        slug="wrong-type",
        title="a value has the wrong type",
        means="The field takes another type of value, such as a list where a string was given.",
        wrong=sandbox('allow.read = "src"'),
        right=sandbox('allow.read = ["src"]'),
    ),
    Code(
        code="VX103",
        slug="host-pattern",
        title="an entry is not a host pattern",
        means="`network` lists take hosts: a name with a dot, `*.` before a name with a dot, `localhost`, an IPv4 "
        "address "
        "or an IPv6 address in brackets, each with an optional `:port`. A bare `*` is for `deny` alone.",
        wrong=sandbox('allow.network = ["https://registry.example.org"]'),
        right=sandbox('allow.network = ["registry.example.org:443"]'),
    ),
    Code(
        code="VX104",
        slug="missing-key",
        title="a required key is missing",
        means="The table has no meaning without the key.",
        wrong=task("exec.timeout = 60"),
        right=task('exec.command = "make"', "exec.timeout = 60"),
    ),
    Code(
        code="VX105",
        slug="out-of-range",
        title="a number is out of range",
        means="Ports go from 1 to 65535; a timeout is more than 0 seconds and at most a year.",
        wrong=sandbox("allow.localBinding = [65536]"),
        right=sandbox("allow.localBinding = [8080]"),
    ),
    Code(
        code="VX106",
        slug="empty",
        title="a value is empty where it may not be",
        means="An empty string names nothing, and an empty list of ports would be neither `true` nor `false`.",
        wrong=sandbox('allow.read = [""]'),
        right=sandbox('allow.read = ["."]'),
    ),
    Code(
        code="VX107",
        slug="bad-choice",
        title="a value is none of the ones the field takes",
        means="`network` and `unixSockets` are `true` or a list: leaving the key out is what `false` would mean.",
        wrong=sandbox("allow.network = false"),
        right=sandbox("allow.network = true"),
    ),
    Code(
        code="VX108",
        slug="bad-name",
        title="a name holds a character it may not",
        means="A task's name may not be empty, hold `#` or a control character, or begin with `^`: `dependsOn` gives "
        "those a meaning.",
        wrong='[tasks."lib#build"]\nexec.command = "make"\n',
        right='[tasks."lib:build"]\nexec.command = "make"\n',
    ),
    Code(
        code="VX109",
        slug="exactly-one",
        title="exactly one of several keys is wanted",
        means="A server is ready when its output matches or when its port answers; both at once, or neither, says "
        "nothing.",
        wrong='[tasks.serve.exec]\ncommand = "serve"\npersistent.readyWhen = { output = "ready", port = 8080 }\n',
        right='[tasks.serve.exec]\ncommand = "serve"\npersistent.readyWhen = { port = 8080 }\n',
    ),
)

RULES = (
    Code(
        code="VX201",
        slug="cache-on-persistent",
        title="a persistent task has a cache",
        means="A persistent task never ends by itself, so there is no result to keep.",
        wrong='[tasks.serve]\nexec.command = "serve"\nexec.persistent = {}\ncache.outputs.files = ["dist/**"]\n',
        right='[tasks.serve]\nexec.command = "serve"\nexec.persistent = {}\n',
    ),
    Code(
        code="VX202",
        slug="bad-regex",
        title="a regular expression does not compile",
        means="`readyWhen.output` is a regular expression searched for in each line the server prints.",
        wrong='[tasks.serve.exec]\ncommand = "serve"\npersistent.readyWhen.output = "ready ("\n',
        right='[tasks.serve.exec]\ncommand = "serve"\npersistent.readyWhen.output = "ready \\\\("\n',
    ),
    Code(
        code="VX203",
        slug="bad-variable-name",
        title="a name cannot be an environment variable's",
        means="An environment variable's name is not empty and holds neither `=` nor NUL nor a blank.",
        wrong=task('exec.command = "make"', 'exec.env.passThrough = ["CC=clang"]'),
        right=task('exec.command = "make"', 'exec.env.define.CC = "clang"'),
    ),
    Code(
        code="VX204",
        slug="defined-and-passed",
        title="a variable is both defined and passed through",
        means="`define` and `passThrough` would each give the variable a value.",
        wrong=task('exec.command = "make"', 'exec.env.define.CC = "clang"', 'exec.env.passThrough = ["CC"]'),
        right=task('exec.command = "make"', 'exec.env.define.CC = "clang"'),
    ),
    Code(
        code="VX205",
        slug="nul",
        title="a text holds a NUL character",
        means="No path, argument or environment variable can hold one: the kernel would read only what is before it.",
        wrong=sandbox('allow.read = ["src\\u0000"]'),
        right=sandbox('allow.read = ["src"]'),
    ),
    Code(
        code="VX206",
        slug="bad-reference",
        title="a task reference is malformed",
        means="A reference is `task`, `^task` (that task of every package this one depends on) or `project#task`.",
        wrong=task('dependsOn = ["^lib#build"]'),
        right=task('dependsOn = ["^build"]'),
    ),
    Code(
        code="VX207",
        slug="self-dependency",
        title="a task depends on itself",
        means="A task that waits for itself never starts. `^task` is what means the same task of other packages.",
        wrong=task('dependsOn = ["build"]'),
        right=task('dependsOn = ["^build"]'),
    ),
    Code(
        code="VX208",
        slug="unknown-task",
        title="a task of this file does not exist",
        means="A plain reference names a task of the same file.",
        wrong='[tasks.build]\nexec.command = "make"\n\n[tasks.test]\ndependsOn = ["biuld"]\n',
        right='[tasks.build]\nexec.command = "make"\n\n[tasks.test]\ndependsOn = ["build"]\n',
    ),
    Code(
        code="VX209",
        slug="duplicate-reference",
        title="a task reference is listed twice",
        means="One of the two was probably meant to be another task.",
        wrong=task('dependsOn = ["^build", "^build"]'),
        right=task('dependsOn = ["^build"]'),
    ),
    Code(
        code="VX210",
        slug="dependency-cycle",
        title="tasks depend on each other in a circle",
        means="None of them could ever start.",
        wrong='[tasks.a]\ndependsOn = ["b"]\n\n[tasks.b]\ndependsOn = ["a"]\n',
        right='[tasks.a]\ndependsOn = ["b"]\n\n[tasks.b]\nexec.command = "make"\n',
    ),
    Code(
        code="VX211",
        slug="unbalanced-pattern",
        title="a bracket or brace of a pattern is never closed",
        means="`[` opens a class and `{` a list of alternatives. One that is meant literally is escaped with a "
        "backslash.",
        wrong=sandbox('allow.read = ["pages/[slug.tsx"]'),
        right=sandbox("allow.read = ['pages/\\[slug.tsx']"),
    ),
    Code(
        code="VX212",
        slug="absolute-cache-path",
        title="a cache path is absolute",
        means="`cache` paths are relative, so that a result made in one checkout can be used in another: "
        "`inputs.files` and "
        "`outputs.files` to the project, `inputs.workspaceFiles` to the workspace root.",
        wrong=task('exec.command = "make"', 'cache.inputs.files = ["/etc/hosts"]'),
        right=task('exec.command = "make"', 'cache.inputs.files = ["src/**"]'),
    ),
    Code(
        code="VX213",
        slug="bad-system-name",
        title="a macOS name holds a character it may not",
        means="`systemInfo` and `machLookup` take names of letters, digits, `.`, `_` and `-`.",
        wrong=sandbox('allow.systemInfo = ["hw.ncpu)"]'),
        right=sandbox('allow.systemInfo = ["hw.ncpu"]'),
    ),
    Code(
        code="VX214",
        slug="bad-socket-path",
        title="a socket path cannot be granted",
        means="A socket is granted by its exact path: no `..`, no quote, no backslash, no control character, no "
        "pattern.",
        wrong=sandbox('allow.unixSockets = ["/run/../tmp/x.sock"]'),
        right=sandbox('allow.unixSockets = ["/tmp/x.sock"]'),
    ),
)
