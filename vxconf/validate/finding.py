"""A mistake before anybody looked for its place: what the schema and the rules hand to `validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vxconf.diagnostics.diagnostic import Diagnostic, dotted

if TYPE_CHECKING:
    from sandbox.contract.config import Platform
    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Document

#: Characters of a message.
_LONGEST = 400


class Finding(NamedTuple):
    """One mistake.

    Attributes:
        path: the field; its parent's place is taken when it is not there.
        at_key: whether the key is at fault rather than the value.
    """

    code: str
    path: FieldPath
    message: str
    help: str = ""
    at_key: bool = False
    platform: Platform | None = None

    def to_diagnostic(self, document: Document) -> Diagnostic:
        """The same with its place and severity."""
        from vxconf.diagnostics.codes.table import CODES
        from vxconf.document.spans import locate

        return Diagnostic(
            code=self.code,
            severity=CODES[self.code].severity,
            file=document.file,
            place=locate(document, self.path, key=self.at_key),
            path=dotted(self.path),
            message=_clip(self.message),
            help=_clip(self.help),
            platform=self.platform,
        )


def _clip(text: str) -> str:
    # a value of a megabyte is quoted in its message
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
