"""What refuses user namespaces, told from what machines say that are not at hand."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.machine import user_namespace_refusal
from sandbox.machine.user_namespace_refusal import APPARMOR, NamespaceFacts, refusal

_SETFCAP = 1 << 31
_CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST = "/proc/sys/user/max_user_namespaces"


def said(user: int = 1000, *, capabilities: int = 0, **more: object) -> NamespaceFacts:
    return NamespaceFacts(user=user, capabilities=capabilities, **{"settings": {}, **more})  # type: ignore[arg-type]


def test_a_machine_that_refuses_nothing_has_no_cause() -> None:
    settings = {_MOST: "96364", _CLONE: "1", APPARMOR: "0"}
    assert refusal(said(settings=settings, filtered=True, profile="docker-default (enforce)")) == ("", "")


def test_ubuntus_apparmor_is_named_where_the_namespace_is_refused_and_where_it_is_of_no_use() -> None:
    for told in ({"made": errno.EPERM}, {"mapped": errno.EPERM}, {"ruled": errno.EACCES}):
        cause, fix = refusal(said(settings={APPARMOR: "1"}, **told))
        assert "AppArmor" in cause
        assert "profile with `userns,`" in fix
        assert f"sysctl {APPARMOR.removeprefix('/proc/sys/').replace('/', '.')}=0" in fix
    # it restricts those without privilege alone
    assert "AppArmor" not in refusal(said(0, settings={APPARMOR: "1"}, made=errno.EPERM, capabilities=_SETFCAP))[0]


def test_a_restriction_that_refuses_bwrap_nothing_is_no_cause() -> None:
    # the distribution's bubblewrap may have a profile of its own
    assert refusal(said(settings={APPARMOR: "1"})) == ("", "")


def test_a_containers_profile_is_named() -> None:
    cause, fix = refusal(said(0, ruled=errno.EACCES, profile="docker-default (enforce)", capabilities=_SETFCAP))
    assert "docker-default (enforce)" in cause
    assert fix == "start the container with --security-opt apparmor=unconfined"


def test_debians_setting_is_named_for_those_it_holds_for() -> None:
    assert refusal(said(settings={_CLONE: "0"})) == (
        "kernel.unprivileged_userns_clone is 0",
        "sysctl kernel.unprivileged_userns_clone=1",
    )
    assert refusal(said(0, settings={_CLONE: "0"})) == ("", "")


@pytest.mark.parametrize("user", [0, 1000])
def test_the_kernels_limit_holds_for_everybody(user: int) -> None:
    assert refusal(said(user, settings={_MOST: "0"}))[1] == "sysctl user.max_user_namespaces=10000"


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ({"made": errno.ENOSPC}, "a limit of this user namespace or of one around it"),
        ({"made": errno.EUSERS}, "as deep as the kernel lets them"),
        ({"made": errno.EINVAL}, "built without user namespaces"),
        ({"made": errno.ENOSYS, "filtered": True}, "a system call filter"),
        ({"made": errno.EPERM, "filtered": True, "profile": "docker-default (enforce)"}, "a system call filter"),
        ({"made": errno.EPERM}, "its root was changed (chroot)"),
        ({"user": 0, "mapped": errno.EPERM}, "root lacks the capability SETFCAP"),
        ({"user": 0, "mapped": errno.EPERM, "filtered": True}, "root lacks the capability SETFCAP"),
    ],
)
def test_each_refusal_has_its_own_cause(told: dict[str, object], cause: str) -> None:
    found, fix = refusal(said(**told))  # type: ignore[arg-type]
    assert cause in found
    assert fix


_NUMBERS = st.sampled_from((0, errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EINVAL, errno.ENOSYS, errno.EUSERS, 5))


@given(
    user=st.sampled_from((0, 1000)),
    settings=st.dictionaries(st.sampled_from(user_namespace_refusal.SETTINGS), st.sampled_from(("0", "1", "96364"))),
    made=_NUMBERS,
    mapped=_NUMBERS,
    ruled=_NUMBERS,
    filtered=st.booleans(),
    profile=st.sampled_from(("", "docker-default (enforce)")),
    capabilities=st.sampled_from((0, _SETFCAP)),
)
def test_whatever_is_refused_has_a_cause_and_a_remedy(**told: object) -> None:
    cause, fix = refusal(NamespaceFacts(**told))  # type: ignore[arg-type]
    assert bool(cause) == bool(fix)
    if told["made"] or told["mapped"] or told["ruled"]:
        assert cause
    for text in (cause, fix):
        assert "\n" not in text
        assert not text.endswith(".")
