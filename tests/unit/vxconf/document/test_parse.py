"""Bytes that do not parse give a diagnostic with its place, never another exception and never a long wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.configs import judge
from vxconf.diagnostics.diagnostic import Place, UnreadableFile
from vxconf.document.document import NotFinite
from vxconf.document.parse import MAX_BYTES, MAX_DEPTH, parse, place_at

if TYPE_CHECKING:
    from vxconf.diagnostics.diagnostic import Diagnostic


def refusal(raw: bytes, file: str = "vx.toml") -> Diagnostic:
    with pytest.raises(UnreadableFile) as caught:
        parse(raw, file=file)
    assert str(caught.value).startswith(f"{file}:")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_a_document_keeps_its_text_and_loses_the_byte_order_mark() -> None:
    document = parse(b"\xef\xbb\xbfname = 'x'\r\n", file="vx.toml")
    assert document.text == "name = 'x'\r\n"
    assert document.data == {"name": "x"}
    assert document.format == "toml"


def test_places_behind_a_byte_order_mark_count_from_the_first_character() -> None:
    assert refusal(b"\xef\xbb\xbf{x}", "vx.json").place == Place(1, 2, 1, 3)


def test_the_format_is_the_one_of_the_name() -> None:
    assert parse(b"{}", file="a/b/other.json").format == "json"
    assert refusal(b"", "vx.yaml").code == "VX010"


def test_50_megabytes_are_refused_by_their_size() -> None:
    diagnostic = refusal(b"#" * 50 * 1024 * 1024)
    assert diagnostic.code == "VX002"
    assert "52,428,800" in diagnostic.message
    assert parse(b"#" * MAX_BYTES, file="vx.toml").data == {}


@pytest.mark.parametrize(
    ("file", "raw"),
    [
        ("vx.toml", b"a = " + b"[" * 100_000),
        ("vx.toml", b"a = " + b"[" * 100_000 + b"]" * 100_000),
        ("vx.toml", b"a = " + b"{a = " * 20_000 + b"1" + b"}" * 20_000),
        ("vx.toml", b".".join([b"a"] * 200_000) + b" = 1"),
        ("vx.toml", b"[" + b".".join([b'"a b"'] * 100_000) + b"]"),
        ("vx.toml", b"a = { b = 1, " + b" . ".join([b"'a'"] * 100_000) + b" = 1 }"),
        ("vx.toml", b"\n".join([b"x = '''", b"[" * 9, b"'''"]) + b"\ny = " + b"[" * 50_000),
        ("vx.json", b"[" * 1_000_000),
        ("vx.json", b'{"a":' * 200_000),
        ("vx.json", b'{"[[[": ' + b"[" * 100_000),
    ],
)
def test_deep_nesting_is_refused_in_no_time(file: str, raw: bytes) -> None:
    assert refusal(raw, file).code == "VX006"


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 200])
def test_nesting_the_parser_survives_is_refused_all_the_same(depth: int) -> None:
    for raw, file in (
        (b"a = " + b"[" * depth + b"]" * depth, "vx.toml"),
        (b'{"a":' * depth + b"1" + b"}" * depth, "vx.json"),
    ):
        assert [d.code for d in judge(raw, file)] == ["VX006"]


def test_a_string_of_many_dots_is_no_deep_key() -> None:
    dots = ".".join(["a"] * 500)
    text = f'# {dots}\na = "{dots}"\nb = \'{dots}\'\nc = \'\'\'\n{dots}\n\'\'\'\nd = """\n{dots}\\""""\n'
    assert set(parse(text.encode(), file="vx.toml").data) == set("abcd")


@pytest.mark.parametrize(
    ("file", "raw", "code"),
    [
        ("vx.toml", b"a = " + b"1" * 1_000_000, "VX008"),
        ("vx.toml", b"a = 0x" + b"f" * 1_000_000, "VX008"),
        ("vx.toml", b"a = 0b" + b"1" * 1_000_000, "VX008"),
        ("vx.json", b"[" + b"1" * 1_000_000 + b"]", "VX008"),
        ("vx.json", b"[-" + b"1" * 1_000_000 + b"]", "VX008"),
        ("vx.json", b"[1e999]", "VX007"),
        ("vx.json", b"[-Infinity]", "VX007"),
    ],
)
def test_numbers_no_field_takes_are_refused_in_no_time(file: str, raw: bytes, code: str) -> None:
    assert refusal(raw, file).code == code


def test_the_place_of_a_number_is_the_number() -> None:
    assert refusal(b'{"NaN": "NaN", "x": NaN}', "vx.json").place == Place(1, 21, 1, 24)
    assert refusal(b"x = 1\ny = " + b"1" * 5000).place == Place(2, 5, 2, 5005)


def test_toml_has_infinities_but_no_field_takes_one() -> None:
    data = parse(b"a = inf\nb = -nan\nc = 1.5", file="vx.toml").data
    assert [type(v) for v in data.values()] == [NotFinite, NotFinite, float]
    assert data["b"].text == "-nan"


@pytest.mark.parametrize(
    ("raw", "column"),
    [
        (rb'["\ud83d"]', 3),
        (rb'["\ude00"]', 3),
        (rb'["\ud83d\ud83d\ude00"]', 3),
        (rb'["\ud83d\ude00\ude00"]', 15),
        (rb'["\\\ud83dx"]', 5),
        (rb'["\ud83d", "\ude00"]', 3),
    ],
)
def test_half_a_character_is_refused_where_it_is(raw: bytes, column: int) -> None:
    diagnostic = refusal(raw, "vx.json")
    assert (diagnostic.code, diagnostic.place) == ("VX009", Place(1, column, 1, column + 6))


@pytest.mark.parametrize("raw", [rb'["\ud83d\ude00"]', rb'["\\ud83d"]', rb'["\u00e9"]'])
def test_whole_characters_are_not_refused(raw: bytes) -> None:
    parse(raw, file="vx.json")


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b"x = 1\nx = 2\ny = { z = 3 }\n", Place(2, 1, 2, 2)),
        (b"x = 1\nx = { y = 1 } # z = 2\n", Place(2, 1, 2, 2)),
        (b"x = 1\nx = [\n  2,\n]\n", Place(2, 1, 2, 2)),
        (b"[a]\n[b]\n[a]\nx = 1\n", Place(3, 2, 3, 3)),
        (b"a.b = 1\na.b.c = 2\n", Place(2, 1, 2, 6)),
        (b"a = { b = 1 }\n[a.c]\n", Place(2, 2, 2, 5)),
        (b"a = [1]\n[[a]]\n", Place(2, 3, 2, 4)),
        (b'"\xc3\xa9" = 1\n"\xc3\xa9" = 2\n', Place(2, 1, 2, 4)),
    ],
)
def test_a_key_defined_twice_is_refused_at_its_second_place(raw: bytes, place: Place) -> None:
    diagnostic = refusal(raw)
    assert (diagnostic.code, diagnostic.place) == ("VX005", place)


def test_every_duplicate_of_a_json_file_is_said() -> None:
    with pytest.raises(UnreadableFile) as caught:
        parse(b'{"a": 1, "b": {"c": 1, "\\u0063": 2}, "a": {"d": 1, "d": 2}}', file="vx.json")
    assert [(d.code, d.message) for d in caught.value.diagnostics] == [
        ("VX005", 'key "c" is defined twice'),
        ("VX005", 'key "a" is defined twice'),
        ("VX005", 'key "d" is defined twice'),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b"x = '" + b'"' * 1_000_000,
        b'"""' * 300_000,
        b"'''" * 300_000,
        b"..." * 300_000,
        (b'"' + b"." * 40 + b"\n") * 20_000,
        b"a" * 1_000_000,
        b"a." * 500_000,
        b"#" + b"a.b." * 250_000 + b"\n=",
        b"x = " + b"0b" + b"_1" * 500_000,
    ],
)
def test_text_that_is_no_toml_is_refused_in_no_time(raw: bytes) -> None:
    assert refusal(raw).code in {"VX004", "VX006", "VX008"}


@pytest.mark.slow
def test_10_000_tasks_are_judged() -> None:
    task = "[tasks.t{}]\nexec.command = 'make'\nexec.sandbox.allow.read = ['.', 'src']\ndependsOn = ['^build']\n"
    assert judge("".join(task.format(i) for i in range(10_000)).encode()) == ()


@pytest.mark.slow
def test_10_000_unknown_references_among_10_000_tasks_take_no_minutes() -> None:
    task = "[tasks.t{0}]\ndependsOn = ['task{0}']\n"
    assert len(judge("".join(task.format(i) for i in range(10_000)).encode())) == 10_000


def test_a_place_is_in_lines_and_characters() -> None:
    assert place_at("é\n日本\n", 2, 4) == Place(2, 1, 2, 3)
    assert place_at("ab\ncd", 1, 4) == Place(1, 2, 2, 2)
    assert place_at("ab", 2) == Place(1, 3, 1, 3)
