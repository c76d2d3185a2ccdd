"""Diagnostics as text, JSON, SARIF and GitHub commands."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from tests.conftest import REPOSITORY
from vxconf.diagnostics import printable, render
from vxconf.diagnostics.diagnostic import Diagnostic, Place, Severity
from vxconf.diagnostics.printable import harmless
from vxconf.diagnostics.sarif import sarif_log

_SCHEMA = json.loads((REPOSITORY / "tests" / "data" / "sarif-2.1.0.schema.json").read_text())


_PLACE = Place(14, 12, 14, 30)


def _diagnostic(place: Place = _PLACE, **changes: Any) -> Diagnostic:
    values: dict[str, Any] = {
        "code": "VX103",
        "severity": Severity.ERROR,
        "file": "apps/shop/vx.toml",
        "place": place,
        "path": "tasks.build.exec.sandbox.allow.network[0]",
        "message": 'allow.network "https://pkg.test" is not a host pattern',
        "help": 'write the host alone: "pkg.test" or "pkg.test:443"',
    }
    return Diagnostic(**{**values, **changes})


def _shown(diagnostic: Diagnostic, source: str, *, colour: bool = False) -> list[str]:
    return render.diagnostics_text([diagnostic], {diagnostic.file: source}, colour=colour).splitlines()


def test_the_text_form_is_the_one_of_the_contract() -> None:
    source = "\n" * 13 + 'network = ["https://pkg.test"]\n'
    assert render.diagnostics_text([_diagnostic()], {"apps/shop/vx.toml": source}) == (
        'apps/shop/vx.toml:14:12: error VX103: allow.network "https://pkg.test" is not a host pattern\n'
        "   |\n"
        '14 | network = ["https://pkg.test"]\n'
        "   |            ^^^^^^^^^^^^^^^^^^\n"
        '   = help: write the host alone: "pkg.test" or "pkg.test:443"\n'
    )


def test_a_one_digit_line_has_a_narrower_gutter() -> None:
    assert _shown(_diagnostic(Place(1, 1, 1, 2)), "x")[1:4] == ["  |", "1 | x", "  | ^"]


@pytest.mark.parametrize(
    ("line", "place", "shown", "carets"),
    [
        ("\tx = 1", Place(1, 2, 1, 3), "    x = 1", "    ^"),
        ("名前 = 1", Place(1, 6, 1, 7), "名前 = 1", "       ^"),
        ("名前 = 1", Place(1, 1, 1, 3), "名前 = 1", "^^^^"),
        ("e\u0301 = 1", Place(1, 6, 1, 7), "e\u0301 = 1", "    ^"),
        ("a = 1", Place(1, 6, 1, 6), "a = 1", "     ^"),
        ("a = [", Place(1, 5, 3, 2), "a = [", "    ^"),
        ("a\x1b[31m = 1", Place(1, 1, 1, 2), "a\ufffd[31m = 1", "^"),
    ],
)
def test_the_carets_stand_under_what_they_mean_whatever_the_line_holds(
    line: str, place: Place, shown: str, carets: str
) -> None:
    assert _shown(_diagnostic(place), line + "\nb\nc\n")[2:4] == [f"1 | {shown}", f"  | {carets}"]


def test_a_windows_line_end_is_not_shown() -> None:
    assert _shown(_diagnostic(Place(1, 1, 1, 2)), "a = 1\r\nb\r\n")[2] == "1 | a = 1"


def test_a_very_long_line_is_shown_around_the_fault() -> None:
    line = "a" * 5000 + "FAULT" + "b" * 5000
    shown, carets = _shown(_diagnostic(Place(1, 5001, 1, 5006)), line)[2:4]
    assert len(shown) < 200
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "FAULT"


def test_a_diagnostic_of_a_whole_file_has_no_excerpt() -> None:
    assert _shown(_diagnostic(Place(1, 1, 1, 1), path="", file="vx.toml"), "text") == [
        'vx.toml:1:1: error VX103: allow.network "https://pkg.test" is not a host pattern',
        '  = help: write the host alone: "pkg.test" or "pkg.test:443"',
    ]


def test_a_terminal_never_obeys_a_file_name_or_message() -> None:
    text = "\n".join(_shown(_diagnostic(file="a\x1b[2J\n.toml", message="m\x07", help="h\x9b"), ""))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\x9b" not in text
    assert text.count("\n") == 1


def test_colour_is_for_terminals_alone_and_changes_no_letter() -> None:
    source = "\n" * 13 + 'network = ["https://pkg.test"]\n'
    plain, coloured = _shown(_diagnostic(), source), _shown(_diagnostic(), source, colour=True)
    assert "\x1b[31m" in coloured[0]
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain


def test_the_json_form_has_exactly_the_keys_of_the_contract() -> None:
    assert render.diagnostic_as_dict(_diagnostic(platform="macos")) == {
        "code": "VX103",
        "severity": "error",
        "file": "apps/shop/vx.toml",
        "line": 14,
        "column": 12,
        "endLine": 14,
        "endColumn": 30,
        "path": "tasks.build.exec.sandbox.allow.network[0]",
        "message": 'allow.network "https://pkg.test" is not a host pattern',
        "help": 'write the host alone: "pkg.test" or "pkg.test:443"',
        "platform": "macos",
    }


def test_an_annotation_escapes_what_would_end_it() -> None:
    line = render.github_commands([_diagnostic(file="a:b,c%\n.toml", message="x%\ny", help="")])
    assert line == (
        "::error file=a%3Ab%2Cc%25\\n.toml,line=14,endLine=14,col=12,endColumn=29,title=vxconf VX103::x%25\\ny\n"
    )


#: Bytes that a terminal obeys, directions, ends of lines, commands of a runner.
HOSTILE = (
    "\x1b[2J",
    "\x1b]0;t\x07",
    "\x9b31m",
    "\x7f",
    "\x00",
    "\x08" * 9,
    "\u202egnp",
    "\u2066x\u2069",
    "\u200f",
    "\udcff",
    "a\n::error::x",
    "a\r::error::x",
    "a\x85::set-env name=x::y",
    "a\u2028::stop-commands::x",
    "::warning::x",
    "  ::add-mask::x",
    "##[error]x",
    "a%0A::error::x",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_form_for_people_or_for_a_runner_holds_what_either_obeys(hostile: str) -> None:
    hostile_one = _diagnostic(Place(1, 1, 1, 2), file=f"{hostile}/vx.toml", message=hostile, help=hostile)
    line = render.github_commands([hostile_one])
    assert line.startswith("::error file=")
    assert (line[:-1].isprintable(), line.count("\n"), "##[" in line) == (True, 1, False)
    assert [part for part in line.split("%0A") if part.lstrip().startswith("::")] == [line.split("%0A")[0]]
    source = f"x = 1 # {hostile}".replace("\n", " ")
    for colour in (False, True):
        text = render.diagnostics_text([hostile_one], {hostile_one.file: source}, colour=colour)
        lines = re.sub(r"\x1b\[[0-9]{1,2}m", "", text).splitlines()
        assert len(lines) == 5
        assert all(shown.isprintable() and not shown.lstrip().startswith("::") for shown in lines)
    for data in (render.diagnostic_as_dict(hostile_one), sarif_log([hostile_one], base="/ws")):
        assert json.dumps(data).isprintable()


@pytest.mark.parametrize("hostile", [*HOSTILE, f"{printable.RED}x{printable.OFF}"])
def test_lines_to_print_hold_nothing_that_is_obeyed(hostile: str) -> None:
    text = harmless(f"error: {hostile}\n{hostile}\n")
    assert text.startswith("error: ")
    assert text.replace("\n", "").isprintable()
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in text.split("\n"))


def test_an_annotation_over_several_lines_has_no_columns_and_a_warning_is_one() -> None:
    line = render.github_commands([_diagnostic(Place(1, 5, 3, 2), severity=Severity.WARNING, help="h")])
    assert line.startswith("::warning file=apps/shop/vx.toml,line=1,endLine=3,title=")
    assert line.endswith("%0Ahelp: h\n")


@pytest.mark.parametrize(
    "diagnostics",
    [
        [],
        [_diagnostic(), _diagnostic(code="VX404", severity=Severity.WARNING, platform="linux")],
        [_diagnostic(Place(1, 1, 1, 1), path="", help="", file="/abs/with space/é#?\udcff.toml")],
    ],
)
def test_sarif_is_valid_against_its_schema(diagnostics: list[Diagnostic]) -> None:
    log = sarif_log(diagnostics, base="/ws/with space")
    jsonschema.Draft4Validator(_SCHEMA).validate(json.loads(json.dumps(log)))
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [d.code for d in diagnostics]


def test_sarif_places_count_characters_and_names_are_uris() -> None:
    (result,) = sarif_log([_diagnostic(file="a b/é.toml")], base="/ws")["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "a%20b/%C3%A9.toml", "uriBaseId": "SRCROOT"}
    assert physical["region"] == {"startLine": 14, "startColumn": 12, "endLine": 14, "endColumn": 30}
