"""Programs of Go, with the C library's resolver and with Go's own, which asks the name server the file names."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.sites import NO_PROXIES, needs, passed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.sites import Knowing, Site

pytestmark = [pytest.mark.kernel, needs("go", "cc")]

_FETCH = """
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	place := os.Args[1]
	client := http.Client{Timeout: 60 * time.Second}
	if answer, err := client.Get("http://" + place + "/page"); err != nil {
		fmt.Println("http failed")
	} else {
		body, _ := io.ReadAll(answer.Body)
		fmt.Print("http ", answer.StatusCode, " ", string(body))
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		stream, err := net.DialTimeout(network, place, 60*time.Second)
		if err != nil {
			fmt.Println(network, "failed")
			continue
		}
		fmt.Fprint(stream, "GET /page HTTP/1.0\\r\\n\\r\\n")
		body, _ := io.ReadAll(stream)
		fmt.Println(network, string(body[len(body)-7:]))
	}
}
"""


@pytest.fixture(scope="session", params=["C's resolver", "its own resolver"])
def fetch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of Go's standard library alone, which obeys proxy variables in HTTP, and nowhere else."""
    place = tmp_path_factory.mktemp("go")
    (place / "fetch.go").write_text(_FETCH)
    made = subprocess.run(
        ["go", "build", "-o", "fetch", "fetch.go"],
        check=False,
        capture_output=True,
        cwd=place,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "GOCACHE": str(place / "cache"),
            "GOFLAGS": "-mod=mod",
            "GOTOOLCHAIN": "local",
            "GOPROXY": "off",
            "CGO_ENABLED": "1" if request.param == "C's resolver" else "0",
        },
    )
    if made.returncode:
        pytest.skip(f"go compiles nothing here: {made.stderr.decode(errors='replace')[-200:]}")
    return place / "fetch"


@pytest.fixture
def ours(fetch: Path, tmp_path: Path) -> Path:
    own = tmp_path / "ws" / "project" / "fetch"
    own.parent.mkdir(parents=True)
    shutil.copy(fetch, own)
    return own


@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
@pytest.mark.parametrize("any_port", [False, True])
def test_a_program_of_go_reaches_a_listed_name(
    knowing: Knowing, site: Site, ours: Path, prefix: str, *, any_port: bool
) -> None:
    where = {"allow": ("web.test", "127.0.0.1")} if any_port else {}
    ports = [] if any_port else [site.port]
    told = knowing(f"{prefix}./fetch web.test:{site.port}", *ports, allow_read=[str(ours)], **where)
    assert passed(told).split("\n") == ["http 200 a page", "tcp4 a page", "", "tcp6 a page", "", ""], told


@pytest.mark.parametrize("prefix", ["", NO_PROXIES])
def test_a_program_of_go_is_refused_and_the_host_is_reported(
    knowing: Knowing, site: Site, ours: Path, prefix: str
) -> None:
    told = knowing(f"{prefix}./fetch other.test:{site.port}", site.port, allow_read=[str(ours)])
    assert {target.partition(":")[0] for target in told.targets} == {"other.test"}, told
    assert (told.exit_code, told.command_exit_code, told.trace) == (1, 0, "complete"), told
    assert "a page" not in told.stdout
    assert told.stdout.count("failed") == (3 if prefix else 2), told


def test_a_program_of_go_reaches_no_literal_address(knowing: Knowing, site: Site, ours: Path) -> None:
    told = knowing(f"{NO_PROXIES}./fetch 192.0.2.1:{site.port}", site.port, allow_read=[str(ours)])
    assert set(told.targets) == {f"192.0.2.1:{site.port}"}, told
    assert told.stdout.count("failed") == 3
