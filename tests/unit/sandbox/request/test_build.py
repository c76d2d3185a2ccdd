from __future__ import annotations

from typing import Any

import pytest

from sandbox.base.host_facts import HostFacts
from sandbox.contract import refusal_codes
from sandbox.contract.config import Ignore, ResolvedSandboxConfig
from sandbox.contract.errors import RequestRefused
from sandbox.request import credential_stores
from sandbox.request.build import build
from sandbox.request.request import Implied, WorkspaceFacts
from tests.support.memory_files import MemoryFiles
from tests.support.plans import FACTS, HOME, request
from vxconf.diagnostics.codes.all_codes import CODES

WORKSPACE = (
    "/ws/.git/HEAD",
    "/ws/.vx/cache/",
    "/ws/base.toml",
    "/ws/apps/shop/lib/cart.py",
    "/ws/apps/shop/notes.md",
    "/ws/libs/money/src/coin.py",
    "/home/mel/",
    "/tmp/x/",
    "/else/",
)


def refused(files: MemoryFiles, **given: Any) -> list[tuple[str, str, str]]:
    """The code, the field and the message of each refusal, all with a remedy."""
    with pytest.raises(RequestRefused) as caught:
        request(files, **given)
    assert all(refusal.hint for refusal in caught.value.refusals)
    return [(refusal.code, refusal.field, refusal.message) for refusal in caught.value.refusals]


# what is implied


def test_dependencies_of_the_project_and_the_root_are_readable_where_they_exist() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/apps/shop/node_modules/", "/ws/node_modules/")
    assert [read.path for read in request(files).reads] == ["/ws/apps/shop/node_modules", "/ws/node_modules"]
    assert request(MemoryFiles.of(*WORKSPACE)).reads == ()


def test_a_root_project_implies_its_dependencies_once() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/node_modules/")
    assert [read.path for read in request(files, project="/ws").reads] == ["/ws/node_modules"]


def test_dependencies_that_are_a_link_open_the_target_and_show_the_link() -> None:
    files = MemoryFiles.of(
        *WORKSPACE, "/store/node_modules/left-pad/", links={"/ws/node_modules": "/store/node_modules"}
    )
    made = request(files)
    assert made.reads == (Implied(path="/store/node_modules", reason="the dependencies in /ws/node_modules"),)
    assert made.links == (("/ws/node_modules", "/store/node_modules"),)


@pytest.mark.parametrize("target", ["..", ".", "../..", "/", "../../.git", "../../.vx", "nested", "nested/src"])
def test_dependencies_that_link_to_the_project_a_wall_or_above_open_nothing(target: str) -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/apps/shop/nested/src/x", links={"/ws/apps/shop/node_modules": target})
    made = request(files, nested=["/ws/apps/shop/nested"])
    assert made.reads == ()
    assert made.links == ()


def test_outputs_of_dependencies_are_readable() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/libs/money/dist/a.js")
    made = request(files, dependency_outputs=["/ws/libs/money/dist/a.js", "/ws/libs/money/none"])
    assert [read.path for read in made.reads] == ["/ws/libs/money/dist/a.js", "/ws/libs/money/none"]


def test_one_path_implied_twice_is_there_once() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/node_modules/")
    made = request(files, dependency_outputs=["/ws/node_modules", "/ws/node_modules"])
    assert [read.reason for read in made.reads] == ["the dependencies in /ws/node_modules"]


def test_keyed_projects_are_kept_canonical() -> None:
    files = MemoryFiles.of(*WORKSPACE, links={"/ws/money": "libs/money"})
    assert request(files, keyed=["/ws/money"]).keyed == frozenset({"/ws/libs/money"})
    assert request(files).keyed is None


# walls and credential stores


def test_walls_are_the_repository_the_caches_and_the_projects_nested_in_this_one() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/apps/shop/kit/", "/ws/apps/shop/.tc/")
    made = request(files, nested=["/ws/libs/money", "/ws/apps/shop/kit"], cache_dir="/ws/apps/shop/.tc")
    assert [wall.path for wall in made.walls] == [
        "/ws/.git",
        "/ws/.vx/cache",
        "/ws/.vx/tmp",
        "/ws/apps/shop/.tc",
        "/ws/apps/shop/kit",
    ]


