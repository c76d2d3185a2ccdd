"""A task that takes all there is: descriptors of the warden, room on the disk, its patience."""

from __future__ import annotations

import resource
import time

from sandbox import Session
from tests.redteam.conftest import Box, shown, violated


def test_a_warden_without_descriptors_still_reads_who_asks_and_refuses(box: Box) -> None:
    """Who serves names gives so many of its descriptors to the task that it could not read its calls any more."""
    deep = box.project / "out/a/b/c/.git"
    deep.mkdir(parents=True)
    (box.project / "held").write_text("held\n")
    box.write = ("out/", "held")
    with Session() as session:
        box.session = session
        assert box.run("true").exit_code == 0
        assert session._supervisor is not None
        resource.prlimit(session._supervisor.pid, resource.RLIMIT_NOFILE, (600, 600))
        # with the third run the spare of before is used up
        for _ in range(2):
            assert box.run("true").exit_code == 0
        told, result = box.attack(
            "exhausting", "held", 500, f"{deep}/hooks/", "out/a/b/c/.bashrc", "secret.txt", "out/allowed"
        )
    assert "EMFILE" in told.pop("holders"), told
    assert told.pop("after") == "held\n"
    assert told.pop("out/allowed") == "done"
    assert "done" not in told.values() or [path for path, answer in told.items() if answer == "done"] == ["secret.txt"]
    assert (result.exit_code, result.trace) == (1, "complete"), shown(result)
    assert {("write", "out/a/b/c/.git/hooks"), ("write", "out/a/b/c/.bashrc"), ("write", "secret.txt")} <= violated(
        result, box.project
    )
    assert not (deep / "hooks").exists()
    assert (box.project / "secret.txt").read_text() == "the secret\n"


def test_callers_that_die_in_pages_that_go_hang_nobody(box: Box) -> None:
    box.write = ("dist",)
    began = time.monotonic()
    told, result = box.attack("dying")
    assert time.monotonic() - began < 30
    assert told.pop("size") == 1 << 40
    assert told.pop("written") == told.pop("read") == 8 << 20
    assert told.pop("data") is True
    # one that was killed between two calls may have left its own, beside the name
    assert set(told.pop("beside")) - {"secret.txt"} == {"dist", "lib"}
    assert set(told.values()) == {"EFBIG"}
    assert result.command_exit_code == 0, shown(result)
    assert (box.project / "dist").stat().st_size == 0
    assert (box.project / "secret.txt").read_text() == "the secret\n"
    assert not (box.root / ".vx").exists()
