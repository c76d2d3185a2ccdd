from __future__ import annotations

import pytest

from vxconf.lint.system_directories import opened_directory


@pytest.mark.parametrize("grant", ["/", "/etc", "/etc/", "/var/", "/var/**", "/run/*", "/dev/", "/sys", "/home/**/*"])
@pytest.mark.parametrize("writes", [False, True])
def test_a_directory_of_the_system_is_opened_whole(grant: str, writes: bool) -> None:
    found = opened_directory(grant, "/home/mel/ws", writes=writes)
    assert found is not None
    assert (found.whole, found.path) == (True, grant.rstrip("*/") or "/")


@pytest.mark.parametrize("grant", ["/etc/cron.d/", "/etc/x", "/run/app/*.sock", "/dev/sda", "/usr/lib/x/", "/boot/a"])
def test_a_part_of_one_is_told_where_it_is_written(grant: str) -> None:
    found = opened_directory(grant, "/ws", writes=True)
    assert found is not None
    assert (found.whole, f"/{grant.split('/')[1]}") == (False, found.path)
    assert opened_directory(grant, "/ws", writes=False) is None


@pytest.mark.parametrize(
    "grant",
    ["/etcetera/", "/var/cache/acme/", "/srv/ws/out/", "/dev/shm/x", "/usr/local/x", "/opt/x/", "/home/mel/x"],
)
def test_other_places_are_not_told(grant: str) -> None:
    assert opened_directory(grant, "/srv/ws", writes=True) is None


@pytest.mark.parametrize("grant", ["/etc/ws/", "/etc/ws/out", "/etc/ws/**"])
def test_nothing_in_the_workspace_is_the_systems(grant: str) -> None:
    assert opened_directory(grant, "/etc/ws", writes=True) is None
