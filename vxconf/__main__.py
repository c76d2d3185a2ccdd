"""The console script: the fast path, else typer; and the guard that lets no traceback reach a user."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Never

# of a closed stream nobody reads
sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for as long as the process lives
sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  the same
# what cannot be encoded is escaped rather than raised: names are bytes, and any can be printed
for _stream in (sys.stdout, sys.stderr):
    _reconfigure = getattr(_stream, "reconfigure", None)
    if _reconfigure is not None:
        _reconfigure(errors="backslashreplace")


def main(words: list[str] | None = None) -> int:
    """Carries out a command line; its exit status.

    Args:
        words: without the program's name; `sys.argv` when `None`.
    """
    words = sys.argv[1:] if words is None else words
    try:
        return _carry_out(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read us has gone
        from vxconf.cli.console import discard_output

        discard_output()
        return 141
    except Exception as fault:  # noqa: BLE001  the one guard: whatever was not foreseen is told in one line
        return _unforeseen(fault, words)


def program() -> Never:
    """Carries out the command line of this process, and ends it."""
    status = main()
    if "vxconf.cli.app" not in sys.modules:
        # a plain check leaves nothing behind: taking all its modules apart again would be a tenth of it
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # what could not be written the status has told
        os._exit(status)
    sys.exit(status)


def _carry_out(words: list[str]) -> int:
    from vxconf.cli.arguments import check_arguments
    from vxconf.cli.console import USAGE, Unwritten, UsageError, discard_output, err, flush
    from vxconf.cli.dispatch import dispatch

    try:
        arguments = check_arguments(words)
        if arguments is not None:
            status = dispatch("check", arguments)
        else:
            from vxconf.cli.app import carry_out

            status = carry_out(words)
        flush()
    except UsageError as fault:
        err(f"error: {fault}\n")
        return USAGE
    except Unwritten as fault:
        discard_output()
        err(f"error: {fault}\n")
        return _not_done(words)
    return status


def _unforeseen(fault: Exception, words: list[str]) -> int:
    if os.environ.get("VXCONF_DEBUG") == "1":
        import traceback

        traceback.print_exception(fault)
    first = str(fault).partition("\n")[0]
    if isinstance(fault, MemoryError):
        sys.stderr.write("error: no memory is left, free some or raise the limit of it (ulimit -v)\n")
        return _not_done(words)
    from vxconf.cli.crash_report import write_crash_report

    report = write_crash_report(fault)
    where = f"it is written down in {report}" if report else "set VXCONF_DEBUG=1 to see where"
    what = f"{type(fault).__name__}{': ' + first if first else ''}"
    sys.stderr.write(f"error: unexpected {what}; this is a mistake in vxconf, {where}\n")
    return _not_done(words)


def _not_done(words: list[str]) -> int:
    return 125 if "run" in words else 2


if __name__ == "__main__":
    program()
