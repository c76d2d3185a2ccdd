"""The codes VX1xx: the schema."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, sandbox, task

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
        "or an IPv6 address in brackets, each with an optional `:port`. A name without a dot, such as a service of a "
        "compose file, takes its port: `postgres:5432`. A bare `*` is for `deny` alone.",
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
