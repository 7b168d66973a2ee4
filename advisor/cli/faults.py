"""Errors as messages and exit codes."""

from __future__ import annotations

import errno
import os
import sys

from advisor.cli.output import print_error
from advisor.errors import AdvisorError
from advisor.host.signals import Interrupted


def report_fault(error: BaseException, *, as_json: bool) -> int:
    """Say what has failed; the exit code. Raises the error itself where ADVISOR_TRACEBACK asks for it."""
    if isinstance(error, AdvisorError):
        print_error(error, as_json=as_json)
        return error.exit_code
    if isinstance(error, Interrupted) and error.rolled_back:
        sys.stderr.write(f"advisor: interrupted; everything has been rolled back ({error.rolled_back})\n")
        return 130
    if isinstance(error, KeyboardInterrupt | Interrupted):
        sys.stderr.write(f"advisor: {str(error) or 'interrupted'}\n")
        return 130
    if isinstance(error, EOFError):
        # The end of standard input, typed at a question.
        sys.stderr.write("\n")
        return 130
    if isinstance(error, OSError):
        # What the system refused; on standard error alone where standard output itself is what failed.
        place = error.filename or "standard output"
        failed = AdvisorError(f"{place}: {os.strerror(error.errno or errno.EIO)}")
        print_error(failed, as_json=as_json and error.filename is not None)
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return failed.exit_code
    if not isinstance(error, Exception) or os.environ.get("ADVISOR_TRACEBACK"):
        raise error
    fault = AdvisorError(
        f"this is a fault in advisor: {type(error).__name__}: {error}",
        hint="report it with what ADVISOR_TRACEBACK=1 in the environment makes it print",
    )
    print_error(fault, as_json=as_json)
    return fault.exit_code
