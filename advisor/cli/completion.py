"""The scripts that a shell sources to complete advisor's words; typer's own protocol answers them."""

from __future__ import annotations

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
