"""The codes VX5xx: resolved configs of another platform."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, Stage

OTHER_PLATFORM = (
    Code(
        code="VX509",
        slug="platform-not-yet",
        title="a config was resolved for another platform",
        means="A resolved config holds for one platform. Resolve it on the machine that runs it.",
        stage=Stage.HOST,
    ),
)
