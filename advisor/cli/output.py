"""Standard output and error: one JSON document, or text for the terminal that is there."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Mapping

import msgspec

from advisor.errors import AdvisorError, NotRestoredError, UsageError

MAX_WIDTH = 160
PIPE_WIDTH = 80


def terminal_width() -> int:
    """Return the columns of the terminal to which any standard stream is attached, also behind a pipe; else 80."""
    columns = shutil.get_terminal_size((0, 0)).columns
    for descriptor in (2, 0) if not columns else ():
        with contextlib.suppress(OSError):
            columns = columns or os.get_terminal_size(descriptor).columns
    return min(MAX_WIDTH, columns or PIPE_WIDTH)


def wants_color() -> bool:
    """Colour on a terminal that is not dumb, and anywhere with FORCE_COLOR; never with NO_COLOR (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def print_json(document: object) -> None:
    """One JSON document (a record, or one already encoded), indented, on standard output and nothing else there."""
    data = document if isinstance(document, bytes) else _encode_document(document)
    sys.stdout.buffer.write(data.rstrip(b"\n") + b"\n")


def _encode_document(document: object) -> bytes:
    from advisor.report.encode import encode_document

    return encode_document(msgspec.to_builtins(document))


def print_text(text: str) -> None:
    # A host's names may hold bytes that the terminal's encoding has no characters for.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + ("" if text.endswith("\n") else "\n"))


def print_result(show: Callable[[], None], remains: str) -> None:
    """Print what a change came to, by ``show``. Where standard output cannot be written the change stands all the same:
    ``remains``, on standard error, says what is there."""
    try:
        show()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        why = os.strerror(error.errno or errno.EIO)
        say(f"advisor: standard output: {why}; {remains}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def say(message: str) -> None:
    """Progress and messages, in the chosen language: standard error, broken at blanks where a line is wider than the
    terminal. One that is gone (a hang-up) stops nothing."""
    _write_stderr("\n".join(map(_wrap_line, message.split("\n"))))


def say_wrapped(message: str) -> None:
    """As `say`, broken at blanks where it is wider than the terminal; 80 columns in a pipe."""
    _write_stderr(_wrap_line(message, piped=PIPE_WIDTH))


def _write_stderr(message: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        # Control characters of a host's or a file's own words must not reach the terminal.
        from advisor.report.format import clean

        sys.stderr.write("\n".join(map(clean, message.expandtabs().split("\n"))) + "\n")
        sys.stderr.flush()


def print_error(error: AdvisorError, *, as_json: bool) -> None:
    """The error as a document on standard output under --json, else as two lines on standard error."""
    if as_json:
        from advisor.report.encode import error_document

        print_json(error_document(error))
        return
    _write_stderr(_error_text(error))


def _error_text(error: AdvisorError) -> str:
    lines = [_wrap_line(f"advisor: {_indent_rest(error.message)}")]
    for what, by_hand in error.items if isinstance(error, NotRestoredError) else ():
        lines.append(f"  {_indent_rest(what)}: by hand: {_indent_rest(by_hand)}")
    if error.hint:
        lines.append(_wrap_line(f"  hint: {_indent_rest(error.hint)}"))
    return "\n".join(lines)


def _wrap_line(line: str, *, piped: int | None = None) -> str:
    """The line as it fits the terminal, broken at blanks; a command at its end stays on one line, to be pasted. Where
    there is no terminal, as it fits ``piped`` columns."""
    if sys.stderr.isatty():
        width = terminal_width()
    elif piped is not None:
        width = piped
    else:
        return line
    if len(line) <= width or "\n" in line:
        return line
    import re

    from advisor.report.layout import Span, wrap_pieces

    indent = len(line) - len(line.lstrip(" "))
    command = re.search(r": ((?:advisor|sh|sudo|sysctl|systemctl|mv|rm|ls|cat) \S.*)$", line)
    text, tail = (line[: command.start(1)], [Span(command[1], is_whole=True)]) if command else (line, [])
    return "\n".join(
        wrap_pieces([text.strip() + " " * bool(tail), *tail], width, first=(" " * indent,), indent=indent + 4)
    )


def _indent_rest(text: str) -> str:
    """Lines after the first stand further in, so that none of them passes for a message of its own."""
    return text.replace("\n", "\n    ")


def parse_settings(pairs: list[str] | None) -> Mapping[str, str]:
    """Return ``K=V`` of each --set. Raises UsageError for text that is not UTF-8 or has no ``=``."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        if not pair.isascii() and pair != pair.encode("utf-8", "replace").decode():
            raise UsageError(f"--set {pair}: not UTF-8", hint="a pattern such as eth* stands for a name that is not")
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {pair}: not of the form NAME=VALUE")
        if key in found:
            raise UsageError(f"--set {key}: given twice", hint="give it once; several names go into one, with commas")
        found[key] = value
    return found
