"""Every field of a block is resolved, and each grant knows its entries."""

from __future__ import annotations

from sandbox.contract.config import ResolvedSandboxConfig
from tests.support.resolved_blocks import resolved_block


def test_equal_results_are_one_grant_that_knows_every_entry_it_came_from() -> None:
    found = resolved_block({"allow": {"read": ["lib/", "notes.md", "lib", "./lib/**"]}})
    assert found.config.allow_read == ("/ws/apps/shop/lib/", "/ws/apps/shop/notes.md")
    assert [entry.text for entry in found.origin("allowRead[0]")] == ["lib/", "lib", "./lib/**"]
    assert [entry.path[-1] for entry in found.origin("allowRead[1]")] == [1]
    assert found.origin("allowRead[9]") == ()


def test_a_brace_bomb_is_refused_at_its_place() -> None:
    found = resolved_block({"allow": {"read": ["{1..9}{1..9}{1..9}{1..9}", "lib/"]}})
    assert found.config.allow_read == ("/ws/apps/shop/lib/",)
    assert found.refusals[0].path[-2:] == ("read", 0)


def test_everything_else_is_carried_over_without_repeats() -> None:
    config = resolved_block(
        {
            "allow": {
                "network": ["b.test", "a.test", "b.test"],
                "unixSockets": ["alias/x.sock", "/run/y.sock"],
                "localBinding": [81, 80, 81],
                "systemInfo": ["a"],
                "machLookup": ["b"],
                "pty": True,
                "gitConfig": True,
            },
            "deny": {"network": ["*"]},
            "hermetic": True,
            "weakerWhenNested": True,
            "weakerNetworkIsolation": True,
        }
    ).config
    assert config == ResolvedSandboxConfig(
        platform="linux",
        workspace="/ws",
        project="/ws/apps/shop",
        network=("b.test", "a.test"),
        deny_network=("*",),
        unix_sockets=("/ws/apps/shop/target/x.sock", "/run/y.sock"),
        local_binding=(81, 80),
        system_info=("a",),
        mach_lookup=("b",),
        pty=True,
        git_config=True,
        hermetic=True,
        weaker_when_nested=True,
        weaker_network_isolation=True,
    )


def test_true_stays_true_for_network_and_sockets() -> None:
    config = resolved_block({"allow": {"network": True, "unixSockets": True, "localBinding": True}}).config
    assert (config.network, config.unix_sockets, config.local_binding) == (True, True, True)
