"""The console script: a plain command line is parsed without typer, and no traceback ever reaches a user."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Never

# a stream that the caller closed is None here, and printing to it would raise
sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  open until the process ends
sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  the same
# file names are bytes and can be printed, so characters that cannot be encoded are escaped
for _stream in (sys.stdout, sys.stderr):
    _reconfigure = getattr(_stream, "reconfigure", None)
    if _reconfigure is not None:
        _reconfigure(errors="backslashreplace")


def main(words: list[str] | None = None) -> int:
    """Carries out a command line and returns its exit status; raises nothing.

    Args:
        words: the words behind the program's name; by default those of `sys.argv`.
    """
    words = sys.argv[1:] if words is None else words
    try:
        return _carry_out(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of a pipe is gone: 128 + SIGPIPE
        from vxconf.cli.console import discard_output

        discard_output()
        return 141
    except Exception as fault:  # noqa: BLE001  this guard prints every unforeseen fault in one line
        return _unforeseen(fault, words)


def program() -> Never:
    """Carries out the command line of this process and ends the process."""
    status = main()
    if "vxconf.cli.commands.check" in sys.modules and "vxconf.cli.app" not in sys.modules:
        # a plain check leaves no thread, child or file behind, and freeing its modules takes a tenth of its time
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # the exit status tells of a failed write
        os._exit(status)
    sys.exit(status)


def _carry_out(words: list[str]) -> int:
    # the guard in `main` covers these imports too: an interrupt may come while they load
    from vxconf.cli.arguments import plain_line
    from vxconf.cli.console import USAGE, Unwritten, UsageError, discard_output, err, flush
    from vxconf.cli.dispatch import dispatch

    try:
        line = plain_line(words)
        if line is not None:
            status = dispatch(*line)
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
