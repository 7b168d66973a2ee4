"""What a shell may complete a word with. A completion that fails is none: it never disturbs the line being typed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from advisor.errors import AdvisorError


def _names_matching(names: Iterable[str], start: str) -> list[str]:
    return sorted(name for name in names if name.startswith(start))


def _paths_matching(start: str, ending: str) -> list[str]:
    """Directories, and files of that ending, that begin so."""
    from glob import escape, glob
    from os.path import isdir

    found = (f"{one}/" if isdir(one) else one for one in glob(f"{escape(start)}*"))
    return sorted(one for one in found if one.endswith(("/", ending)))


def profile_names(start: str) -> list[str]:
    """Profiles of the library that begin so."""
    from advisor.operations.library import list_profile_names

    with contextlib.suppress(AdvisorError, OSError):
        return _names_matching(list_profile_names(), start)
    return []


def requestable_words(start: str) -> list[str]:
    """Profiles, profile files and values that begin so."""
    if "/" in start or start.startswith((".", "~")):
        return _paths_matching(start, ".toml")
    if ":" in start:
        from advisor.operations.library import list_devices, list_value_ids

        with contextlib.suppress(AdvisorError, OSError):
            kind, device, *more = start.split(":")
            if not more and (devices := list_devices(kind)):
                return _names_matching((f"{kind}:{one}:" for one in devices), start)
            ids = list_value_ids(device if more else "")
            return _names_matching({f"{one}=" for one in ids if more or "::" not in one}, start)
        return []
    return profile_names(start)


def transaction_ids(start: str) -> list[tuple[str, str]]:
    """Transactions of this host that begin so, the latest first, with their profiles; none where they cannot be
    read."""
    from advisor.operations.library import describe_transactions

    with contextlib.suppress(AdvisorError, OSError):
        return [(name, about) for name, about in describe_transactions().items() if name.startswith(start)]
    return []


def transactions_or_profiles(start: str) -> list[tuple[str, str] | str]:
    """What ``rollback-script`` takes."""
    return [*transaction_ids(start), *profile_names(start)]


def profile_parameters(start: str, ctx: Any) -> list[tuple[str, str]]:
    """Parameters, with what they are, of the profiles that stand on the line; without those that are set there."""
    from advisor.operations.library import describe_parameters

    # While an option waits for its value, typer leaves the arguments unassigned in ``args``.
    profiles = [*_given_texts(ctx, "names"), *_given_texts(ctx, "name"), *ctx.args]
    given = {text.partition("=")[0] for text in _given_texts(ctx, "pairs")}
    found: dict[str, str] = {}
    for profile in profiles:
        with contextlib.suppress(AdvisorError, OSError):
            found |= describe_parameters(profile)
    return [
        (f"{name}=", " ".join(about.split()))
        for name, about in sorted(found.items())
        if name not in given and f"{name}=".startswith(start)
    ]


def _given_texts(ctx: Any, parameter: str) -> list[str]:
    """The values that the line gives a parameter."""
    value = ctx.params.get(parameter) or ()
    return [value] if isinstance(value, str) else list(value)


def finding_ids(start: str) -> list[str]:
    """Rules, whose ids findings have, for ``fix`` and ``mute``."""
    from advisor.operations.library import list_rule_ids

    return _names_matching(list_rule_ids(), start)


def muted_ids(start: str) -> list[tuple[str, str]]:
    """Rules that are muted and begin so, with why, for ``unmute``."""
    from advisor.operations.library import describe_muted

    with contextlib.suppress(AdvisorError, OSError):
        return [(name, " ".join(why.split())) for name, why in describe_muted().items() if name.startswith(start)]
    return []


def accepted_days(start: str) -> list[tuple[str, str]]:
    """Days that begin so, with what they are, for ``mute --until``."""
    from advisor.operations.muting import current_day, suggest_days

    return [(day, about) for day, about in suggest_days(current_day()).items() if day.startswith(start)]


def explainable_ids(start: str) -> list[str]:
    """Rules, profiles and the list of contradictions, for ``explain``."""
    from advisor.operations.library import list_rule_ids

    return _names_matching(["contradictions", *list_rule_ids()], start) + profile_names(start)


def measured_workloads(start: str) -> list[str]:
    """Workloads of ``bench``, patterns of them, and workload files, that begin so."""
    from advisor.operations.library import list_workload_names, list_workload_patterns

    if "/" in start:
        return _paths_matching(start, ".json")
    return _names_matching([*list_workload_names(), *list_workload_patterns()], start)


def proven_workloads(start: str) -> list[str]:
    """Workloads of ``prove`` that begin so; patterns are for ``prove-arms``."""
    from advisor.operations.library import list_workload_names

    if "/" in start:
        return _paths_matching(start, ".json")
    return _names_matching(list_workload_names(), start)


def declarable_workloads(start: str) -> list[str]:
    """Workloads that ``scan`` and ``fix`` take, that begin so."""
    from advisor.operations.library import list_declarable_workloads

    return _names_matching(list_declarable_workloads(), start)


def recommendable_workloads(start: str) -> list[str]:
    """Workloads that ``recommend`` takes, that begin so."""
    from advisor.operations.library import list_declarable_workloads, list_workload_names

    if "/" in start:
        return _paths_matching(start, ".json")
    return _names_matching([*list_declarable_workloads(), *list_workload_names()], start)


def severity_names(start: str) -> list[str]:
    """Severities of ``--fail-on``, the least first."""
    from advisor.operations.library import list_severities

    return [one for one in list_severities() if one.startswith(start)]


def export_forms(start: str) -> list[str]:
    """Forms of ``profiles export`` that begin so."""
    from advisor.operations.library import list_export_forms

    return _names_matching(list_export_forms(), start)


def schema_names(start: str) -> list[str]:
    """Documents that begin so: by their words, after ``advisor.`` by their whole names."""
    from advisor.operations.library import list_schemas

    is_whole = start.startswith("advisor.")
    names = (name if is_whole else name.removeprefix("advisor.").partition("/")[0] for name in list_schemas())
    return _names_matching(names, start)


# The scripts that a shell sources to complete advisor's words; typer's own protocol answers them.

SCRIPTS = {
    "bash": """\
_advisor_completion() {
    local IFS=$'\\n' word words=() number=0 joins='' begun=''
    # bash breaks words at : and =, and completes only the last piece.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ -n $joins && -n $word ]] || [[ $number -gt 1 && $word == [:=]* ]]; then
            [[ $word == [:=]* ]] && joins=1 || joins=''
            [[ -n $joins ]] && begun=${words[number - 1]}$word
            words[number - 1]+=$word
        else
            words[number]=$word
            number=$((number + 1)) joins='' begun=''
        fi
    done
    mapfile -t COMPREPLY < <(env COMP_WORDS="${words[*]}" COMP_CWORD=$((number - 1)) \\
                                 _ADVISOR_COMPLETE=complete_bash "$1")
    COMPREPLY=("${COMPREPLY[@]#"$begun"}")
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
