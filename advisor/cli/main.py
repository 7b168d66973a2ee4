"""Where a call begins, and the one place where errors become messages and exit codes.

What is answered most often is answered from tables that docs/generate.py writes from the commands' declarations:
`--version`, a command's `--help`, completion, and the parameters of a plain call. Everything else, and every call that
is wrong, goes to typer.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def main() -> NoReturn:
    """Run the command line; ends the process with a code of the contract, never with a traceback for a user's error."""
    arguments = sys.argv[1:]
    # Nearly all that a start makes stays: looking through it for garbage, every 700 objects by default, takes a tenth
    # of a scan.
    gc.set_threshold(100_000, 10, 10)
    if sys.stdout is None:
        # Closed by the caller (>&-): the answer goes nowhere, and that is what was asked for.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    raise SystemExit(_answer_call(arguments, as_json="--json" in arguments))


def run_program() -> NoReturn:
    """As `main`, for the installed command, which has the process to itself.

    The process ends as soon as everything is printed: taking apart all that was loaded, as the interpreter does at its
    end, takes a tenth of a scan. What is registered for the end is run.
    """
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
            # What could not be written is the interpreter's to report.
            raise ended from None
        os._exit(ended.code)


def _answer_call(arguments: list[str], *, as_json: bool) -> int:
    try:
        code = _run_call(arguments, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, a pager) has gone: it saw what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - reported, or raised again, there
        from advisor.cli import faults

        code = faults.report_fault(error, as_json=as_json)
    return code


def _import_msgspec() -> None:
    """Import msgspec without what it loads and has no use for; whoever asks for that later gets it.

    It prefers typing_extensions, where that is installed, for what `typing` has itself since Python 3.11, which loads
    `inspect` and all below: 7 ms of CPU time, a tenth of a scan. Its `uuid`, in Python 3.11, asks `platform` for the
    name of the system, which compiles nine expressions before: 2 ms. Schemas and descriptions of types, which only the
    documentation is made from, load `textwrap` and cost 5 ms.
    """
    stand_ins: dict[str, Any] = {
        "typing_extensions": None,  # None: an import of it raises ImportError
        "msgspec.inspect": SimpleNamespace(),
        "msgspec._json_schema": SimpleNamespace(schema=None, schema_components=None),
    }
    if sys.version_info < (3, 12):
        stand_ins["platform"] = SimpleNamespace(system=lambda: os.uname().sysname)
    missing = {name: one for name, one in stand_ins.items() if name not in sys.modules}
    sys.modules.update(missing)
    try:
        import msgspec  # noqa: F401
    finally:
        for name in missing:
            del sys.modules[name]


def _run_call(arguments: list[str], *, as_json: bool) -> int:
    if "_ADVISOR_COMPLETE" in os.environ:
        from advisor.cli import completion

        code = completion.answer_shell(os.environ)
        if code is not None:
            return code
    from advisor.cli import quick

    page = quick.help_page(arguments, os.environ)
    if page is not None:
        sys.stdout.write(page)
        return 0
    _import_msgspec()
    from advisor import i18n

    try:
        i18n.settle(arguments, os.environ, is_terminal=sys.stdout.isatty())
    except i18n.LanguageError as error:
        from advisor.errors import UsageError

        raise UsageError(error.message, hint=error.hint) from error
    words = i18n.asked_language(arguments)[1]
    while words[:1] == ["--no-color"]:
        os.environ["NO_COLOR"] = "1"
        del words[0]
    if not words and "_ADVISOR_COMPLETE" not in os.environ and sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        from advisor.cli import guided

        return guided.run_guided()
    call = quick.parse_call(words)
    if call is not None:
        return call()
    from advisor.cli import parser

    return parser.run_typer(arguments, as_json=as_json)
