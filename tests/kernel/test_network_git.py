"""Git as it is used, over every way it has: plain HTTP, HTTPS with a checked certificate, and ssh with a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.sites import NO_PROXIES, Shell, Site, certify, needs, passed, repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.sites import Knowing

pytestmark = [pytest.mark.kernel, needs("git")]

_CLONE = 'git clone -q {} "$TMPDIR/r" && git -C "$TMPDIR/r" log --format=%s'


def hosts(targets: list[str]) -> list[str]:
    """Who resolves a name itself has told no port."""
    return [target.partition(":")[0] for target in targets]


@pytest.fixture
def granted(tmp_path: Path) -> Path:
    """A directory of the project the task reads."""
    place = tmp_path / "ws" / "project" / "granted"
    place.mkdir(parents=True)
    return place


@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_a_clone_over_http(prefix: str, knowing: Knowing, site: Site) -> None:
    repository(site.directory / "r.git", "the first")
    url = f"http://web.test:{site.port}/r.git"
    assert passed(knowing(prefix + _CLONE.format(url), site.port)) == "the first\n"
    told = knowing(prefix + _CLONE.format(url.replace("web", "other")) + "; true", site.port)
    assert (hosts(told.targets), told.stdout) == (["other.test"], "")


@pytest.mark.slow
@needs("openssl")
@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_a_clone_over_https_by_an_authority_of_ones_own(
    prefix: str, knowing: Knowing, site: Site, granted: Path
) -> None:
    repository(site.directory / "r.git", "the first")
    authority, both = certify("web.test", site.directory.parent)
    (granted / "ca.pem").write_bytes(authority.read_bytes())
    secure = Site(site.directory, both)
    try:
        clone = prefix + _CLONE.format(f"https://web.test:{secure.port}/r.git")
        reads = {"allow_read": [f"{granted}/"]}
        trusting = {"GIT_SSL_CAINFO": f"{granted}/ca.pem"}
        assert passed(knowing(clone, secure.port, env=trusting, **reads)) == "the first\n"
        asked = clone.replace("git clone", f"git clone -c http.sslCAInfo={granted}/ca.pem")
        assert passed(knowing(asked, secure.port, **reads)) == "the first\n"
        # reached, and not believed: nobody stands between the two
        untrusting = knowing(clone, secure.port)
        assert (untrusting.targets, untrusting.stdout) == ([], ""), untrusting
        assert "certificate" in untrusting.stderr
        told = knowing(clone.replace("web", "other") + "; true", secure.port, env=trusting, **reads)
        assert (hosts(told.targets), told.stdout) == (["other.test"], "")
    finally:
        secure.close()


@pytest.fixture
def shell(tmp_path: Path, granted: Path) -> Iterator[Shell]:
    served = Shell(tmp_path, granted / "id", "web.test")
    (granted / "known").write_text(served.known + served.known.replace("web", "other"))
    yield served
    served.close()


@pytest.mark.slow
@needs("ssh", "ssh-keygen", "dropbear", "dropbearkey")
def test_clone_and_push_over_ssh_by_a_key_that_is_granted(
    knowing: Knowing, shell: Shell, granted: Path, tmp_path: Path
) -> None:
    bare = repository(tmp_path / "r.git", "the first")
    more = (
        f'export GIT_SSH_COMMAND="$GIT_SSH_COMMAND -F none -o BatchMode=yes -o GlobalKnownHostsFile=none'
        f' -o UserKnownHostsFile={granted}/known -o IdentitiesOnly=yes -i {granted}/id"; '
    )
    clone = more + _CLONE.format(f"ssh://tester@web.test:{shell.port}{bare}")
    commit = "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m 'the second'"
    reads = {"allow_read": [f"{granted}/"]}
    out = passed(knowing(f'{clone} && cd "$TMPDIR/r" && {commit} && git push -q', shell.port, **reads))
    assert out == "the first\n"
    assert passed(knowing(clone, shell.port, **reads)) == "the second\nthe first\n"
    # without the grant there is no key to show
    closed = knowing(clone.replace("UserKnownHostsFile", "StrictHostKeyChecking=no -o UserKnownHostsFile"), shell.port)
    assert closed.stdout == ""
    assert any(target.endswith("/id") or target == "granted/id" for target in closed.targets), closed
    told = knowing(clone.replace("web.test", "other.test") + "; true", shell.port, **reads)
    assert (hosts(told.targets), told.stdout) == (["other.test"], "")