def test_a_cache_outside_the_workspace_is_no_wall() -> None:
    made = request(MemoryFiles.of(*WORKSPACE, "/var/cache/"), cache_dir="/var/cache")
    assert "/var/cache" not in [wall.path for wall in made.walls]


def test_a_wall_that_is_a_link_hides_its_name_and_its_target() -> None:
    files = MemoryFiles.of("/ws/apps/shop/", "/ws/data/git/HEAD", links={"/ws/.git": "data/git"})
    assert {"/ws/.git", "/ws/data/git"} <= {wall.path for wall in request(files).walls}


def test_every_store_that_exists_is_closed_at_its_real_path() -> None:
    files = MemoryFiles.of(
        *WORKSPACE,
        *(f"{HOME}/{store}" for store in credential_stores.STORES if store not in {".npmrc", ".aws", ".kube"}),
        "/dot/npmrc",
        links={f"{HOME}/.npmrc": "/dot/npmrc", f"{HOME}/.kube": "/nowhere"},
    )
    closed = [store.path for store in request(files).stores]
    assert set(closed) == {
        *(f"{HOME}/{store}" for store in credential_stores.STORES if store not in {".npmrc", ".aws", ".kube"}),
        "/dot/npmrc",
    }


def test_the_stores_of_further_homes_are_closed_but_for_a_home_that_is_in_the_workspace() -> None:
    homes = ("/srv/ann", "/ws/apps/bot")
    files = MemoryFiles.of(*WORKSPACE, *(f"{home}/.ssh/id" for home in (HOME, *homes)))
    facts = HostFacts(platform="linux", home=HOME, temp_root="/tmp/t", other_homes=homes)
    config = ResolvedSandboxConfig(platform="linux", workspace="/ws", project="/ws/apps/shop")
    made = build(config, WorkspaceFacts(root="/ws"), files=files, facts=facts)
    reasons = {store.path: store.reason for store in made.stores}
    assert reasons == {
        f"{HOME}/.ssh": "the credential store ~/.ssh",
        "/srv/ann/.ssh": "the credential store /srv/ann/.ssh",
    }


def test_a_store_that_holds_the_workspace_is_not_closed() -> None:
    root = f"{HOME}/.config/gh/ws"
    files = MemoryFiles.of(f"{root}/apps/shop/", f"{HOME}/.ssh/id")
    made = request(files, workspace=root, project=f"{root}/apps/shop")
    assert [store.path for store in made.stores] == [f"{HOME}/.ssh"]


# write grants


def test_a_write_grant_on_a_wall_or_around_one_is_refused_by_name() -> None:
    files = MemoryFiles.of("/mono/src/y", "/mono/sub/kit/x")
    found = refused(
        files,
        workspace="/mono",
        project="/mono",
        nested=["/mono/sub/kit"],
        write=("/mono/", "/mono/sub/", "/mono/sub/kit/gen/", "/mono/.vx/", "/mono/.git/"),
    )
    assert found == [
        ("VX302", "allowWrite[0]", 'write grant "/mono/" holds the repository\'s data /mono/.git'),
        ("VX302", "allowWrite[1]", 'write grant "/mono/sub/" holds the nested project /mono/sub/kit'),
        ("VX302", "allowWrite[3]", 'write grant "/mono/.vx/" holds the cache /mono/.vx/cache'),
    ]


def test_a_write_grant_that_names_a_wall_is_the_users_own_choice() -> None:
    files = MemoryFiles.of("/mono/.git/HEAD", "/mono/sub/kit/x")
    request(
        files, workspace="/mono", project="/mono", nested=["/mono/sub/kit"], write=("/mono/.git/", "/mono/sub/kit/")
    )


@pytest.mark.parametrize("name", [".git/hooks/", ".git/config", ".vscode/", "out/.Claude/agents/x/", "a/b/c/d/.idea/"])
def test_a_write_grant_of_a_name_other_programs_execute_is_refused(name: str) -> None:
    grant = f"/ws/apps/shop/{name}"
    found = refused(MemoryFiles.of(*WORKSPACE), write=(grant,))
    assert (  # a missing name is refused as a name as well
        "VX302",
        "allowWrite[0]",
        f'write grant "{grant}" names what other programs execute',
    ) in found


