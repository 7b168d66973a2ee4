#!/bin/sh
# Builds the RPM and its source package:  sh packaging/rpm/build.sh DIRECTORY [OPTION OF rpmbuild]...
# On openSUSE, Fedora and EL with the distribution's own macros and libraries. Where rpm has no macros of Python (Debian)
# it builds with those of macros.plain, which shows that the spec is right and serves for nothing else.
set -eu
[ $# -ge 1 ] || { echo "usage: sh packaging/rpm/build.sh DIRECTORY [OPTION OF rpmbuild]..." >&2; exit 2; }
mkdir -p "$1"
target=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
[ -x "$(command -v "$python")" ] || python=python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
umask 022
mkdir "$work/SOURCES"
if "$python" -c 'import uv' 2>/dev/null; then
    "$python" -m uv --quiet build --sdist --out-dir "$work/SOURCES" .
else
    "$python" -m hatchling build --target sdist --directory "$work/SOURCES" >&2
fi
if [ "$(rpm --eval '%{?pyproject_wheel:1}')" != 1 ]; then
    python=$("$python" -c 'import sys; print(sys.executable)')
    # Not --load: rpm 4.20 reads its configuration again where it meets BuildArch, without what that brought.
    files=$(rpm --showrc | sed -n 's/^Macro path: //p')
    set -- --macros "$files:$PWD/packaging/rpm/macros.plain" --define "__python3 $python" --nodeps "$@"
fi
# What --macros brings is read at the first --define.
rpmbuild "$@" -ba --quiet --define "_topdir $work" packaging/rpm/host-advisor.spec >&2
find "$work/RPMS" "$work/SRPMS" -name '*.rpm' -exec mv {} "$target/" \;
