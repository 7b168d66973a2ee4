#!/bin/sh
# Writes the completions of bash, zsh and fish:  sh packaging/completions.sh DIRECTORY
set -eu
[ $# = 1 ] || { echo "usage: sh packaging/completions.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
advisor=${ADVISOR:-$(dirname "$0")/../.venv/bin/advisor}

# Without the empty lines that it begins with: zsh looks for #compdef in the first line alone.
write() { # SHELL FILE
    text=$(_ADVISOR_COMPLETE=source_$1 "$advisor")
    printf '%s\n' "$text" | sed '/./,$!d' > "$2"
}
write bash "$1/advisor"
write zsh "$1/_advisor"
write fish "$1/advisor.fish"