def test_the_settings_of_a_repository_may_be_granted_with_git_config() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/.git/config")
    request(files, write=("/ws/.git/config",), fields={"git_config": True})
    assert refused(files, write=("/ws/.git/config",))[0][0] == "VX302"


def test_the_cache_is_closed_to_every_write_grant() -> None:
    files = MemoryFiles.of(*WORKSPACE)
    found = refused(files, cache_dir="/ws/apps/shop/.tc", write=("/ws/apps/shop/.tc/", "/ws/.vx/cache/deep/"))
    assert found == [
        (
            "VX302",
            "allowWrite[0]",
            'write grant "/ws/apps/shop/.tc/" is the cache directory of the run /ws/apps/shop/.tc',
        ),
        ("VX302", "allowWrite[1]", 'write grant "/ws/.vx/cache/deep/" is in the cache /ws/.vx/cache'),
    ]


def test_a_write_grant_around_a_store_in_the_workspace_is_refused() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/ws/dot/npmrc", links={f"{HOME}/.npmrc": "/ws/dot/npmrc"})
    assert refused(files, write=("/ws/dot/",)) == [
        ("VX302", "allowWrite[0]", 'write grant "/ws/dot/" holds the credential store ~/.npmrc /ws/dot/npmrc')
    ]


@pytest.mark.parametrize(
    ("grant", "what"),
    [
        ("/", "holds the home directory /home/mel"),
        ("/home/", "holds the home directory /home/mel"),
        ("/home/mel/", "is the home directory /home/mel"),
        ("/home/mel", "is the home directory /home/mel"),
        ("/srv/", "holds the workspace /srv/ws"),
    ],
)
def test_a_write_grant_too_wide_to_give_is_refused(grant: str, what: str) -> None:
    files = MemoryFiles.of("/srv/ws/p/", "/home/mel/")
    found = refused(files, workspace="/srv/ws", project="/srv/ws/p", write=(grant,))
    assert found == [("VX305", "allowWrite[0]", f'write grant "{grant}" {what}')]


@pytest.mark.parametrize("grant", ["/ws/apps/shop/notes.md/", "/ws/apps/shop/notes.md/x/"])
def test_a_file_where_a_directory_is_needed_is_named(grant: str) -> None:
    assert refused(MemoryFiles.of(*WORKSPACE), write=("/ws/apps/shop/out/", grant)) == [
        (
            "VX303",
            "allowWrite[1]",
            f'write grant "{grant}" needs a directory where the file /ws/apps/shop/notes.md stands',
        )
    ]


@pytest.mark.parametrize("grant", ["out.txt", "out", "lib", "notes.md", "new/deep/out", "*.py", "o*/", "gen/**/*.py"])
def test_a_name_or_a_pattern_in_the_project_is_granted_whatever_stands_there(grant: str) -> None:
    request(MemoryFiles.of(*WORKSPACE), write=(f"/ws/apps/shop/{grant}",))


@pytest.mark.parametrize(
    ("grant", "what", "hint"),
    [
        ("/ws/.git", "is the repository's data /ws/.git", 'write "/ws/.git/" to grant it whole'),
        ("/ws/.vx", "holds the cache /ws/.vx/cache", "grant a directory that keeps clear of it"),
        ("/ws/apps", "holds the nested project /ws/apps/shop", "grant a directory that keeps clear of it"),
        ("/ws/apps/shop", "is the nested project /ws/apps/shop", 'write "/ws/apps/shop/" to grant it whole'),
    ],
)
def test_a_name_that_is_or_holds_a_wall_is_refused(grant: str, what: str, hint: str) -> None:
    files = MemoryFiles.of(*WORKSPACE)
    with pytest.raises(RequestRefused) as caught:
        request(files, project="/ws", nested=("/ws/apps/shop",), write=(grant,))
    first = caught.value.refusals[0]
    assert (first.code, first.message, first.hint) == ("VX302", f'write grant "{grant}" {what}', hint)


