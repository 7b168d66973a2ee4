"""What a shell completes a word with; without typer where the line is plain."""

from __future__ import annotations

import sys

from advisor.cli.quick import split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.cli.tables.words import Word

_SHELLS = ("complete_bash", "complete_zsh", "complete_fish")
# bash breaks words at these characters, and completes only what is behind the last of them.
_BREAKS = ":="
# Words stand as they come (globs are not expanded, the latest transaction is first), and no space is put behind what
# goes on.
SCRIPTS = {
    "bash": """\
_advisor_completion() {
    local IFS=$'\\n'
    mapfile -t COMPREPLY < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
                                 _ADVISOR_COMPLETE=complete_bash "$1")
    [[ -n ${COMPREPLY[*]} ]] || COMPREPLY=()
    COMPREPLY=("${COMPREPLY[@]//\\*/\\\\*}")
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *[=/:] ]] || compopt -o nospace 2>/dev/null
    return 0
}

complete -o default -o nosort -F _advisor_completion advisor
""",
    # One start for each TAB; files where there is nothing else.
    "fish": """\
function _advisor_completion
    set -l words (env _ADVISOR_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \\
        _TYPER_COMPLETE_ARGS=(commandline -cp) advisor)
    if set -q words[1]
        printf '%s\\n' $words
    else
        __fish_complete_path (commandline -ct)
    end
end

complete --command advisor --no-files --keep-order --arguments '(_advisor_completion)'
""",
    # It asks as fish does: a word a line, what it is behind a tab. In zsh's own directories the file is the function.
    "zsh": """\
#compdef advisor

_advisor_completion() {
    local line word about
    local -a whole begun
    for line in "${(@f)$(env _ADVISOR_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \\
                             _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" advisor)}"; do
        word=${line%%$'\t'*}
        about=${line#$word}
        [[ -n $word ]] || continue
        if [[ $word == *[=:/] ]]; then
            begun+=("${word//:/\\:}${about:+:${about#$'\t'}}")
        else
            whole+=("${word//:/\\:}${about:+:${about#$'\t'}}")
        fi
    done
    if (( $#begun + $#whole == 0 )); then
        _files
        return
    fi
    (( $#begun == 0 )) || _describe -V advisor begun -S ''
    (( $#whole == 0 )) || _describe -V advisor whole
}

if [[ $funcstack[1] == _advisor ]]; then
    _advisor_completion "$@"
else
    compdef _advisor_completion advisor
fi
""",
}
"""What a shell sources instead of typer's own: those break words at ``:`` (bash), start twice a word (fish), and put a
space behind what goes on (zsh)."""
_ESCAPED = (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", r"\\:"))


def answer_shell(environment: Mapping[str, str]) -> int | None:
    """Write the answer to the shell that asks by these variables: the exit code. None where typer has to answer."""
    instruction = environment["_ADVISOR_COMPLETE"]
    own = SCRIPTS.get(instruction.removeprefix("source_"))
    if own is not None:
        sys.stdout.write(own)
        return 0
    line = environment.get("COMP_WORDS" if instruction == "complete_bash" else "_TYPER_COMPLETE_ARGS", "")
    # Quotes, escapes and other than ASCII characters are for a lexer of the shell's language.
    is_plain = bool(line) and line.isascii() and set(line).isdisjoint("'\"\\\v\f\x1c\x1d\x1e\x1f")
    if instruction not in _SHELLS or not is_plain:
        return None
    words = line.split()[1:]
    answered = 0
    if instruction == "complete_bash":
        number = environment.get("COMP_CWORD", "")
        if not number.isascii() or not number.isdecimal() or int(number) < 1:
            return None
        at = int(number) - 1
        *before, start = [*words[:at], words[at] if at < len(words) else ""]
        before, start, answered = _join_pieces([*before, start])
    else:
        is_begun = bool(words) and not line.endswith(" ")
        before, start = (words[:-1], words[-1]) if is_begun else (words, "")
    found = _find_words(before, start)
    if found is None:
        return None
    if answered:
        found = [(word[answered:], zsh, fish) for word, zsh, fish in found]
    fish_action = environment.get("_TYPER_COMPLETE_FISH_ACTION")
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


def _join_pieces(pieces: Sequence[str]) -> tuple[list[str], str, int]:
    """The words that bash broke at ``:`` and ``=``: those before, the last one, and how much of it bash holds for
    words of their own. ``--option=value`` becomes two words."""
    words: list[str] = []
    is_open, answered = False, 0
    for piece in pieces:
        if piece and not piece.strip(_BREAKS) and words:
            if piece == "=" and words[-1][:2] == "--" and "=" not in words[-1]:
                words.append("")
            else:
                words[-1] += piece
            is_open, answered = True, len(words[-1])
        elif is_open and piece:
            words[-1] += piece
            is_open = False
        else:
            words.append(piece)
            is_open, answered = False, 0
    return words[:-1], words[-1], answered


def _find_words(before: Sequence[str], start: str) -> Sequence[Word] | None:
    """The words that go on from here; None where the line before has something that typer has to look at."""
    from advisor.cli.tables.parameters import COMMANDS
    from advisor.cli.tables.words import GROUPS, OPTIONS

    path = ""
    rest = list(before)
    given_above = []
    while rest[:1] in (["--lang"], ["--no-color"]):
        name = rest.pop(0)
        given_above.append("language" if name == "--lang" else "no_color")
        if name == "--lang":
            if not rest:
                return None if start[:1] == "-" else _call_completer("language_names", start, {})
            del rest[0]
    while path in GROUPS:
        if not rest:
            if start[:1] == "-":
                return _find_options(OPTIONS[path], start, () if path else given_above)
            return [word for word in GROUPS[path] if word[0].startswith(start)]
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
    line = {command.parameters[number][0]: texts for number, texts in given.items()}
    if is_value and last is not None:
        return _call_completer(command.completers.get(last[0]), start, line, others)
    for number, takes_many in command.arguments:
        if takes_many or not others:
            return _call_completer(command.completers.get(number), start, line)
        others.pop(0)
    return ()


def _find_options(options: Iterable[tuple[str, Word]], start: str, given: Iterable[str]) -> list[Word]:
    left_out = set(given)
    return [word for parameter, word in options if parameter not in left_out and word[0].startswith(start)]


class _Line:
    """What a completer asks of typer's context: values by their parameters, and words that are not assigned yet."""

    def __init__(self, params: Mapping[str, Sequence[str | bool]], args: Sequence[str]) -> None:
        self.params = params
        self.args = args


def _call_completer(
    completer: str | None, start: str, line: Mapping[str, Sequence[str | bool]], others: Sequence[str] = ()
) -> list[Word]:
    if completer is None:
        return []
    from advisor.cli.tables.values import VALUES

    found: Iterable[str | tuple[str, str]] | None = VALUES.get(completer)
    if found is None:
        from advisor.cli import complete

        call = getattr(complete, completer)
        more = (_Line(line, others),) if "ctx" in call.__code__.co_varnames[: call.__code__.co_argcount] else ()
        found = call(start, *more)
    named = ((one, "") if isinstance(one, str) else one for one in found)
    return [_describe_word(name, about) for name, about in named if name.startswith(start)]


def _describe_word(name: str, about: str) -> Word:
    if not about:
        return name, f'"{_escape_name(name)}"', name
    return name, f'"{_escape_name(name)}":"{_escape_name(about)}"', f"{name}\t{about}"


def _escape_name(name: str) -> str:
    for character, instead in _ESCAPED:
        name = name.replace(character, instead)
    return name
