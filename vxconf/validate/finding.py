"""A `Finding`: a mistake with its field, before its place in the text is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vxconf.diagnostics.diagnostic import Diagnostic, dotted

if TYPE_CHECKING:
    from sandbox.contract.config import Platform
    from vxconf.diagnostics.diagnostic import FieldPath
    from vxconf.document.document import Document

#: The most characters of a message.
_LONGEST = 400


class Finding(NamedTuple):
    """One mistake.

    Attributes:
        code: a key of `vxconf.diagnostics.codes.all_codes.CODES`.
        path: the field at fault; a field that is missing has the place of the table around it.
        message: one lowercase clause, no full stop.
        help: advice, or an empty string.
        at_key: whether the key is at fault rather than the value.
        platform: the only platform it holds on, or `None`.
    """

    code: str
    path: FieldPath
    message: str
    help: str = ""
    at_key: bool = False
    platform: Platform | None = None

    def to_diagnostic(self, document: Document) -> Diagnostic:
        """The diagnostic: the finding with its place and its code's severity."""
        from vxconf.diagnostics.codes.all_codes import CODES
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
    # the value that a message quotes may have a megabyte
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
