#!/bin/sh
# Writes the completions of bash, zsh and fish:  sh packaging/completions.sh DIRECTORY
set -eu
[ $# = 1 ] || { echo "usage: sh packaging/completions.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
advisor=${ADVISOR:-$(dirname "$0")/../.venv/bin/advisor}
_ADVISOR_COMPLETE=source_bash "$advisor" > "$1/advisor"
_ADVISOR_COMPLETE=source_zsh "$advisor" > "$1/_advisor"
_ADVISOR_COMPLETE=source_fish "$advisor" > "$1/advisor.fish"
