"""What a task has without any grant, and how its verdict comes about."""

from __future__ import annotations

import shutil
import subprocess

from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown, violated


def test_a_task_starts_in_its_project_without_any_grant(shop: Workspace) -> None:
    assert shop.passes("pwd") == f"{shop.project}\n"


def test_a_sibling_project_is_not_there_and_not_reported(shop: Workspace) -> None:
    result = shop.run("cat ../../libs/money/src/coin.py", read=["."])
    assert (result.exit_code, result.violations) == (1, ())
    assert b"No such file" in result.stderr


def test_a_file_of_the_workspace_root_is_not_there_and_not_reported(shop: Workspace) -> None:
    result = shop.run("cat ../../root-note.txt")
    assert (result.exit_code, result.violations) == (1, ())
    assert b"No such file" in result.stderr


def test_a_granted_root_file_is_copied_into_a_granted_directory(shop: Workspace) -> None:
    shop.passes("cp ../../root-note.txt out/", read=[".", "../../root-note.txt"], write=["out/"])
    assert shop.text("out/root-note.txt") == "a note\n"


def test_what_is_outside_the_workspace_can_be_read(shop: Workspace) -> None:
    make_tree(shop.base, {"elsewhere/file": "outside\n"})
    assert shop.passes(f"cat {shop.base}/elsewhere/file; cat /etc/passwd >/dev/null", read=["."]) == "outside\n"


def test_nothing_is_written_at_the_workspace_root(shop: Workspace) -> None:
    result = shop.run("echo x > ../../spill.txt")
    assert result.exit_code != 0
    assert b"Read-only file system" in result.stderr, shown(result)
    assert not (shop.root / "spill.txt").exists()


def test_a_granted_directory_is_made_and_written_without_any_read_grant(shop: Workspace) -> None:
    result = shop.run("echo made > out/file", write=["out/"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, b"", b"")
    assert shop.text("out/file") == "made\n"


def test_dependency_directories_of_project_and_root_need_no_grant(shop: Workspace) -> None:
    make_tree(shop.root, {"node_modules/hoisted/i.js": "hoisted\n", "apps/shop/node_modules/own/i.js": "own\n"})
    command = "cat ../../node_modules/hoisted/i.js node_modules/own/i.js"
    assert shop.passes(command, read=["."]) == "hoisted\nown\n"


def test_a_sibling_stays_hidden_when_the_workspace_is_reached_through_a_link(shop: Workspace) -> None:
    (shop.base / "alias").symlink_to(shop.root)
    result = shop.run(f"cat {shop.base}/alias/libs/money/src/coin.py > out/got", read=["."], write=["out/"])
    assert (result.exit_code, result.violations) == (1, ())
    assert shop.text("out/got") == ""


def test_a_swallowed_read_of_an_ungranted_file_fails_the_task(shop: Workspace) -> None:
    result = shop.run("cat notes.md || true", read=["lib/"])
    assert (result.exit_code, result.command_exit_code) == (1, 0), shown(result)
    assert violated(result, shop.project) == [("read", "notes.md")]


def test_a_failing_command_keeps_its_own_exit_code_beside_a_denial(shop: Workspace) -> None:
    result = shop.run("cat notes.md; exit 5", read=["lib/"])
    assert (result.exit_code, result.command_exit_code) == (5, 5)
    assert violated(result, shop.project) == [("read", "notes.md")]


def test_notes_never_turn_a_pass_red(shop: Workspace) -> None:
    result = shop.run("cat ../../base.toml || true", read=["."])
    assert (result.exit_code, result.violations, result.hints) == (0, (), ()), shown(result)


def test_the_command_runs_under_the_shell_an_unsandboxed_task_gets(quick_shop: Workspace) -> None:
    command = 'echo x{1,2}; [ -n "$BASH_VERSION" ] && echo b || echo n'
    outside = subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True)
    assert quick_shop.passes(command).encode() == outside.stdout


def test_forwarded_arguments_arrive_as_they_are(quick_shop: Workspace) -> None:
    assert quick_shop.passes("printf '%s/'", args=["two words", "it's"]) == "two words/it's/"
    odd = ["", "$HOME", "`x`", '"', "\\", "*", "new\nline", "-n", "ünï"]
    assert quick_shop.passes("printf '%s|'", args=odd) == "".join(f"{one}|" for one in odd)


def test_a_vanished_working_directory_is_said_and_nothing_runs(quick_shop: Workspace) -> None:
    request = quick_shop.request()
    shutil.rmtree(quick_shop.project)
    result = quick_shop.session.run(request, command="echo ran")
    assert (result.exit_code, result.started, result.stdout, result.violations) == (125, False, b"", ())
    assert any(str(quick_shop.project) in refusal.message for refusal in result.refusals), result.refusals


def test_exit_codes_and_deaths_by_signal_are_the_commands_own(shop: Workspace) -> None:
    result = shop.run("kill -9 $$")
    assert (result.exit_code, result.command_exit_code, result.signal) == (137, 137, "SIGKILL"), shown(result)
    assert (result.stdout, result.stderr) == (b"", b"")
    result = shop.run("exit 3")
    assert (result.exit_code, result.command_exit_code, result.signal) == (3, 3, None)


def test_what_the_command_left_running_ends_with_it(shop: Workspace) -> None:
    result = shop.run("sleep 60 & echo up")
    assert (result.exit_code, result.stdout) == (0, b"up\n"), shown(result)
    assert result.duration_ms < 30_000


def test_no_descriptor_but_the_standard_ones_is_open(shop: Workspace) -> None:
    # the listing itself needs one
    assert shop.passes("exec 3>&- ; ls /proc/self/fd").split() == ["0", "1", "2", "3"]
    for number in (3, 5, 8, 9):
        result = shop.run(f"echo x >&{number}")
        assert result.exit_code != 0
        assert b"descriptor" in result.stderr


def test_fields_of_the_other_platform_change_nothing(quick_shop: Workspace) -> None:
    fields = {"system_info": ("hw.ncpu",), "mach_lookup": ("com.acme.x",), "weaker_network_isolation": True}
    assert quick_shop.passes("echo ran", fields=fields) == "ran\n"


def test_a_project_with_one_granted_file_lists_what_leads_to_it(shop: Workspace) -> None:
    assert shop.passes("ls . && cat lib/cart.py", read=["lib/cart.py"]) == "lib\ncart\n"


def test_two_projects_with_one_command_are_judged_apart(shop: Workspace) -> None:
    other = Workspace(shop.session, shop.base, shop.root, shop.root / "libs" / "money", shop.home, shop.observer)
    make_tree(other.project, {"notes.md": "theirs\n"})
    assert violated(shop.run("cat notes.md"), shop.root) == [("read", "apps/shop/notes.md")]
    assert violated(other.run("cat notes.md"), shop.root) == [("read", "libs/money/notes.md")]
