"""The start and the end of a call, and the one place where errors become messages and exit codes.

Start-up is short by late imports, a high threshold of the garbage collector and an early end of the process; typer
parses every call but `--version`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; end the process with a code of the contract, never with a traceback for a user's error."""
    arguments = sys.argv[1:]
    # Nearly all objects of a start stay: the collections that the default threshold of 700 triggers take a tenth of a
    # scan.
    gc.set_threshold(100_000, 10, 10)
    if sys.stdout is None:
        # Closed by the caller (>&-), who wants no answer.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    raise SystemExit(_answer_call(arguments, as_json="--json" in arguments))


def run_program() -> NoReturn:
    """Run `main` for the installed command, which has the process to itself.

    The process ends as soon as everything is printed and what is registered for the end has run: the interpreter's own
    end, which frees each module, takes a tenth of a scan.
    """
    # Where a stream was closed before the start, the next file that is opened would be taken for it.
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        main()
    except SystemExit as ended:
        threads = sys.modules.get("threading")
        if not isinstance(ended.code, int) or (threads is not None and threads.active_count() > 1):
            raise
        atexit._run_exitfuncs()
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            # The interpreter reports what could not be written.
            raise ended from None
        os._exit(ended.code)


def _answer_call(arguments: list[str], *, as_json: bool) -> int:
    try:
        code = _run_call(arguments, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, a pager) has ended before the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - reported, or raised again, there
        from advisor.cli import faults

        code = faults.report_fault(error, as_json=as_json)
    return code


def _run_call(arguments: list[str], *, as_json: bool) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if arguments in (["--version"], ["version"]):
        from advisor.version import describe_version

        sys.stdout.write(f"advisor {describe_version()}\n")
        return 0
    is_guided = not set(arguments) - {"--no-color"} and "_ADVISOR_COMPLETE" not in os.environ
    if is_guided and sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        from advisor.cli import guided

        if arguments:
            os.environ["NO_COLOR"] = "1"
        return guided.run_guided()
    from advisor.cli import parser

    return parser.run_typer(arguments, as_json=as_json)