@pytest.mark.parametrize(
    "grant", ["/ws/apps/shop/notes.md/x", "/ws/apps/shop/notes.md/*", "/ws/apps/shop/notes.md/a/*"]
)
def test_a_file_above_a_name_is_told_with_it(grant: str) -> None:
    found = refused(MemoryFiles.of(*WORKSPACE), write=(grant,))
    message = f'write grant "{grant}" needs a directory where the file /ws/apps/shop/notes.md stands'
    assert found == [("VX303", "allowWrite[0]", message)]


@pytest.mark.parametrize(
    ("grant", "code", "said"),
    [
        ("/else/[ab]", "VX309", "is a pattern outside the workspace"),
        ("/ws/apps/shop/*/../x", "VX308", "goes up after a wildcard"),
        ("/ws/.vx/cache/*", "VX302", "is in the cache /ws/.vx/cache"),
        ("/ws/.vx/tmp/a*", "VX302", "is in the directory of unfinished outputs /ws/.vx/tmp"),
        ("/ws/apps/shop/.vscode/*", "VX302", "names what other programs execute"),
        ("/ws/apps/shop/.bashrc", "VX302", "names what other programs execute"),
    ],
)
def test_what_no_pattern_or_name_may_open_is_refused(grant: str, code: str, said: str) -> None:
    ((found, field, message),) = refused(MemoryFiles.of(*WORKSPACE), write=(grant,))
    assert (found, field) == (code, "allowWrite[0]")
    assert said in message


def test_no_directory_is_advised_that_would_be_refused_as_well() -> None:
    with pytest.raises(RequestRefused) as caught:
        request(MemoryFiles.of(*WORKSPACE), project="/ws", write=("/home/mel/*", "/else/*", "/home/mel/x"))
    assert [refusal.hint for refusal in caught.value.refusals] == [
        "grant a directory, with a trailing slash",
        'grant the directory "/else/"',
        'write "/home/mel/x/" for a directory',
    ]


def test_outside_the_project_an_existing_path_needs_no_slash_and_a_missing_one_does() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/else/file")
    request(files, write=("/tmp/x", "/else/file", "/else/new/", "/ws/libs/money"))
    assert [code for code, _, _ in refused(files, write=("/home/mel/.newtoolrc",))] == ["VX309"]


@pytest.mark.parametrize("grant", ["/opt/tool/", "/opt/tool/venv/", "/opt/tool/venv/lib/"])
def test_a_write_grant_that_reaches_the_program_itself_is_refused(grant: str) -> None:
    files = MemoryFiles.of(*WORKSPACE, "/opt/tool/venv/lib/python/")
    assert refused(files, write=(grant,)) == [
        (
            "VX306",
            "allowWrite[0]",
            f'write grant "{grant}" would let the task rewrite the program that walls it in, /opt/tool/venv',
        )
    ]


def test_other_tasks_temporary_directories_cannot_be_granted() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/tmp/vx-1000/other/")
    assert [code for code, _, _ in refused(files, write=("/tmp/vx-1000/other/", "/tmp/vx-1000/"))] == ["VX302"] * 2
    request(files, write=("/tmp/",))


def test_a_link_planted_after_resolving_is_refused() -> None:
    files = MemoryFiles.of(*WORKSPACE, "/etc/", links={"/ws/apps/shop/out": "/etc", "/ws/apps/shop/l": "l"})
    assert refused(files, write=("/ws/apps/shop/out/", "/ws/apps/shop/out/x/", "/ws/apps/shop/l/")) == [
        ("VX314", "allowWrite[0]", 'grant "/ws/apps/shop/out/" passes through the link /ws/apps/shop/out'),
        ("VX314", "allowWrite[1]", 'grant "/ws/apps/shop/out/x/" passes through the link /ws/apps/shop/out'),
        ("VX314", "allowWrite[2]", 'grant "/ws/apps/shop/l/" passes through a loop of links'),
    ]


@pytest.mark.parametrize("grant", ["/ws/../etc/", "/ws//x/", "/ws/./x/"])
def test_a_path_that_is_not_canonical_is_refused(grant: str) -> None:
    assert [code for code, _, _ in refused(MemoryFiles.of(*WORKSPACE), write=(grant,))] == ["VX314"]


