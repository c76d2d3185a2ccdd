"""A task that takes all there is: descriptors of the warden, room on the disk, its patience."""

from __future__ import annotations

import os
import resource

import pytest

from sandbox import Session
from tests.redteam.conftest import Box, shown, violated
from tests.support.observers import ANSWERING, NEEDS_MASK


@NEEDS_MASK
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


@NEEDS_MASK
def test_callers_that_die_in_pages_that_go_hang_nobody(box: Box) -> None:
    box.write = ("dist",)
    told, result = box.attack("dying")
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


@pytest.mark.parametrize("each_box", ANSWERING, indirect=True)
def test_heaps_of_names_and_files_larger_than_any_disk_are_no_end_of_a_run(each_box: Box) -> None:
    each_box.write = ("dist",)
    count = 4_000 if each_box.observer == "mask" else 2_000
    told, result = each_box.attack("heaps", count, timeout=300)
    assert (result.exit_code, result.trace) == (0, "complete"), shown(result)
    assert told.pop("listed") == count
    assert (told.pop("size"), told.pop("written"), told.pop("read")) == (0, 10, "still here")
    # a file system that holds such a file lets it be cut to that size, as a sparse one
    assert told.pop("cut to 1 EiB") in (None, "EFBIG", "EINVAL")
    assert told.pop("write far out") in (1, "EFBIG", "EINVAL", "ENOSPC")
    assert set(told.values()) <= {"ENOSPC", "EFBIG", "EINVAL", "EOPNOTSUPP"}, told
    assert len(os.listdir(each_box.project / "dist")) == count // 1000 + 1
