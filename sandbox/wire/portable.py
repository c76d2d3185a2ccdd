"""Configs, requests and results as JSON another machine understands: a version, sorted keys, and anchors for places.

A text is resolved again against the file system it is read on: a link on the way to a grant counts as it is there, and
walls and credential stores are looked for anew. See `sandbox.wire.anchors` for how places are written. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.wire.anchors import Anchors
from sandbox.wire.envelope import dump, load
from sandbox.wire.portable_config import config_in, config_out
from sandbox.wire.portable_request import request_in, request_out
from sandbox.wire.portable_result import result_in, result_out

if TYPE_CHECKING:
    from sandbox.base.host_facts import Files, HostFacts
    from sandbox.contract.config import ResolvedSandboxConfig
    from sandbox.contract.results import RunResult
    from sandbox.request.request import Request

__all__ = [
    "Anchors",
    "config_from_json",
    "config_to_json",
    "places_of",
    "request_from_json",
    "request_to_json",
    "result_from_json",
    "result_to_json",
]


def config_to_json(config: ResolvedSandboxConfig, *, home: str) -> str:
    """One line of JSON; `home` is the canonical home directory the config was resolved with."""
    return dump("config", config_out(config, home))


def config_from_json(
    text: str, *, workspace: str, home: str, files: Files, other_homes: tuple[str, ...] = ()
) -> ResolvedSandboxConfig:
    """The config, with every path as it is on this machine.

    Args:
        text: from `config_to_json`, of any machine.
        workspace: canonical, where the same workspace is here.
        home: canonical.
        files: the host's file system.
        other_homes: further homes with credential stores, canonical.

    Raises:
        RequestRefused: it is not such a text, or a write grant of the project leads out of it here.
    """
    return config_in(load(text, "config"), workspace=workspace, home=home, files=files, other_homes=other_homes)


def request_to_json(request: Request) -> str:
    """One line of JSON: the config and what is known of the workspace, not what `sandbox.request.build` found."""
    return dump("request", request_out(request))


def request_from_json(text: str, *, workspace: str, facts: HostFacts, files: Files) -> Request:
    """The request, built anew on this machine.

    Args:
        text: from `request_to_json`, of any machine.
        workspace: canonical, where the same workspace is here.
        facts: what is known of this machine.
        files: its file system.

    Raises:
        RequestRefused: it is not such a text, or it is refused here, with every reason.
    """
    return request_in(load(text, "request"), workspace=workspace, facts=facts, files=files)


def result_to_json(result: RunResult, places: Anchors) -> str:
    """One line of JSON; captured output is base64."""
    return dump("result", result_out(result, places))


def result_from_json(text: str, places: Anchors) -> RunResult:
    """The result, with this machine's places in it.

    Raises:
        RequestRefused: it is not such a text.
    """
    return result_in(load(text, "result"), places)


def places_of(config: ResolvedSandboxConfig, *, home: str) -> Anchors:
    """The places the anchors of a config's results stand for."""
    return Anchors(config.workspace, config.project, home)
