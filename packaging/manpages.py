"""Writes the manual pages, advisor.1 and one for each command, from the command line itself.

python packaging/manpages.py DIRECTORY

The words are those of --help, so that neither can lag behind the other.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from advisor.cli.help_text import ENVIRONMENT, EXAMPLES, EXIT_CODES, FILES, GROUPS
from advisor.cli.parser import build_program, walk_commands
from advisor.version import __version__


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(__doc__ or "")
        return 2
    directory = Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text)
    return 0


def pages() -> dict[str, str]:
    """Every page by its file name."""
    # Argument types are loose here: what typer builds is click's, which newer versions of typer carry inside.
    top = build_program()
    commands = {("advisor", *path.split()): command for path, command in sorted(walk_commands(top))}
    found = {"advisor.1": _overview(top, commands)}
    for words, command in commands.items():
        found[f"{'-'.join(words)}.1"] = _page(words, command, commands)
    return found


def _overview(top: Any, commands: dict[tuple[str, ...], Any]) -> str:
    lines = [_title(("advisor",)), ".SH NAME", rf"advisor \- {_text(_lower_first(_summary(top.help)))}"]
    lines += [".SH SYNOPSIS", r"\fBadvisor\fR \fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]..."]
    lines += [".SH DESCRIPTION", *_paragraphs(top.help or "")]
    lines.append(".SH COMMANDS")
    for group, names in GROUPS.items():
        lines.append(f".SS {group}")
        for name in names:
            for words, command in commands.items():
                if words[1] != name:
                    continue
                lines += [".TP", rf"\fB{_text(' '.join(words))}\fR", _text(_summary(command.help))]
    options = [one for one in top.params if one.param_type_name == "option" and not getattr(one, "hidden", False)]
    lines += [*_options(options), *_examples(()), *_closing_tables()]
    return _joined([*lines, ".SH SEE ALSO", _references(commands)])


def _page(words: tuple[str, ...], command: Any, commands: dict[tuple[str, ...], Any]) -> str:
    name = "-".join(words)
    lines = [_title(words), ".SH NAME", rf"{_text(name)} \- {_text(_lower_first(_summary(command.help)))}"]
    lines += [".SH SYNOPSIS", _synopsis(words, command), ".SH DESCRIPTION", *_paragraphs(command.help or "")]
    below = {other: one for other, one in commands.items() if other[:-1] == words}
    if below:
        lines.append(".SH COMMANDS")
        for other, one in below.items():
            lines += [".TP", rf"\fB{_text(' '.join(other))}\fR", _text(_summary(one.help))]
    arguments = [one for one in command.params if one.param_type_name == "argument" and getattr(one, "help", None)]
    options = [one for one in command.params if one.param_type_name == "option" and not getattr(one, "hidden", False)]
    if arguments:
        lines.append(".SH ARGUMENTS")
        for one in arguments:
            lines += [".TP", rf"\fI{_text(_metavar(one))}\fR", _text(one.help)]
    lines += [*_options(options), *_examples(words[1:]), *_closing_tables()]
    return _joined([*lines, ".SH SEE ALSO", _references({("advisor",): None, **below})])


def _title(words: tuple[str, ...]) -> str:
    # The same source gives the same page, whenever it is built (reproducible-builds.org).
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    day = "" if epoch is None else time.strftime("%Y-%m-%d", time.gmtime(int(epoch)))
    # Paths and options are copied from a page: none is broken with a hyphen.
    return f'.TH "{_text("-".join(words)).upper()}" "1" "{day}" "advisor {__version__}" "User Commands"\n.nh\n.ad l'


def _synopsis(words: tuple[str, ...], command: Any) -> str:
    parts = [rf"\fB{_text(' '.join(words))}\fR"]
    if any(one.param_type_name == "option" for one in command.params):
        parts.append(r"[\fIOPTION\fR]...")
    if hasattr(command, "commands"):
        parts.append(r"\fICOMMAND\fR")
    for one in command.params:
        if one.param_type_name == "argument":
            shown = rf"\fI{_text(_metavar(one))}\fR"
            parts.append(shown if one.required else f"[{shown}]")
    return " ".join(parts)


def _metavar(one: Any) -> str:
    shown = str(one.metavar or one.name.upper().replace("_", "-")).replace("…", "...")
    is_many = one.nargs == -1 or shown.endswith("...")
    return shown.removesuffix("...").removeprefix("[").removesuffix("]") + ("..." if is_many else "")


def _option(one: Any) -> str:
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in (*one.opts, *one.secondary_opts))
    return names if one.is_flag else rf"{names} \fI{_text(_metavar(one))}\fR"


def _default(one: Any) -> str:
    value = one.default
    if one.is_flag or one.multiple or not isinstance(value, int | float | str) or value == "":
        return ""
    return f" The default is {value}."


def _options(options: list[Any]) -> list[str]:
    lines = [".SH OPTIONS"] if options else []
    for one in options:
        lines += [".TP", _option(one), _text((one.help or "") + _default(one))]
    return lines


def _examples(path: tuple[str, ...]) -> list[str]:
    lines = [".SH EXAMPLES"]
    for command, explanation in EXAMPLES[" ".join(path)]:
        lines += [".TP", rf"\fB{_text(command)}\fR", _text(f"{explanation[0].upper()}{explanation[1:]}.")]
    return lines


def _closing_tables() -> list[str]:
    return _table("EXIT STATUS", EXIT_CODES) + _table("FILES", FILES) + _table("ENVIRONMENT", ENVIRONMENT)


def _table(title: str, rows: tuple[tuple[str, str], ...]) -> list[str]:
    lines = [f".SH {title}"]
    for key, words in rows:
        lines += [".TP", rf"\fB{_text(key)}\fR", _text(words)]
    return lines


def _references(commands: dict[tuple[str, ...], Any]) -> str:
    return ",\n".join(rf"\fB{_text('-'.join(words))}\fR(1)" for words in commands)


def _summary(text: str | None) -> str:
    first = (text or "").strip().split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.)\s", first)[0].rstrip(".")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _paragraphs(text: str) -> list[str]:
    found = [" ".join(one.split()) for one in text.strip().split("\n\n")]
    return [line for one in found if one for line in (".PP", _text(one))]


def _text(text: str) -> str:
    """Text as roff prints it: no character of it is a request."""
    shown = " ".join(str(text).split()).replace("\\", r"\e")
    # ASCII characters that can be pasted into a shell, where roff would print typographic ones (groff_man_style(7)).
    for character, name in (("-", r"\-"), ("'", r"\(aq"), ("`", r"\(ga"), ("~", r"\(ti"), ("^", r"\(ha")):
        shown = shown.replace(character, name)
    return rf"\&{shown}" if shown.startswith(".") else shown


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
