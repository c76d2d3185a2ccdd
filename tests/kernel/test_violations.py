"""What is reported of what a task did, live and afterwards, and what is told beside a failure."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from sandbox import Ignore
from tests.conftest import make_tree
from tests.kernel.conftest import Link, Workspace, shown, violated
from tests.support.observers import ANSWERING

if TYPE_CHECKING:
    from sandbox import Violation


def _python(program: str) -> str:
    return shlex.join((os.path.realpath(sys.executable), "-I", "-S", "-c", program))


def test_a_line_has_call_spelling_errno_and_place(shop: Workspace) -> None:
    result = shop.run("cd lib; cat ../lib/../notes.md", read=["lib"])
    (violation,) = result.violations
    for part in ("openat", "../lib/../notes.md", "ENOENT", f"{shop.project}/notes.md"):
        assert part in violation.line
    assert (violation.kind, violation.operation, violation.errno) == ("read", "openat", "ENOENT")
    assert (violation.target, violation.path) == ("../lib/../notes.md", f"{shop.project}/notes.md")


@pytest.mark.parametrize(
    ("program", "operation"),
    [
        ("os.stat('notes.md')", "stat"),
        ("os.access('notes.md', os.R_OK)", "access"),
        ("os.readlink('link')", "readlink"),
        ("os.chdir('conf')", "chdir"),
        ("os.listdir('conf')", "open"),
        ("open('notes.md')", "open"),
        ("os.execv('lib/../tool.sh', ['t'])", "execve"),
        ("os.open('real.json', os.O_RDONLY, dir_fd=os.open('conf', os.O_RDONLY))", "open"),
    ],
)
def test_every_look_at_a_hidden_file_of_the_project_counts(shop: Workspace, program: str, operation: str) -> None:
    make_tree(shop.project, {"tool.sh": "#!/bin/sh\n", "link": Link("notes.md")})
    (shop.project / "tool.sh").chmod(0o755)
    result = shop.run(_python(f"import os\ntry: {program}\nexcept OSError: pass"), read=["lib"])
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert any(operation in v.operation or v.operation == "newfstatat" for v in result.violations), shown(result)


def test_a_look_at_a_name_the_host_has_not_either_is_silent_and_an_open_of_it_counts(shop: Workspace) -> None:
    shop.passes("test -e nowhere || test -x nowhere/x || cd nowhere 2>/dev/null || true", read=["lib"])
    result = shop.run("cat nowhere || true", read=["lib"])
    assert violated(result, shop.project) == [("read", "nowhere")]


def test_a_missing_file_below_a_grant_is_the_tasks_own(shop: Workspace) -> None:
    make_tree(shop.project, {"real/f": "f\n", "alias": Link("real")})
    shop.passes(
        "cat lib/none real/none alias/none out/state 2>/dev/null || true", read=["lib", "alias/"], write=["out/"]
    )
    shop.passes("cat none 2>/dev/null || true", read=["."])


def test_a_dangling_link_in_a_granted_directory_is_the_tasks_own(shop: Workspace) -> None:
    make_tree(shop.project, {"dangling": Link("nothing"), "away": Link("/nowhere/at/all")})
    shop.passes("cat dangling away 2>/dev/null || true", read=["."])


def test_a_copy_opens_its_missing_destination_without_a_violation(shop: Workspace) -> None:
    shop.passes("cp lib/cart.py out/c.py && test -f out/c.py", read=["lib"], write=["out/"])


def test_a_search_for_programs_adds_nothing(shop: Workspace) -> None:
    make_tree(shop.project, {"node_modules/.bin/other": "", ".venv/bin/other": ""})
    assert shop.passes("cat lib/cart.py && expr 1 + 1 && ls lib", read=["lib"]) == "cart\n2\ncart.py\ntax.py\n"


def test_a_directory_of_ungranted_programs_is_searched_silently(shop: Workspace) -> None:
    make_tree(shop.project, {"tools/other": ""})
    shop.passes("cat lib/cart.py >/dev/null", read=["lib"], env={"PATH": f"{shop.project}/tools:/usr/bin:/bin"})


def test_each_distinct_call_is_reported_once(shop: Workspace) -> None:
    result = shop.run("for i in 1 2 3; do cat notes.md; cat ./notes.md; done; true", read=["lib"])
    assert violated(result, shop.project) == [("read", "notes.md")], shown(result)


def test_names_that_only_begin_alike_are_not_the_projects(shop: Workspace) -> None:
    make_tree(shop.root, {"apps/shopper/x": "x\n"})
    result = shop.run("cat ../shopper/x ../../base.toml; true", read=["lib"])
    assert (result.exit_code, result.violations) == (0, ()), shown(result)


def test_the_project_directory_itself_is_within_the_boundary(shop: Workspace) -> None:
    # the way there lists only what was granted, which is not a denial
    assert shop.passes("ls -A", read=["lib/cart.py"]) == "lib\n"


def test_a_relative_name_is_placed_where_the_process_stands(shop: Workspace) -> None:
    make_tree(shop.project, {"lib/deep/k": "k\n"})
    result = shop.run("(cd lib/deep && cat ../../notes.md k); cat conf/real.json; true", read=["lib"])
    assert violated(result, shop.project) == [("read", "notes.md"), ("read", "conf/real.json")]


def test_two_denials_beside_notes_are_counted_as_two(shop: Workspace) -> None:
    result = shop.run("cat notes.md conf/real.json ../../base.toml; exit 4", read=["lib"])
    assert (result.exit_code, len(result.violations)) == (4, 2)
    assert [h for h in result.hints if "base.toml" in h.line], shown(result)


def test_a_denial_outside_is_told_beside_a_failure_with_its_grant(shop: Workspace) -> None:
    result = shop.run("cat ../../base.toml", read=["."])
    assert (result.exit_code, result.violations) == (1, ())
    (hint,) = result.hints
    assert str(shop.root / "base.toml") in hint.line
    assert '"../../base.toml"' in hint.line
    assert shop.run("cat ../../nope.toml", read=["."]).hints == ()


def test_an_ignored_denial_is_left_out_and_stays_a_denial(shop: Workspace) -> None:
    make_tree(shop.project, {"gen/a/b.py": "b\n", "alias": Link("notes.md")})
    ignoring = {"ignore": Ignore(read=("gen/**", "alias"), write=("*.part",))}
    result = shop.run("cat gen/a/b.py notes.md; echo x > f.part; true", read=["lib"], fields=ignoring)
    assert (result.exit_code, result.violations, result.stdout) == (0, (), b""), shown(result)
    assert not (shop.project / "f.part").exists()
    result = shop.run("cat conf/real.json; echo x > gen/f.part; true", read=["lib"], fields=ignoring)
    assert violated(result, shop.project) == [("read", "conf/real.json"), ("write", "gen/f.part")]


@pytest.mark.parametrize(("name", "masked"), [("DEPLOY_TOKEN", True), ("DEPLOY_PLACE", False)])
def test_a_secrets_value_is_masked_wherever_people_see_it(shop: Workspace, name: str, masked: bool) -> None:
    command = f'mkdir "$(printenv {name})"; true'
    result = shop.run(command, read=["lib"], env={name: "hunter2hunter2"})
    assert len(result.violations) == 1, shown(result)
    said = f"{result.violations[0]} {result.hints} {result.fix}"
    assert ("hunter2hunter2" in said) is not masked
    assert ("***" in said) is masked


@pytest.mark.parametrize("observer", ANSWERING, indirect=True)  # it grants names
def test_following_the_fix_leads_to_a_pass(shop: Workspace) -> None:
    command = "cat notes.md conf/real.json && cp notes.md gen/n && mkdir -p fresh && echo x > fresh/y; true"
    make_tree(shop.project, {"gen/old": "old\n"})
    read: list[str] = ["lib"]
    write: list[str] = []
    for _ in range(5):  # the first refusal ends the command: what comes after it is met only then
        result = shop.run(command, read=read, write=write)
        if result.fix is None:
            break
        read += result.fix.allow.read
        write += result.fix.allow.write
    assert (result.exit_code, result.violations) == (0, ()), shown(result)
    assert shop.text("gen/n") == "notes\n"


def test_a_directory_left_again_on_the_way_is_a_look_at_it(shop: Workspace) -> None:
    result = shop.run("cd lib && cat ../conf/../notes.md; true", read=["lib"])
    assert violated(result, shop.project) == [("read", "conf"), ("read", "notes.md")], shown(result)
    assert {v.target for v in result.violations} == {"../conf/../notes.md"}
    # the file alone is not enough, and that is not passed over
    result = shop.run("cd lib && cat ../conf/../notes.md; true", read=["lib", "notes.md"])
    assert violated(result, shop.project) == [("read", "conf")], shown(result)
    assert shop.passes("cat conf/../notes.md lib/../notes.md", read=["lib", "notes.md", "conf/real.json"])


def test_dots_after_a_link_are_where_the_link_leads(shop: Workspace) -> None:
    make_tree(shop.project, {"deep/er/x": "x\n", "deep/secret": "s\n", "alias": Link("deep/er"), "secret": "top\n"})
    result = shop.run("cat alias/../secret; true", read=["alias/", "secret"])
    assert violated(result, shop.project) == [("read", "deep/secret")], shown(result)


def test_a_violation_is_heard_before_the_command_ends(shop: Workspace) -> None:
    heard: list[Violation] = []
    reading, writing = os.pipe()

    def hear(violation: Violation) -> None:
        heard.append(violation)
        os.write(writing, b"go\n")

    # the command ends only once it was told that its violation was heard
    timer = threading.Timer(60, os.write, (writing, b"late\n"))
    timer.start()
    try:
        result = shop.run("cat notes.md; read word; echo $word", read=["lib"], stdin=reading, on_violation=hear)
    finally:
        timer.cancel()
        os.close(reading)
        os.close(writing)
    assert result.stdout == b"go\n", shown(result)
    assert heard == list(result.violations)


def test_a_listing_shows_what_was_granted_and_is_no_violation(shop: Workspace) -> None:
    assert shop.passes("ls; find . -type f", read=["lib/tax.py"]) == "lib\n./lib/tax.py\n"


def test_a_missing_interpreter_of_a_granted_script_is_seen(shop: Workspace) -> None:
    make_tree(shop.project, {"lib/run": f"#!{shop.project}/tool\n", "tool": "#!/bin/sh\necho ran\n"})
    (shop.project / "lib/run").chmod(0o755)
    (shop.project / "tool").chmod(0o755)
    result = shop.run("lib/run; true", read=["lib"])
    if shop.observer == "mask":
        assert violated(result, shop.project) == [("read", "tool")], shown(result)
    assert result.stdout == b""


def test_a_thousand_denials_are_all_reported(shop: Workspace) -> None:
    make_tree(shop.project, {f"many/{i}": "" for i in range(1000)})
    program = "import os, contextlib\nfor i in range(1000):\n with contextlib.suppress(OSError): open(f'many/{i}')"
    result = shop.run(_python(program), read=["lib"])
    assert len(result.violations) == 1000
    assert result.trace == "complete"
