from __future__ import annotations

from sandbox.contract import refusal_codes
from sandbox.contract.errors import NotStarted, Refusal, RequestRefused
from sandbox.contract.results import RunRefusal, refusals_of


def test_an_error_of_the_engine_is_one_refusal_whose_hint_stays_apart() -> None:
    (refusal,) = refusals_of(NotStarted("no bwrap", hint="install it"))
    assert refusal == RunRefusal(message="no bwrap", hint="install it")
    assert str(refusal) == "no bwrap\nhint: install it"
    assert str(RunRefusal(message="no bwrap")) == "no bwrap"


def test_a_refused_request_is_a_refusal_for_each_grant_with_its_field_and_code() -> None:
    first = Refusal("it moved", field="allowRead[0]", code=refusal_codes.MOVED, hint="resolve the config again")
    second = Refusal("it is a wall", field="allowWrite[1]", code=refusal_codes.WALLED)
    assert refusals_of(RequestRefused((first, second))) == (
        RunRefusal(message="it moved", hint="resolve the config again", code="VX314", field="allowRead[0]"),
        RunRefusal(message="it is a wall", code="VX302", field="allowWrite[1]"),
    )
