from __future__ import annotations

import pytest

from sandbox.contract.intents import Intent
from sandbox.planning.operations import Bind
from sandbox.request.find_protected_names import existing
from sandbox.request.protected_names import DIRECTORIES, FILES, POLICY, ProtectedNames
from tests.support.memory_files import MemoryFiles
from tests.support.plans import planned

P = "/ws/apps/shop"
HERE = ProtectedNames(roots=(P,))


@pytest.mark.parametrize(
    "name",
    [
        *sorted(FILES),
        *("/".join(parts) for parts in (*DIRECTORIES, *POLICY)),
        ".BashRC",
        ".bashrc/x",
        "a/b/c/d/e/.mcp.json",
        ".vscode/settings.json",
        "sub/.Idea/x/y",
        ".claude/commands/deep/x.md",
        ".claude/settings.json",
        ".claude/Settings.local.JSON",
        "vx.toml",
        "sub/VX.json",
        ".vx/workspace.toml",
        ".git/hooks",
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/config.worktree",
        ".GIT/Hooks/x",
        ".git/worktrees/side/config.worktree",
        ".git/modules/sub/config",
        ".git/modules/libs/sub/hooks/post-checkout",
        ".git/commondir",
        ".git/modules/sub/commondir",
        ".git/worktrees/side/commondir",
        # as some file systems compare names
        ".ba\u017fhrc",
        ".git/hoo\u212as",
        ".g\u200dit/hooks",
        ".vscod\u0065\u0301",
    ],
)
def test_such_a_name_is_protected_at_any_depth(name: str) -> None:
    assert HERE.protects(f"{P}/{name}")
    assert HERE.protects(f"{P}/x/{name}")


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".git/HEAD",
        ".git/index.lock",
        ".git/refs/heads/hooks",
        ".git/refs/heads/config",
        ".git/modules/hooks",
        ".git/modules/sub/refs/heads/config",
        ".git/objects/config",
        "commondir",
        "\u0431ashrc",
        ".claude",
        ".claude/settings.md",
        ".claude/notes/settings.json",
        ".vx/cache",
        "workspace.toml",
        "vx.toml.bak",
        ".bashrc.bak",
        "bashrc",
        ".github/hooks",
        "x.git/hooks",
        "vscode",
        "commands",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not HERE.protects(f"{P}/{name}")


def test_only_what_a_task_may_write_is_asked_about() -> None:
    assert not HERE.protects("/ws/libs/.bashrc")
    assert not HERE.protects(f"{P}")
    assert not ProtectedNames().protects(f"{P}/.bashrc")
    # a directory that is such a name itself, or lies in one, was granted by its own name
    inside = ProtectedNames(roots=("/home/mel/.vscode/ws/p/out", "/ws/.git"))
    assert not inside.protects("/home/mel/.vscode/ws/p/out/x")
    assert inside.protects("/ws/.git/hooks/x")
    assert inside.protects("/ws/.git/config")


def test_settings_are_protected_unless_they_are_granted() -> None:
    given = ProtectedNames(roots=(P,), git_config=True)
    assert not given.protects(f"{P}/.git/config")
    assert given.protects(f"{P}/.git/hooks")


