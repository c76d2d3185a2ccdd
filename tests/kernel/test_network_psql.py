"""PostgreSQL's own client, which knows no proxy, and a server of it: reached by a name that is listed, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.postgres import USER, Postgres, needs_postgres, programs
from tests.support.sites import passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.sites import Knowing

pytestmark = [pytest.mark.kernel, needs_postgres()]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


def _psql(host: str, port: int, statement: str) -> str:
    return f"{programs()}/psql -XAtw 'host={host} port={port} user={USER} dbname=postgres' -c \"{statement}\""


@pytest.mark.parametrize("any_port", [False, True])
def test_psql_reaches_a_listed_name(knowing: Knowing, postgres: Postgres, *, any_port: bool) -> None:
    command = _psql("web.test", postgres.port, "select 6 * 7, length(repeat('x', 3000000))")
    listed = {"allow": ("web.test", "127.0.0.1")} if any_port else {}
    told = knowing(command, *([] if any_port else [postgres.port]), **listed)
    assert passed(told) == "42|3000000\n"


def test_what_psql_writes_is_there_for_the_next(knowing: Knowing, postgres: Postgres) -> None:
    make = "create table if not exists kept (n int); insert into kept select generate_series(1, 5000)"
    both = " && ".join(
        _psql("web.test", postgres.port, statement) for statement in (make, "select sum(n), count(*) from kept")
    )
    assert passed(knowing(both, postgres.port)).splitlines()[-1] == "12502500|5000"


@pytest.mark.parametrize(("host", "target"), [("other.test", "other.test"), ("web.test", "web.test:{}")])
def test_psql_is_refused_and_the_host_is_reported(knowing: Knowing, postgres: Postgres, host: str, target: str) -> None:
    command = _psql(host, postgres.port, "select 'reached'") + "; true"
    told = knowing(command, allow=("web.test:5433",))
    assert told.targets == [target.format(postgres.port)], told
    assert (told.exit_code, told.command_exit_code, told.trace) == (1, 0, "complete")
    assert "reached" not in told.stdout


def test_psql_at_an_address_of_loopback_reaches_no_server_of_the_hosts(knowing: Knowing, postgres: Postgres) -> None:
    told = knowing(_psql("127.0.0.1", postgres.port, "select 'reached'") + "; true")
    assert "refused" in told.stderr
    assert "reached" not in told.stdout
