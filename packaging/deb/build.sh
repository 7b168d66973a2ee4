#!/bin/sh
# Builds a Debian package for the Debian and the machine it runs on:
#   sh packaging/deb/build.sh DIRECTORY        writes DIRECTORY/host-advisor_VERSION_ARCHITECTURE.deb
# The Python libraries come along in /usr/lib/advisor, in the versions that the tests ran with: Debian 12 has none that
# are new enough. Nothing is started or enabled by installing it.
set -eu
[ $# = 1 ] || { echo "usage: sh packaging/deb/build.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
target=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."

# The interpreter that the package will run with, for the libraries are compiled for it.
interpreter=/usr/bin/python3
version=$($interpreter -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$($interpreter -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
architecture=$(dpkg --print-architecture)
python=${PYTHON:-.venv/bin/python}
advisor_version=$("$python" -c 'from advisor.version import __version__; print(__version__)')

# A version for each release of the distribution, so that an upgrade of it, also to the package on the distribution's own
# libraries (source.sh), is one of this package: 0.1.0-1~deb12u1+bundle < 0.1.0-1~deb13u1.
release=$(sed -n 's/^VERSION_ID=//p' /etc/os-release | tr -d '"')
case $(sed -n 's/^ID=//p' /etc/os-release | tr -d '"')$release in
debian?*) suffix="~deb${release}u1" ;;
ubuntu?*) suffix="~ubuntu$release.1" ;;
*) suffix= ;; # Debian's unstable has no number
esac
package_version=$advisor_version-1$suffix+bundle

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
umask 022
tree=$work/tree
mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/usr/lib/advisor" "$tree/usr/share/doc/host-advisor" "$tree/usr/share/man/man1" \
    "$tree/usr/share/bash-completion/completions" "$tree/usr/share/zsh/vendor-completions" \
    "$tree/usr/share/fish/vendor_completions.d"

tools=$python
if ! "$python" -c 'import uv' 2>/dev/null; then
    # uv is a program of the build, not of the product.
    "$python" -m venv "$work/tools"
    tools=$work/tools/bin/python
    "$tools" -m pip install --quiet --disable-pip-version-check uv
fi
"$tools" -m uv --quiet pip install --python "$interpreter" --target "$tree/usr/lib/advisor" --only-binary :all: \
    --no-binary host-advisor --link-mode copy .
# Where it was built from is nobody's business.
rm -rf "$tree/usr/lib/advisor/bin" "$tree/usr/lib/advisor/.lock" "$tree"/usr/lib/advisor/*.dist-info/direct_url.json \
    "$tree"/usr/lib/advisor/*.dist-info/uv_cache.json
find "$tree/usr/lib/advisor" -name __pycache__ -prune -exec rm -rf {} +
"$python" packaging/sbom.py "$tree/usr/lib/advisor"

# -I: neither the user's environment nor the current directory has a say in what root runs.
cat > "$tree/usr/bin/advisor" <<'LAUNCHER'
#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "/usr/lib/advisor")
from advisor.cli import run_program

run_program()
LAUNCHER
chmod 755 "$tree/usr/bin/advisor"

"$python" packaging/manpages.py "$tree/usr/share/man/man1"
gzip -9n "$tree"/usr/share/man/man1/*.1
sh packaging/completions.sh "$work/completions"
cp "$work/completions/advisor" "$tree/usr/share/bash-completion/completions/advisor"
cp "$work/completions/_advisor" "$tree/usr/share/zsh/vendor-completions/_advisor"
cp "$work/completions/advisor.fish" "$tree/usr/share/fish/vendor_completions.d/advisor.fish"
mkdir -p "$tree/usr/lib/systemd/system"
cp packaging/systemd/*.service packaging/systemd/*.timer "$tree/usr/lib/systemd/system/"
cp README.md "$tree/usr/share/doc/host-advisor/"
cp -R docs "$tree/usr/share/doc/host-advisor/docs"
find "$tree/usr/share/doc/host-advisor/docs" \( -name '*.py' -o -name __pycache__ \) -prune -exec rm -rf {} +
gzip -9nc CHANGELOG.md > "$tree/usr/share/doc/host-advisor/changelog.gz"
cat > "$tree/usr/share/doc/host-advisor/copyright" <<'COPYRIGHT'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: host-advisor

Files: *
Copyright: The advisor project
License: Apache-2.0
 On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0.
Comment: the libraries in /usr/lib/advisor carry their own licenses in their *.dist-info directories.
COPYRIGHT

cat > "$tree/DEBIAN/control" <<CONTROL
Package: host-advisor
Version: $package_version
Architecture: $architecture
Maintainer: ${DEBFULLNAME:-The advisor project} <${DEBEMAIL:-advisor@example.org}>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: python3 (>= $version), python3 (<< $next), iproute2
Recommends: ethtool, fio, iputils-ping
Suggests: ansible-core
Section: admin
Priority: optional
Description: inspects, tunes, proves and restores hosts (bundle)
 advisor looks at a Linux host that carries storage or a cluster, reports what
 to change and why, applies it as one journalled transaction, proves the gain
 with interleaved fio runs, and rolls everything back on request, even with
 nothing installed, by a generated script.
 .
 This package is a bundle: it has its Python libraries with it, which the
 distribution's security updates do not reach. Which ones and in which versions
 is listed in CycloneDX, in the directory
 /usr/lib/advisor/host_advisor-$advisor_version.dist-info/sboms
CONTROL
# Compiled where it is installed, gone with the package.
cat > "$tree/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    /usr/bin/python3 -m compileall -q -j 0 /usr/lib/advisor || :
fi
POSTINST
cp packaging/debian/prerm "$tree/DEBIAN/prerm"
cat >> "$tree/DEBIAN/prerm" <<'PRERM'
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl --no-reload disable --now advisor-metrics.timer >/dev/null 2>&1 || :
fi
find /usr/lib/advisor -name __pycache__ -prune -exec rm -rf {} + || :
PRERM
chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm"
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"

# The same source gives the same bytes (reproducible-builds.org).
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
fi
dpkg-deb --build --root-owner-group "$tree" "$target/host-advisor_${package_version}_$architecture.deb" >/dev/null
