"""Generated files are fresh, and the examples in the documentation are valid or wrong as they say."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from tests.conftest import REPOSITORY
from tests.support.configs import judge
from vxconf.diagnostics.codes.all_codes import CODES
from vxconf.diagnostics.codes.code import Stage
from vxconf.diagnostics.diagnostic import Severity
from vxconf.document.parse import parse
from vxconf.schema import generate
from vxconf.validate.validate import validate_workspace

_BLOCK = re.compile(r"^```(?P<language>toml|json|jsonc)(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
#: The tables at the top of a task file; an example with none of them is about another file.
_OURS = {"tasks", "name", "$schema"}
_WORKSPACE = {"projects", "cacheDir"}


def _blocks() -> list[tuple[str, str, str, str]]:
    found = []
    for page in sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]):
        text = page.read_text("utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            where = f"{page.relative_to(REPOSITORY)}:{line}"
            found.append((where, match["language"], match["info"].strip(), match["text"]))
    return found


BLOCKS = _blocks()


def _is_config(language: str, text: str) -> bool:
    if language != "toml":
        return '"tasks"' in text
    try:
        return bool((_OURS | _WORKSPACE) & tomllib.loads(text).keys()) or not text.strip()
    except tomllib.TOMLDecodeError:
        return True


def test_the_documentation_has_examples() -> None:
    assert len(BLOCKS) > 80


@pytest.mark.parametrize(("where", "language", "info", "text"), BLOCKS, ids=[b[0] for b in BLOCKS])
def test_example_in_the_documentation_is_judged_as_it_says(where: str, language: str, info: str, text: str) -> None:
    if info.startswith("wrong="):
        code = CODES[info.removeprefix("wrong=")]
        said = {d.code: d for d in judge(text.encode())}
        if code.stage is Stage.TEXT:
            assert code.code in said, where
        # another error would hide the one that the example shows
        assert {c for c, d in said.items() if d.severity is Severity.ERROR} <= {code.code}, (where, said)
    elif _is_config(language, text):
        if language == "toml" and _WORKSPACE & tomllib.loads(text).keys():
            assert validate_workspace(parse(text.encode(), file="workspace.toml")) == (), where
        else:
            file = "vx.toml" if language == "toml" else "vx.json"
            assert [d for d in judge(text.encode(), file) if d.severity is Severity.ERROR] == [], where


@pytest.mark.parametrize("name", generate.files())
def test_generated_file_is_fresh(name: str) -> None:
    text = (REPOSITORY / name).read_text("utf-8")
    assert generate.fresh(name, text), f"{name} is stale: run {generate.COMMAND}"


def test_a_changed_schema_makes_a_validator_stale() -> None:
    # made here, since the file in the repository may come from another version of fastjsonschema
    text = generate.files()["vxconf/schema/_generated_validator.py"]()
    assert generate.fresh("vxconf/schema/_generated_validator.py", text)
    assert not generate.fresh("vxconf/schema/_generated_validator.py", text.replace("65535", "65536"))
    other = re.sub(r"by fastjsonschema \S+", "by fastjsonschema 0.0.1", text)
    assert generate.fresh("vxconf/schema/_generated_validator.py", other + "# laid out otherwise\n")
    assert not generate.fresh("vxconf/schema/_generated_validator.py", re.sub(r"sha256 \S+", "sha256 0", other))


def test_the_command_checks_and_refuses_what_it_does_not_know() -> None:
    script = REPOSITORY / generate.COMMAND
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([sys.executable, script, "--nope"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--check" in done.stderr


def test_every_code_has_one_anchor() -> None:
    page = generate.diagnostics_page()
    for code in CODES.values():
        assert page.count(f'<a id="{code.code.lower()}"></a>') == 1


def test_toml_of_an_example_reads_back() -> None:
    data = {"a": 1, "b c": {"x": ["é", 'q"', "b\\s", "both\\'"], "t": True}, "e": {}, "n": {"m": {"k": 1.5}}}
    assert tomllib.loads(generate.toml(data)) == data
    assert tomllib.loads(f"x = {generate.inline(data)}")["x"] == data
