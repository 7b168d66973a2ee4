#!/bin/sh
# Builds one file that runs wherever Python 3.11 or newer is, without network and without an installation:
#   sh packaging/single-file.sh FILE
# It holds the wheels of every dependency for the Pythons and machines below, and unpacks what fits into
# ~/.cache/pex (or $PEX_ROOT) at its first start.
set -eu
[ $# = 1 ] || { echo "usage: sh packaging/single-file.sh FILE" >&2; exit 2; }
case $1 in /*) target=$1 ;; *) target=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# pex is a program of the build, not of the product: it has an environment of its own.
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check 'pex>=2.20'
"$work/tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" .

# Every library for every Python and machine, from which pex takes what it packs, and of which the list is made.
mkdir "$work/wheels"
set --
for version in 3.11 3.12 3.13 3.14; do
    for machine in x86_64 aarch64; do
        tag=cp$(echo "$version" | tr -d .)
        "$work/tools/bin/pip" download --quiet --disable-pip-version-check --only-binary :all: --dest "$work/wheels" \
            --python-version "$version" --implementation cp --abi "$tag" --abi abi3 --abi none \
            --platform "manylinux2014_$machine" --platform "manylinux_2_17_$machine" "$work"/host_advisor-*.whl
        set -- "$@" --platform "manylinux2014_$machine-cp-$version.0-$tag"
    done
done
rm -f "$work"/wheels/host_advisor-*.whl
"$python" packaging/sbom.py "$work"/host_advisor-*.whl "$work/wheels"
# --venv: every start but the first costs what an installed advisor costs, and not a search for wheels.
"$work/tools/bin/pex" "$work"/host_advisor-*.whl --console-script advisor --venv --python-shebang '/usr/bin/env python3' \
    --no-pypi --find-links "$work/wheels" --output-file "$work/advisor.pyz" "$@"
"$python" packaging/refuse_old.py "$work/advisor.pyz"
mv -f "$work/advisor.pyz" "$target"
