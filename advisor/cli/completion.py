"""What a shell completes a word with; without typer where the line is plain."""

from __future__ import annotations

import sys

from advisor.cli.quick import split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.cli.tables.words import Word

_SHELLS = ("complete_bash", "complete_zsh", "complete_fish")
_ESCAPED = (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", r"\\:"))


def answer_shell(environment: Mapping[str, str]) -> int | None:
    """Write the answer to the shell that asks by these variables: the exit code. None where typer has to answer."""
    instruction = environment["_ADVISOR_COMPLETE"]
    line = environment.get("COMP_WORDS" if instruction == "complete_bash" else "_TYPER_COMPLETE_ARGS", "")
    # Quotes, escapes and other than ASCII characters are for a lexer of the shell's language.
    is_plain = bool(line) and line.isascii() and set(line).isdisjoint("'\"\\\v\f\x1c\x1d\x1e\x1f")
    if instruction not in _SHELLS or not is_plain:
        return None
    words = line.split()[1:]
    if instruction == "complete_bash":
        number = environment.get("COMP_CWORD", "")
        if not number.isascii() or not number.isdecimal() or int(number) < 1:
            return None
        at = int(number) - 1
        before, start = words[:at], words[at] if at < len(words) else ""
    else:
        is_begun = bool(words) and not line.endswith(" ")
        before, start = (words[:-1], words[-1]) if is_begun else (words, "")
    found = _find_words(before, start)
    if found is None:
        return None
    return _write_answer(instruction, found, environment.get("_TYPER_COMPLETE_FISH_ACTION"))


def _write_answer(instruction: str, found: Sequence[Word], fish_action: str | None) -> int | None:
    if instruction == "complete_bash":
        text = "\n".join(word for word, _zsh, _fish in found)
    elif instruction == "complete_zsh":
        listed = "\n".join(zsh for _word, zsh, _fish in found)
        text = f"_arguments '*: :(({listed}))'" if found else "_files"
    elif fish_action == "is-args":
        return 0 if found else 1
    elif fish_action == "get-args":
        text = "\n".join(fish for _word, _zsh, fish in found)
    else:
        return None
    sys.stdout.write(text + "\n")
    return 0


def _find_words(before: Sequence[str], start: str) -> Sequence[Word] | None:
    """The words that go on from here; None where the line before has something that typer has to look at."""
    from advisor.cli.tables.parameters import COMMANDS
    from advisor.cli.tables.words import GROUPS, OPTIONS

    path = ""
    rest = list(before)
    while path in GROUPS:
        if not rest:
            return _find_options(OPTIONS[path], start, ()) if start[:1] == "-" else _words_starting(GROUPS[path], start)
        path = f"{path} {rest.pop(0)}".lstrip()
    if path not in COMMANDS:
        return None
    command = COMMANDS[path]
    if start[:1] == "-" and start.partition("=")[1]:
        return None
    last = command.options.get(rest[-1]) if rest else None
    is_value = last is not None and last[1] is None
    parts = split_words(command, rest[:-1] if is_value else rest)
    if parts is None:
        return None
    given, others = parts
    if start[:1] == "-":
        once = [number for number in given if not command.parameters[number][2]]
        return _find_options(OPTIONS[path], start, [command.parameters[number][0] for number in once])
    if is_value and last is not None:
        return _call_completer(command.completers.get(last[0]), start)
    for number, takes_many in command.arguments:
        if takes_many or not others:
            return _call_completer(command.completers.get(number), start)
        others.pop(0)
    return ()


def _find_options(options: Iterable[tuple[str, Word]], start: str, given: Iterable[str]) -> list[Word]:
    left_out = set(given)
    return [word for parameter, word in options if parameter not in left_out and word[0].startswith(start)]


def _words_starting(words: Iterable[Word], start: str) -> list[Word]:
    return [word for word in words if word[0].startswith(start)]


def _call_completer(completer: str | None, start: str) -> list[Word]:
    if completer is None:
        return []
    from advisor.cli import complete

    names = [name for name in getattr(complete, completer)(start) if name.startswith(start)]
    return [(name, f'"{_escape_name(name)}"', name) for name in names]


def _escape_name(name: str) -> str:
    for character, instead in _ESCAPED:
        name = name.replace(character, instead)
    return name