def test_grants_that_are_no_paths_are_refused_by_field() -> None:
    found = refused(MemoryFiles.of(*WORKSPACE), read=("/ok", "rel", "/n\0l"), write=("/n\0l/", "rel/"))
    assert [(code, field) for code, field, _ in found] == [
        ("VX308", "allowRead[1]"),
        ("VX308", "allowRead[2]"),
        ("VX308", "allowWrite[0]"),
        ("VX308", "allowWrite[1]"),
    ]


# where a task may be


@pytest.mark.parametrize(
    ("workspace", "what"),
    [("/", "is the file system's root"), ("/home", "holds the home directory"), ("/home/mel", "is the home directory")],
)
def test_a_workspace_too_wide_to_hide_is_refused(workspace: str, what: str) -> None:
    files = MemoryFiles.of("/home/mel/p/")
    ((code, field, message),) = refused(files, workspace=workspace, project="/home/mel/p")
    assert (code, field) == ("VX310", "workspace")
    assert what in message


@pytest.mark.parametrize(
    ("workspace", "project", "expected", "said"),
    [
        ("/dev/shm/ws", "/dev/shm/ws/p", "VX307", "is under /dev"),
        ("/ws", "/else", "VX314", "is outside the workspace /ws"),
        ("/ws", "/ws/gone", "VX314", "is no longer a directory"),
        ("/ws", "/ws/base.toml", "VX314", "is no longer a directory"),
    ],
)
def test_a_project_in_an_impossible_place_is_refused(workspace: str, project: str, expected: str, said: str) -> None:
    files = MemoryFiles.of(*WORKSPACE, "/dev/shm/ws/p/")
    ((code, field, message),) = refused(files, workspace=workspace, project=project)
    assert (code, field) == (expected, "project")
    assert said in message


@pytest.mark.parametrize("name", ["w[1]", "w*s", "w?s", "w\\s", "w{1}", "w\ns", "caf\udce9"])
def test_a_project_below_any_name_can_be_sandboxed(name: str) -> None:
    files = MemoryFiles.of(f"/{name}/p/")
    assert request(files, workspace=f"/{name}", project=f"/{name}/p").workspace_root == f"/{name}"


def test_a_nul_in_the_projects_path_is_refused() -> None:
    assert refused(MemoryFiles.of(*WORKSPACE), project="/ws/a\0b")[0][:2] == ("VX308", "project")


def test_a_config_of_another_machine_or_workspace_is_refused() -> None:
    config = ResolvedSandboxConfig(platform="macos", workspace="/other", project="/ws/apps/shop")
    with pytest.raises(RequestRefused) as caught:
        build(config, WorkspaceFacts(root="/ws"), files=MemoryFiles.of(*WORKSPACE), facts=FACTS)
    assert [(r.code, r.field) for r in caught.value.refusals] == [("VX509", "platform"), ("VX314", "workspace")]


def test_the_workspace_root_is_made_canonical() -> None:
    files = MemoryFiles.of(*WORKSPACE, links={"/link": "/ws"})
    config = ResolvedSandboxConfig(platform="linux", workspace="/ws", project="/ws/apps/shop")
    assert build(config, WorkspaceFacts(root="/link"), files=files, facts=FACTS).workspace_root == "/ws"


def test_every_code_the_engine_refuses_with_is_documented() -> None:
    used = {value for name, value in vars(refusal_codes).items() if name.isupper()}
    assert used <= set(CODES)


def test_fields_that_ask_for_nothing_and_those_of_the_other_platform_are_fine() -> None:
    request(
        MemoryFiles.of(*WORKSPACE),
        fields={
            "network": (),
            "unix_sockets": (),
            "local_binding": False,
            "system_info": ("hw.ncpu",),
            "mach_lookup": ("com.apple.x",),
            "weaker_network_isolation": True,
            "weaker_when_nested": True,
            "ignore": Ignore(read=("/ws/x",)),
        },
    )


def test_every_reason_is_given_at_once_in_the_order_of_the_config() -> None:
    found = refused(
        MemoryFiles.of(*WORKSPACE),
        read=("rel",),
        write=("/", "/ws/.vx"),
        fields={"network": ("intranet",)},
        facts=HostFacts(platform="linux", home=HOME, temp_root="/tmp/t"),
    )
    assert [field for _, field, _ in found] == [
        "allowRead[0]",
        "allowWrite[0]",
        "allowWrite[1]",
        "network[0]",
    ]
