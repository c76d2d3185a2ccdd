"""The list reader agrees with YAML, or refuses the file."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from vxconf.workspace.pnpm_yaml import NotAList, top_level_list


@pytest.mark.parametrize(
    "text",
    [
        "packages:\n  - apps/*\n  - 'libs/*'\n",
        "packages:\n- a\n- b\n",
        'packages:\n  - "a b"\n  # a comment\n\n  - \'it\'\'s\'\n  - "q\\"uote"\n',
        "packages:\n  - 'a' # why\n  - b # why\n  - c#d\n",
        "# top\nother:\n  packages:\n    - no\npackages:\n  - yes/*\ncatalog:\n  - no\n",
        "packages: [a, 'b', \"c\"]\n",
        "packages: [\n  a,  # one\n  '!b',\n]\nother: 1\n",
        '"packages":\n  - a\n',
        "'packages': [a]\n",
        "packages: []\n",
        "packages:\r\n  - a\r\n  - b\r\n",
        "packages:\n  - '!**/test/**'\n",
        "packages: # all of them\n  - a\n",
    ],
)
def test_a_plain_list_reads_as_yaml_reads_it(text: str) -> None:
    assert list(top_level_list(text, "packages")) == YAML(typ="safe").load(text)["packages"]


@pytest.mark.parametrize(
    "text", ["", "other:\n  - a\n", "packages:\n", "packages:\nother: 1\n", "  packages:\n  - a\n"]
)
def test_an_absent_or_empty_list_has_no_items(text: str) -> None:
    assert top_level_list(text, "packages") == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("packages: &anchor\n  - a\n", 1),
        ("packages: a\n", 1),
        ("packages:\n  - *alias\n", 2),
        ("packages:\n  - a\n    - b\n", 3),
        ("packages:\n  - key: value\n", 2),
        ("packages:\n  - |\n    text\n", 2),
        ("packages:\n  - [a]\n", 2),
        ("packages:\n  -\n", 2),
        ("packages:\n  - 'open\n", 2),
        ('packages:\n  - "\\x41"\n', 2),
        ("packages:\n  - 'a' b\n", 2),
        ("packages:\n  key: 1\n", 2),
        ("packages:\n  - !b\n", 2),
        ("packages: [a\n", 1),
        ("packages: [a b: c]\n", 1),
        ("packages: [,a]\n", 1),
        ("packages: ['a' 'b']\n", 1),
        ("packages: [a] b\n", 1),
    ],
)
def test_anything_else_yaml_can_say_is_refused_by_line(text: str, line: int) -> None:
    with pytest.raises(NotAList, match=rf"line {line}\b"):
        top_level_list(text, "packages")
