#!/bin/sh
# Writes a Debian source package that uses the distribution's own libraries:
#   sh packaging/deb/source.sh DIRECTORY [SUITE]     DIRECTORY/host-advisor_VERSION.dsc with its two archives
# SUITE is trixie, forky or sid (default: the suite of this machine). Each has its own version, so that an upgrade of the
# distribution is one of the package: 0.1.0-1~deb13u1 < 0.1.0-1~deb14u1 < 0.1.0-1. Debian 12 and older have libraries
# that are too old: build.sh, next to this file, takes them along. The source package is then built by
#   dpkg-source -x host-advisor_VERSION.dsc && cd host-advisor-0.1.0 && dpkg-buildpackage -b
set -eu
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: sh packaging/deb/source.sh DIRECTORY [SUITE]" >&2; exit 2; }
suite=${2:-$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)}
case $suite in
trixie) suffix='~deb13u1' ;;
forky) suffix='~deb14u1' ;;
sid | unstable) suite=unstable suffix= ;;
*)
    echo "source.sh: $suite: expected trixie, forky or sid; sh packaging/deb/build.sh builds a package with the libraries in it" >&2
    exit 1
    ;;
esac
mkdir -p "$1"
target=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
here=$(pwd)
python=${PYTHON:-.venv/bin/python}
[ -x "$(command -v "$python")" ] || python=python3
advisor_version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' advisor/version.py)
# The date of the last change to the source: the same source gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
umask 022
if "$python" -c 'import uv' 2>/dev/null; then
    "$python" -m uv --quiet build --sdist --out-dir "$work" .
else
    "$python" -m hatchling build --target sdist --directory "$work" >&2
fi
origin=host-advisor_$advisor_version.orig.tar.gz
tar -xzf "$work/host_advisor-$advisor_version.tar.gz" -C "$work"
mv "$work/host_advisor-$advisor_version.tar.gz" "$work/$origin"
tree=$work/host-advisor-$advisor_version
mv "$work/host_advisor-$advisor_version" "$tree"
cp -R "$here/packaging/debian" "$tree/debian"
cp packaging/systemd/*.service packaging/systemd/*.timer "$tree/debian/"

maintainer="${DEBFULLNAME:-The advisor project} <${DEBEMAIL:-advisor@example.org}>"
plain=$(printf '%s' "$maintainer" | sed 's/[&/\\]/\\&/g')
sed -i "s/The advisor project <advisor@example.org>/$plain/" "$tree/debian/control" "$tree/debian/changelog"
dated=$(LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
if [ -n "$suffix" ]; then
    version=$(sed -n '1s/.*(\(.*\)).*/\1/p' packaging/debian/changelog)$suffix
    {
        printf 'host-advisor (%s) %s; urgency=medium\n\n  * Local package: built for %s.\n\n' "$version" "$suite" "$suite"
        printf ' -- %s  %s\n\n' "$maintainer" "$dated"
        cat "$tree/debian/changelog"
    } > "$work/changelog"
    mv "$work/changelog" "$tree/debian/changelog"
fi
(cd "$work" && dpkg-source --build "$tree" >/dev/null)
mv "$work"/host-advisor_*.dsc "$work"/host-advisor_*.debian.tar.* "$work/$origin" "$target/"
