"""The codes VX2xx: the rules across fields, from the text of a file alone."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, sandbox, task

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
    Code(
        code="VX215",
        slug="takes-nothing-back",
        title="a grant begins with an exclamation mark",
        means="A list of grants only grants, and no entry takes a part of another back. Grant what the task needs, "
        "such as the directories beside the one it should not see. In `cache` lists a leading `!` leaves files out.",
        wrong=sandbox('allow.read = ["src/", "!src/private/"]'),
        right=sandbox('allow.read = ["src/public/"]'),
    ),
)