@pytest.mark.parametrize(
    ("operation", "intent", "name", "exists", "refused"),
    [
        ("openat", Intent.CREATE, ".bashrc", False, True),
        ("openat", Intent.CREATE, ".bashrc", True, False),  # the kernel's own EEXIST
        ("openat", Intent.WRITE, ".bashrc", True, True),
        ("openat", Intent.OPEN, ".bashrc", True, False),
        ("mkdir", Intent.MKDIR, ".vscode", False, True),
        ("mkdir", Intent.MKDIR, ".vscode", True, False),
        ("rename", Intent.RENAME, ".vscode", False, True),
        ("rename", Intent.REMOVE, ".vscode", True, True),
        ("unlink", Intent.REMOVE, ".vscode", False, False),
        ("chmod", Intent.ATTRIBUTES, ".git/hooks/x", True, True),
        ("utime", Intent.TIMES, ".git/hooks/x", True, False),
        ("linkat", Intent.PROBE, ".bashrc", True, True),
        ("linkat", Intent.PROBE, ".bashrc", False, False),
        ("stat", Intent.PROBE, ".bashrc", True, False),
        ("linkat", Intent.LINK, ".bashrc", False, True),
        # what would bring such names along
        ("mkdir", Intent.MKDIR, ".git", False, False),
        ("rename", Intent.RENAME, ".git", False, True),
        ("symlink", Intent.CREATE, ".git", False, True),
        ("openat", Intent.WRITE, ".git", True, True),
        ("rename", Intent.RENAME, ".Claude", False, True),
        ("rename", Intent.REMOVE, ".git", True, True),
        ("rmdir", Intent.REMOVE, ".git", True, False),
        ("chmod", Intent.ATTRIBUTES, ".git", True, False),
        ("openat", Intent.CREATE, "x", False, False),
    ],
)
def test_what_is_refused_at_the_call(operation: str, intent: Intent, name: str, *, exists: bool, refused: bool) -> None:
    assert HERE.refuses(operation, intent, f"{P}/{name}", exists=exists) is refused
    assert not HERE.refuses(operation, intent, f"/elsewhere/{name}", exists=exists)


@pytest.mark.parametrize(
    ("name", "brings", "refused"),
    [
        (".git/modules", True, True),
        (".git/modules/sub", True, True),
        (".git/modules/libs/sub", True, True),
        (".git/worktrees", True, True),
        (".GIT/worktrees/side", True, True),
        (".git/modules/sub/HEAD", False, False),
        (".git/modules/sub/objects/ab", True, False),
        (".git/objects/ab", True, False),
        ("modules/sub", True, False),
    ],
)
def test_no_directory_is_renamed_to_where_git_keeps_repositories(name: str, *, brings: bool, refused: bool) -> None:
    assert HERE.refuses("rename", Intent.RENAME, f"{P}/{name}", exists=False, brings=brings) is refused


def found(files: MemoryFiles, *roots: str, git_config: bool = False) -> list[str]:
    return list(existing(roots, files, git_config=git_config).names)


def test_existing_ones_are_found_in_granted_directories_alone() -> None:
    files = MemoryFiles.of(
        "/ws/a/.git/config",
        "/ws/a/.git/hooks/x",
        "/ws/a/.git/HEAD",
        "/ws/g/.vscode/x",
        "/ws/g/.mcp.json",
        "/ws/.bashrc",
    )
    assert found(files, "/ws/a", "/ws/g") == [
        "/ws/a/.git/config",
        "/ws/a/.git/hooks",
        "/ws/g/.mcp.json",
        "/ws/g/.vscode",
    ]
    assert found(files, "/ws/a", git_config=True) == ["/ws/a/.git/hooks"]
    assert found(files, "/ws/a/.git") == ["/ws/a/.git/config", "/ws/a/.git/hooks"]
    assert found(files, "/ws/none") == []


def test_the_search_goes_to_any_depth_and_anywhere_but_into_what_is_out_of_reach() -> None:
    files = MemoryFiles.of("/ws/a/b/.bashrc", "/ws/a/b/c/d/e/f/.bashrc", "/ws/a/wall/.bashrc", "/else/.vscode/.bashrc")
    assert found(files, "/ws/a", "/else") == [
        "/else/.vscode",
        "/ws/a/b/.bashrc",
        "/ws/a/b/c/d/e/f/.bashrc",
        "/ws/a/wall/.bashrc",
    ]
    assert found(files, "/ws/a", "/ws/a/b/c") == found(files, "/ws/a")
    assert existing(("/ws/a",), files, git_config=False, without=["/ws/a/wall", "/ws/a/b/c"]).names == (
        "/ws/a/b/.bashrc",
    )


