"""Random file systems around a workspace, and random grants over them, for tests in real sandboxes."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from sandbox.base import globs, paths
from sandbox.base.host_facts import HostFacts
from sandbox.contract.config import ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.machine.ask_facts import HostFiles
from sandbox.planning import linux_plan
from sandbox.request import build as requests
from sandbox.request.request import WorkspaceFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.planning.path_reach import Plan
    from sandbox.request.request import Request

#: Where the project is in the workspace.
PROJECTS = ("", "apps/shop")
#: Where the workspace is; each world has a home, and one more directory outside the workspace.
WORKSPACES = ("ws", "home/code/ws", "home/.config/gh/ws", "big/pkgs/ws")
#: Where the repository is: nowhere, around the workspace, shared with another checkout, or kept apart from it.
REPOSITORIES = ("", "around", "worktree", "apart")
STORES = (".ssh/id", ".npmrc", ".config/gh/hosts", ".docker/config.json", ".netrc")

_NAMES = (
    "a",
    "b",
    "c d",
    "new\nline",
    "q'\"`$x",
    "ünï",
    "[ab]",
    "s*?",
    "{a,b}",
    "back\\slash",
    ".dot",
    "-dash",
    "\udcff",
    ".git",
    "node_modules",
    ".Vscode",
    ".bashrc",
    ".claude",
    "hooks",
    "config",
)
_PATTERNS = ("*", "**/*", "**", "**/a", "*/b", "[ab]", "?", "{a,b}", "*a*", "**/.*", ".*", "a/**", "b/*")


@dataclass(frozen=True)
class World:
    """What is made on disk, relative to a directory of its own.

    Attributes:
        entries: relative path -> "dir", "file", or "-> target" for a link (`@/` stands for the world's directory).
        grants: relative grants with what is added to each: "" or "/" or a pattern; reads and writes.
        names: relative places granted for writing by name, with what is added to each: "" or a pattern.
        nested: directories that are projects too.
        keyed: directories of the projects the key answers for, `None` without a cache.
        repository: one of `REPOSITORIES`.
    """

    workspace: str
    project: str
    entries: dict[str, str]
    reads: tuple[tuple[str, str], ...]
    writes: tuple[str, ...]
    nested: tuple[str, ...]
    cache: str | None
    names: tuple[tuple[str, str], ...] = ()
    keyed: tuple[str, ...] | None = None
    repository: str = ""
    hermetic: bool = False
    git_config: bool = False


_name = st.sampled_from(_NAMES)
_content = st.one_of(
    st.just("dir"),
    st.just("file"),
    st.lists(st.one_of(_name, st.just(".."), st.just(".")), min_size=1, max_size=4).map(lambda p: "-> " + "/".join(p)),
    st.sampled_from(
        ("-> @/home/.npmrc", "-> @/home/.ssh", "-> @/out/side", "-> @/missing", "-> /", "-> @/nowhere/at/all")
    ),
)


def _anchored(workspace: str, project: str) -> st.SearchStrategy[str]:
    """A relative path of anything: mostly in the project, sometimes beside or outside it."""
    inside = paths.join(workspace, project) if project else workspace
    anchor = st.sampled_from((inside, inside, inside, workspace, "out", "home"))
    return st.tuples(anchor, st.lists(_name, min_size=1, max_size=3)).map(lambda t: "/".join((t[0], *t[1])))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world whose grants mostly name something that is there."""
    workspace = draw(st.sampled_from(WORKSPACES))
    project = draw(st.sampled_from(PROJECTS))
    anywhere = _anchored(workspace, project)
    entries = draw(st.dictionaries(anywhere, _content, min_size=3, max_size=14))
    for store in draw(st.lists(st.sampled_from(STORES), max_size=4, unique=True)):
        entries[f"home/{store}"] = "file"
    if draw(st.booleans()):
        entries["home/.aws"] = f"-> @/{draw(st.sampled_from(['out', 'out/a', workspace, 'home/b']))}"
    if draw(st.booleans()):
        entries[f"{workspace}/.git"] = draw(_content)
    there = sorted({part for path in entries for part in _prefixes(path)} | {workspace, "out", "home"})
    place = st.one_of(st.sampled_from(there), st.sampled_from(there), anywhere)
    added = st.one_of(st.just(""), st.just("/"), st.sampled_from(_PATTERNS).map(lambda p: "/" + p))
    named = st.one_of(st.just(""), st.just(""), st.sampled_from(_PATTERNS).map(lambda p: "/" + p))
    return World(
        workspace=workspace,
        project=project,
        entries=entries,
        reads=tuple(draw(st.lists(st.tuples(place, added), max_size=4))),
        writes=tuple(draw(st.lists(place, max_size=3))),
        names=tuple(draw(st.lists(st.tuples(place, named), max_size=3))),
        nested=tuple(draw(st.lists(place, max_size=2))),
        cache=draw(st.one_of(st.none(), place)),
        keyed=draw(st.one_of(st.none(), st.lists(place, max_size=2).map(tuple))),
        repository=draw(st.sampled_from(REPOSITORIES)),
        hermetic=draw(st.sampled_from((False, False, True))),
        git_config=draw(st.booleans()),
    )


def _prefixes(path: str) -> Iterator[str]:
    found = path.split("/")
    for count in range(1, len(found) + 1):
        yield "/".join(found[:count])


@dataclass
class Made:
    """A world on disk."""

    base: str
    world: World
    request: Request
    served: bool = True
    refused: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        return linux_plan.plan(self.request, HostFiles(), served=self.served)

    def interesting(self) -> list[str]:
        """Every path that is there or nearly so, and ways to them that are not straight."""
        found: list[str] = []
        for directory, directories, files in os.walk(self.base):
            found += (directory, f"{directory}/.missing")
            found += (f"{directory}/{name}" for name in (*directories, *files))
        for path in list(found):
            if os.path.islink(path):
                found += (f"{path}/.", f"{path}/a", f"{path}/..", f"{path}/../b", f"{path}/.missing")
            elif os.path.isfile(path):
                found += (f"{path}/a", f"{path}/..")
        return list(dict.fromkeys(found))


def make(world: World, base: str, *, programs: Iterable[str] = (), served: bool = True) -> Made:
    """Make a world in an existing directory; grants that cannot be given are left out and remembered.

    Args:
        world: what to make.
        base: where.
        programs: directories a hermetic task needs to find anything out.
        served: whether something serves what is granted by name.
    """
    files = HostFiles()
    workspace, project = _trees(world, base)
    facts = HostFacts(platform="linux", home=f"{base}/home", temp_root=f"{base}/tmp/tasks")
    bare = ResolvedSandboxConfig(
        platform="linux",
        workspace=workspace,
        project=project,
        # the program that looks around and its interpreter
        allow_read=tuple(f"{globs.escape(path)}/" for path in programs) if world.hermetic else (),
        hermetic=world.hermetic,
        git_config=world.git_config,
    )
    keyed = None if world.keyed is None else tuple(f"{base}/{relative}" for relative in world.keyed)
    links: dict[str, str] = {}

    def canonical(relative: str) -> str:
        links.update(paths.links_on(f"{base}/{relative}", files))
        return paths.canonical(f"{base}/{relative}", files)

    def grants() -> Iterator[ResolvedSandboxConfig]:
        for relative, added in world.reads:
            yield replace(bare, allow_read=(globs.escape(canonical(relative)) + added,))
        # a link may lead out of the world, where nothing is to be made
        for place in (place for place in map(canonical, world.writes) if paths.under(place, base)):
            yield replace(bare, allow_write=(globs.escape(place) + "/",))
        for relative, added in world.names:
            place = canonical(relative)
            if paths.under(place, base):
                yield replace(bare, allow_write=(globs.escape(place) + added,))

    def build(config: ResolvedSandboxConfig, nested: Iterable[str], cache: str | None) -> Request:
        known = WorkspaceFacts(
            root=workspace, nested=tuple(nested), keyed=keyed, cache_dir=cache, links=tuple(links.items())
        )
        return requests.build(config, known, files=files, facts=facts)

    nested = tuple(f"{base}/{relative}" for relative in world.nested if os.path.isdir(f"{base}/{relative}"))
    cache = None if world.cache is None else f"{base}/{world.cache}"
    made = Made(base, world, build(bare, nested, cache), served)
    config = bare
    for grant in grants():
        more = replace(
            config,
            allow_read=config.allow_read + grant.allow_read,
            allow_write=config.allow_write + grant.allow_write,
        )
        try:
            request = build(more, nested, cache)
            linux_plan.plan(request, files, served=served)
        except RequestRefused as error:
            made.refused.append(str(error))
            continue
        config, made.request = more, request
    return made


def _trees(world: World, base: str) -> tuple[str, str]:
    """Make every directory and entry; where the workspace and the project are."""
    workspace = f"{base}/{world.workspace}"
    project = f"{workspace}/{world.project}".rstrip("/")
    for directory in (project, f"{base}/home", f"{base}/out", f"{base}/tmp"):
        os.makedirs(directory, exist_ok=True)
    _repository(world.repository, workspace, base)
    for count, (relative, content) in enumerate(sorted(world.entries.items())):
        _entry(f"{base}/{relative}", content, base, count)
    return workspace, project


def _repository(where: str, workspace: str, base: str) -> None:
    """Make what git would, as far as it says where it is."""
    if where == "around":
        os.makedirs(f"{os.path.dirname(workspace)}/.git", exist_ok=True)
        _entry(f"{os.path.dirname(workspace)}/.git/HEAD", "file", base, 0)
        _entry(f"{os.path.dirname(workspace)}/other", "file", base, 1)
    elif where:
        data = f"{base}/main/.git/worktrees/w" if where == "worktree" else f"{base}/out/data"
        os.makedirs(data, exist_ok=True)
        os.makedirs(workspace, exist_ok=True)
        texts = {f"{workspace}/.git": f"gitdir: {data}\n", f"{data}/HEAD": "ref\n"}
        if where == "worktree":
            texts |= {f"{data}/commondir": "../..\n", f"{base}/main/.git/HEAD": "ref\n", f"{base}/main/x": "x\n"}
        for path, text in texts.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def _entry(path: str, content: str, base: str, count: int) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if content == "dir":
            os.makedirs(path, exist_ok=True)
        elif content == "file":
            # only where nothing stands: what is written through a link could be anything
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(fd, f"content {count}".encode())
            os.close(fd)
        else:
            os.symlink(content.removeprefix("-> ").replace("@", base, 1), path)
    except OSError:  # something of an earlier entry stands in the way
        return


def remove(base: str) -> None:
    """Take a world away."""
    shutil.rmtree(base)
