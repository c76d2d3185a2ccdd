"""The codes VX0xx: the file and its syntax."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, Stage, task

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
