"""The variables and the temporary directory a task starts with."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from sandbox.base.task_environment_variables import JAVA_FLAGS, MARKER, PROXIES
from tests.conftest import make_tree
from tests.kernel.conftest import Workspace, shown


def _variables(shop: Workspace, **options: Any) -> dict[str, str]:
    # the shell adds PWD and its own
    printed = shop.passes("exec /usr/bin/env -0", **options)
    found = dict(pair.split("=", 1) for pair in printed.split("\0") if pair)
    for name in ("PWD", "OLDPWD", "SHLVL", "_"):
        found.pop(name, None)
    return found


def test_the_environment_is_exactly_what_is_declared(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*os.environ,):
        if name not in ("PATH", "HOME", "VX_TMPDIR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("SECRET", "never")
    monkeypatch.setenv("WANTED", "as it is")
    found = _variables(
        quick_shop, env={"MINE": "a\nb", "TZ": "Asia/Tokyo", "EMPTY": ""}, pass_through=["WANTED", "UNSET"]
    )
    path = found.pop("PATH").split(":")
    assert path[:4] == [
        f"{quick_shop.project}/node_modules/.bin",
        f"{quick_shop.project}/.venv/bin",
        f"{quick_shop.root}/node_modules/.bin",
        f"{quick_shop.root}/.venv/bin",
    ]
    assert found.pop("TMPDIR").startswith(f"{quick_shop.base}/temp/")
    assert found == {
        "HOME": str(quick_shop.home),
        "LC_TIME": "C",
        "TZ": "Asia/Tokyo",
        "WANTED": "as it is",
        "MINE": "a\nb",
        "EMPTY": "",
        **PROXIES,
        MARKER: "1",
        "JAVA_TOOL_OPTIONS": JAVA_FLAGS,
    }


def test_a_variable_that_is_no_text_arrives_as_it_is(quick_shop: Workspace) -> None:
    result = quick_shop.run('printf %s "$ODD"', env={"ODD": os.fsdecode(b"a\xffb")})
    assert result.stdout == b"a\xffb", shown(result)


def test_a_temporary_directory_is_one_tasks_alone_and_goes_with_it(shop: Workspace) -> None:
    first = shop.passes("echo x > $TMPDIR/x && echo $TMPDIR").strip()
    assert not os.path.exists(first)
    second = shop.passes("test ! -e $TMPDIR/x && ls -A $TMPDIR && echo $TMPDIR").strip()
    assert second != first
    assert not os.path.exists(second)
    (users,) = os.listdir(shop.base / "temp")
    assert os.listdir(shop.base / "temp" / users) == []


def test_other_names_of_the_temporary_directory_are_not_invented(
    quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEMP", raising=False)
    monkeypatch.setenv("TMP", "/elsewhere")
    found = _variables(quick_shop, env={})
    assert found["TMP"] == found["TMPDIR"]
    assert "TEMP" not in found
    quick_shop.passes("echo x > $TMP/x")


def test_a_tasks_own_value_of_the_temporary_directory_does_not_survive(quick_shop: Workspace) -> None:
    found = _variables(quick_shop, env={"TMPDIR": "/mine", "TEMP": "/mine"})
    assert found["TMPDIR"] == found["TEMP"] != "/mine"


def test_a_locked_temporary_directory_goes_too(quick_shop: Workspace) -> None:
    place = quick_shop.passes(
        "mkdir -p $TMPDIR/a/b && echo x > $TMPDIR/a/b/c && chmod 000 $TMPDIR/a/b $TMPDIR/a $TMPDIR/a/b/c; "
        "chmod 000 $TMPDIR; echo $TMPDIR"
    ).strip()
    assert not os.path.exists(place)


def test_another_tasks_temporary_directory_does_not_exist(shop: Workspace) -> None:
    reading, writing = os.pipe()
    told: list[bytes] = []
    ready = threading.Event()

    def hear(chunk: bytes) -> None:
        told.append(chunk)
        ready.set()

    other = threading.Thread(
        target=shop.run,
        args=("echo secret > $TMPDIR/x; echo $TMPDIR; read _",),
        kwargs={"stdin": reading, "on_stdout": hear},
    )
    other.start()
    try:
        assert ready.wait(60)
        place = b"".join(told).decode().strip()
        result = shop.run(f"cat {place}/x; ls {place}; ls {os.path.dirname(place)} | grep -vc $(basename $TMPDIR)")
        assert result.stdout == b"0\n", shown(result)
    finally:
        os.write(writing, b"\n")
        other.join()
        os.close(reading)
        os.close(writing)


def test_the_root_of_temporary_directories_is_made(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tree(quick_shop.base, {"fresh": None})
    monkeypatch.setenv("VX_TMPDIR", str(quick_shop.base / "fresh"))
    quick_shop.passes("echo x > $TMPDIR/x")
    (users,) = (quick_shop.base / "fresh").iterdir()
    assert users.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["with space", "q'\"`$(x)", "[ab]*?", "new\nline", "ünï"])
def test_a_temporary_root_may_have_any_name(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make_tree(quick_shop.base, {name: None})
    monkeypatch.setenv("VX_TMPDIR", str(quick_shop.base / name))
    assert quick_shop.passes('echo x > "$TMPDIR/x" && cat "$TMPDIR/x"') == "x\n"


def test_a_temporary_root_that_is_missing_is_said(quick_shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VX_TMPDIR", str(quick_shop.base / "nowhere"))
    result = quick_shop.run("echo ran")
    assert (result.exit_code, result.started) == (125, False)
    assert any("nowhere" in refusal.message and "VX_TMPDIR" in refusal.hint for refusal in result.refusals), (
        result.refusals
    )


def test_a_temporary_root_inside_the_workspace_is_writable_for_its_task_alone(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(shop.project, {"tmp": None})
    monkeypatch.setenv("VX_TMPDIR", str(shop.project / "tmp"))
    assert shop.passes("echo x > $TMPDIR/x && cat $TMPDIR/x lib/cart.py", read=["lib"]) == "x\ncart\n"