@pytest.mark.parametrize("head", ["HEAD", "head"])
@pytest.mark.parametrize("data", [("objects/x", "Refs/x"), ("commondir",)])
def test_what_makes_a_directory_a_repository_has_its_settings_and_hooks_protected(
    head: str, data: tuple[str, ...]
) -> None:
    names = (*data, "config", "hooks/x", "config.worktree", "description")
    files = MemoryFiles.of(*(f"/ws/a/x.git/{name}" for name in (head, *names)), *(f"/ws/b/{name}" for name in names))
    everything = existing(("/ws/a", "/ws/b"), files, git_config=False)
    protected = {"config", "config.worktree", "hooks", *(name for name in data if name == "commondir")}
    assert everything.names == tuple(sorted(f"/ws/a/x.git/{name}" for name in protected))
    assert everything.bare == {"/ws/a/x.git": f"/ws/a/x.git/{head}"}
    allowed = {"hooks", *(name for name in data if name == "commondir")}
    assert found(files, "/ws/a", git_config=True) == sorted(f"/ws/a/x.git/{name}" for name in allowed)


def test_a_linked_checkout_says_where_its_settings_are_so_that_only_who_may_write_those_makes_one() -> None:
    files = MemoryFiles.of("/ws/.git/worktrees/x/HEAD", "/ws/.git/worktrees/x/commondir", "/ws/.git/config")
    assert found(files, "/ws/.git") == ["/ws/.git/config", "/ws/.git/worktrees/x/commondir"]
    assert found(files, "/ws/.git", git_config=True) == []


def test_installed_packages_are_looked_through_and_links_count_by_name() -> None:
    files = MemoryFiles.of("/ws/p/node_modules/.profile", "/ws/p/rc", links={"/ws/p/.zshrc": "rc", "/ws/p/.git": "/x"})
    assert found(files, "/ws/p") == ["/ws/p/.git", "/ws/p/.zshrc", "/ws/p/node_modules/.profile"]


def test_a_pointer_to_a_repository_that_was_there_stays() -> None:
    here = ProtectedNames(roots=(P,), kept=frozenset({f"{P}/.git"}))
    assert here.protects(f"{P}/.git")
    assert here.refuses("unlink", Intent.REMOVE, f"{P}/.git", exists=True)


def test_what_exists_is_laid_over_and_its_directories_are_pinned() -> None:
    files = MemoryFiles.of("/ws/p/.git/hooks/x", "/ws/p/.git/HEAD", "/ws/p/.mcp.json", "/ws/p/sub/a")
    plan = planned(files, project="/ws/p", write=("/ws/p/", "/ws/p/sub/"))
    binds = [(o.path, o.directory, o.writable) for o in plan.operations if isinstance(o, Bind)]
    assert binds == [
        ("/ws/p", True, True),
        ("/ws/p/.git", True, True),
        ("/ws/p/.git/hooks", True, False),
        ("/ws/p/.mcp.json", False, False),
    ]
    reach = {path: plan.access(f"/ws/p/{path}", files).value for path in (".git", ".git/hooks/x", ".bashrc", "sub/a")}
    assert reach == {".git": "write", ".git/hooks/x": "read", ".bashrc": "read", "sub/a": "write"}


def test_what_a_link_of_such_a_name_leads_to_is_laid_over() -> None:
    files = MemoryFiles.of("/ws/p/conf/rc", links={"/ws/p/.zshrc": "conf/rc"})
    plan = planned(files, project="/ws/p", write=("/ws/p/",))
    assert [(o.path, o.writable) for o in plan.operations if isinstance(o, Bind)] == [
        ("/ws/p", True),
        ("/ws/p/conf", True),
        ("/ws/p/conf/rc", False),
    ]


def test_a_granted_directory_is_looked_into_wherever_it_lies() -> None:
    files = MemoryFiles.of("/ws/a/b/c/d/.bashrc", "/ws/a/b/c/d/.git/hooks/x", "/ws/a/b/c/d/e/.bashrc")
    assert found(files, "/ws/a/b/c/d") == ["/ws/a/b/c/d/.bashrc", "/ws/a/b/c/d/.git/hooks", "/ws/a/b/c/d/e/.bashrc"]
