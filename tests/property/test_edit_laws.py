"""Laws of editing task files, over files written in every way TOML and JSON allow."""

from __future__ import annotations

import copy
import json
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vxconf.document.parse import parse
from vxconf.edit.add_entries import with_entries

NAMES = st.sampled_from(["build", "it's", "a.b", "ü ☃", "-", "1", 'say "x"'])
KEYS = ("exec", "sandbox", "allow")
ENTRIES = st.lists(
    st.sampled_from(["src/", "a b", "it's", 'say "x"', "\\[x\\]", "ü☃𝄞", "tab\t", "del\x7f", "*.py", "#x", "]", ","]),
    max_size=3,
    unique=True,
)
ADDED = st.lists(
    st.sampled_from(["new.md", "it's new", 'new "x"', "\\*", "☃", "src/", "\u0001"]), min_size=1, max_size=3
)
LISTS = ("read", "write")


def _key(name: str) -> str:
    bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else json.dumps(name, ensure_ascii=False)


def _string(draw: st.DrawFn, text: str) -> str:
    if "'" not in text and text.isprintable() and draw(st.booleans()):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(draw: st.DrawFn, entries: list[str], *, single: bool) -> str:
    said = [_string(draw, entry) for entry in entries]
    if single or draw(st.booleans()):
        comma = draw(st.sampled_from([", ", ",", " , "]))
        trailing = draw(st.sampled_from(["", ","])) if said else ""
        pad = draw(st.sampled_from(["", " "]))
        ends = ["", "\n", " # why\n", "\n  # why\n", '\n\n# why, "not"] #\n\t'] if said and not single else [""]
        return f"[{pad}{comma.join(said)}{trailing}{pad}{draw(st.sampled_from(ends))}]"
    indent = draw(st.sampled_from(["  ", "\t", "", "        "]))
    remark = st.sampled_from(["", '  # why, ["not"]', " #"])
    lines = [f"{indent}{one}," + draw(remark) for one in said]
    bare = draw(st.booleans())
    if lines and bare:
        lines[-1] = indent + said[-1] + draw(remark)
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), f'{indent}# on its own, ] "')
    return "\n".join(["[" + draw(remark), *lines, "]"])


@st.composite
def toml_files(draw: st.DrawFn) -> tuple[bytes, str]:
    """A file with one task, cut into headers, dotted keys and inline tables wherever TOML may be."""
    name = draw(NAMES)
    lists = {key: draw(ENTRIES) for key in LISTS if draw(st.booleans())}
    path = ["tasks", name, *KEYS]
    cut = draw(st.integers(0, 5))
    inline = draw(st.integers(max(cut, 1), 5))
    remark = draw(st.sampled_from(["", " # remark = ["]))
    indent = draw(st.sampled_from(["", "  "]))
    out: list[str] = draw(st.sampled_from([[], ["# the file", ""], ['name = "x" # it']]))
    if cut:
        out.append(f"{indent}[{'.'.join(map(_key, path[:cut]))}]{remark}")
    dotted = [_key(part) for part in path[cut:inline]]
    if inline < len(path):
        value = f"{{ {', '.join(f'{key} = {_list(draw, e, single=True)}' for key, e in lists.items())} }}"
        for part in reversed(path[inline + 1 :]):
            value = f"{{ {_key(part)} = {value} }}"
        out.append(f"{indent}{'.'.join([*dotted, _key(path[inline])])} = {value}{remark}")
    else:
        out += [
            f"{indent}{'.'.join([*dotted, key])} = {_list(draw, entries, single=False)}{remark}"
            for key, entries in lists.items()
        ]
    if cut != 5 and not lists and inline == len(path):
        out.append(f"{indent}{'.'.join([*dotted, 'pty'])} = false")
    out += draw(st.sampled_from([[], ["", "# another's"], ["", "[tasks.other.exec]", 'command = "y" # z']]))
    text = draw(st.sampled_from(["\n", "\r\n"])).join(line for part in out for line in part.split("\n"))
    text += "\n" if draw(st.booleans()) else ""
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode(), name


@st.composite
def json_files(draw: st.DrawFn) -> tuple[bytes, str]:
    name = draw(NAMES)
    depth = draw(st.integers(0, 3))
    value: dict[str, Any] = {key: draw(ENTRIES) for key in LISTS if draw(st.booleans())} if depth == 3 else {}
    for key in reversed(KEYS[:depth]):
        value = {key: value}
    data = {"tasks": {name: value, "other": {"exec": {"command": "y"}}}}
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":")])) if indent is None else None
    text = json.dumps(data, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    text += draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode(), name


def _judge(raw: bytes, file: str, additions: dict[tuple[str, ...], list[str]]) -> bytes:
    expected = copy.deepcopy(parse(raw, file=file).data)
    for path, entries in additions.items():
        at = expected
        for key in path[:-1]:
            at = at.setdefault(key, {})
        there = at.setdefault(path[-1], [])
        there += [entry for entry in dict.fromkeys(entries) if entry not in there]
    found, changes = with_entries(raw, file=file, additions=additions)
    assert parse(found, file=file).data == expected
    # what was there is still there, in its order
    rest = iter(found)
    assert all(byte in rest for byte in raw if byte not in b" \r\n")
    assert found.endswith(b"\n") is raw.endswith(b"\n")
    ends = raw.count(b"\r\n"), raw.count(b"\n")
    if ends[1]:
        after = found.count(b"\r\n"), found.count(b"\n")
        assert (after[0] == after[1]) is (ends[0] == ends[1])
    assert found.startswith(b"\xef\xbb\xbf") is raw.startswith(b"\xef\xbb\xbf")
    assert with_entries(found, file=file, additions=additions) == (found, ())
    assert len(changes) == sum(len(set(e)) for e in additions.values()) - sum(
        entry in (_at(parse(raw, file=file).data, path) or ()) for path, e in additions.items() for entry in set(e)
    )
    return found


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _additions(name: str, read: list[str], write: list[str], inputs: list[str]) -> dict[tuple[str, ...], list[str]]:
    return {
        ("tasks", name, *KEYS, "read"): read,
        ("tasks", name, *KEYS, "write"): write,
        ("tasks", name, "cache", "inputs", "files"): inputs,
    }


@settings(max_examples=60)
@given(toml_files(), ADDED, ADDED, ADDED)
def test_entries_come_into_a_toml_file_and_nothing_else_moves(
    made: tuple[bytes, str], read: list[str], write: list[str], inputs: list[str]
) -> None:
    raw, name = made
    found = _judge(raw, "vx.toml", _additions(name, read, write, inputs))
    for remark in (b"# remark = [", b'# why, ["not"]', b'# on its own, ] "', b"# another's", b"# it", b"# z"):
        assert found.count(remark) == raw.count(remark)
    tomllib.loads(found.decode("utf-8-sig"))


@settings(max_examples=40)
@given(json_files(), ADDED, ADDED, ADDED)
def test_entries_come_into_a_json_file_and_nothing_else_moves(
    made: tuple[bytes, str], read: list[str], write: list[str], inputs: list[str]
) -> None:
    raw, name = made
    found = _judge(raw, "vx.json", _additions(name, read, write, inputs))
    if b"\n" not in raw.strip():
        assert b"\n" not in found.strip()
