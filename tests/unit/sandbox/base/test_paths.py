from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox.base import paths
from sandbox.machine.ask_facts import HostFiles, Snapshot
from tests.support.memory_files import MemoryFiles

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.base.host_facts import Kind


@pytest.mark.parametrize(
    ("path", "directory", "expected"),
    [
        ("/ws/ab", "/ws/a", False),
        ("/ws/a", "/ws/a", True),
        ("/ws/a/b", "/ws/a", True),
        ("/x", "/", True),
        ("/", "/", True),
        ("/", "/x", False),
    ],
)
def test_at_or_under_compares_whole_components(path: str, directory: str, expected: bool) -> None:
    assert paths.at_or_under(path, directory) is expected


@pytest.mark.parametrize(
    ("path", "directory", "expected"),
    [("/a", "/a", False), ("/a/b", "/a", True), ("/", "/", False), ("/a", "/", True)],
)
def test_under_leaves_the_directory_itself_out(path: str, directory: str, expected: bool) -> None:
    assert paths.under(path, directory) is expected


def test_the_root_is_joined_and_split_without_a_doubled_separator() -> None:
    assert paths.join("/", "a", "b") == "/a/b"
    assert paths.join("/a", "b") == "/a/b"
    assert paths.join("/") == "/"
    assert paths.parent("/a") == "/"
    assert paths.parent("/a/b") == "/a"
    assert paths.parent("/") == "/"
    assert paths.name("/a/b") == "b"
    assert paths.name("/") == ""


def test_parents_come_nearest_first_and_end_at_the_root() -> None:
    assert list(paths.parents("/a/b/c")) == ["/a/b", "/a", "/"]
    assert list(paths.parents("/")) == []


def test_normal_takes_dots_and_doubled_separators_away() -> None:
    assert paths.normal("//a/./b//../c/") == "/a/c"
    assert paths.normal("/../..") == "/"


def test_relative_is_seen_from_the_directory() -> None:
    assert paths.relative("/a/b/c", "/a") == "b/c"
    assert paths.relative("/a", "/a") == "."
    assert paths.relative("/a", "/") == "a"


def test_the_existing_prefix_is_resolved_and_the_missing_rest_appended() -> None:
    files = MemoryFiles.of("/ws/target/", links={"/ws/alias": "target"})
    assert paths.canonical("/ws/alias", files) == "/ws/target"
    assert paths.canonical("/ws/alias/not/yet", files) == "/ws/target/not/yet"


def test_a_link_through_a_link_and_an_absolute_one_are_followed() -> None:
    files = MemoryFiles.of("/b/c/f", links={"/one": "/two", "/two": "b", "/b/up": ".."})
    assert paths.canonical("/one/c/f", files) == "/b/c/f"
    assert paths.canonical("/b/up/one", files) == "/b"
    assert paths.links_on("/one/c", files) == (("/one", "/two"), ("/two", "b"))


def test_dots_after_a_link_are_those_of_its_target() -> None:
    files = MemoryFiles.of("/far/deep/", links={"/near": "/far/deep"})
    assert paths.canonical("/near/../x", files) == "/far/x"


def test_dots_after_a_missing_name_are_lexical_and_links_behind_them_followed() -> None:
    files = MemoryFiles.of("/ws/target/", links={"/ws/alias": "target"})
    assert paths.canonical("/ws/missing/deep/../../alias/x", files) == "/ws/target/x"


def test_a_dangling_link_leads_to_its_missing_target() -> None:
    files = MemoryFiles.of(links={"/ws/gone": "../else/where"})
    assert paths.canonical("/ws/gone/x", files) == "/else/where/x"


def test_a_loop_of_links_comes_back_as_it_was() -> None:
    files = MemoryFiles.of(links={"/a": "b", "/b": "a", "/self": "self/x"})
    assert paths.canonical("/a/f", files) == "/a/f"
    assert paths.canonical("/self", files) == "/self"
    assert paths.links_on("/a/f", files) == ()


def test_forty_links_are_followed_and_the_next_one_is_not() -> None:
    chain = {f"/l{n}": f"l{n + 1}" for n in range(paths.LINK_HOPS)}
    files = MemoryFiles.of(f"/l{paths.LINK_HOPS}", links=chain)
    assert paths.canonical("/l0", files) == f"/l{paths.LINK_HOPS}"
    longer = MemoryFiles.of("/end", links={**chain, f"/l{paths.LINK_HOPS}": "end"})
    assert paths.canonical("/l0", longer) == "/l0"


def test_a_directory_is_followed_once_however_many_paths_lead_through_it(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    (tmp_path / "to").symlink_to("far/away")
    looked: list[str] = []

    class Counted(Snapshot):
        def kind(self, path: str) -> Kind | None:
            looked.append(path)
            return super().kind(path)

    files = Counted()
    for number in range(100):
        assert paths.canonical(f"{root}/to/{number}", files) == f"{root}/far/away/{number}"
    # the directories twice at most: once by themselves, and once more on the way that the link leads
    assert len(looked) <= 100 + 2 * len(paths.parts(f"{root}/far/away"))


def test_a_path_as_long_as_the_kernel_takes_is_followed(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    (tmp_path / "to").symlink_to(".")
    files = Snapshot()
    deep = f"{root}/to" + "/x" * 2048
    assert paths.canonical(deep, files) == root + "/x" * 2048
    assert paths.links_on(deep, files) == ((f"{root}/to", "."),)
    assert len(files.kept) < 10, "the way to each directory of a deep path is kept"


@pytest.mark.parametrize("name", ["a\nb", "caf\udce9", 'it\'s "quoted"', "two words", "[x]*?{y}\\z", "é", "-n"])
def test_any_name_survives_on_a_real_file_system(tmp_path: Path, name: str) -> None:
    root = str(tmp_path.resolve())
    (tmp_path / name).mkdir()
    (tmp_path / "to").symlink_to(name)
    assert paths.canonical(f"{root}/to/x", HostFiles()) == f"{root}/{name}/x"
    assert paths.links_on(f"{root}/to", HostFiles()) == ((f"{root}/to", name),)
