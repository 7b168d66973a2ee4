"""The Debian source package: a version for each suite, built and judged in that suite itself, where it can be had."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.version import __version__
from tests.running import run_text

from .conftest import ROOT, read_floors, run

SOURCE = ROOT / "packaging/deb/source.sh"
DEBIAN = ROOT / "packaging/debian"
VERSIONS = {"trixie": f"{__version__}-1~deb13u1", "forky": f"{__version__}-1~deb14u1", "sid": f"{__version__}-1"}
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec")
LEFT = "dpkg --get-selections | sort; ls /usr/bin /usr/lib /usr/lib/systemd/system /var/lib"
pytestmark = pytest.mark.skipif(not shutil.which("dpkg-source"), reason="no dpkg-source (Debian's package dpkg-dev)")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A directory for each suite, with the source package for it."""
    top = tmp_path_factory.mktemp("sources")
    for suite in VERSIONS:
        run("sh", SOURCE, top / suite, suite, extra={"SOURCE_DATE_EPOCH": "1795478400"})
    return {suite: top / suite for suite in VERSIONS}


def unpack(directory: Path, target: Path) -> Path:
    (description,) = directory.glob("*.dsc")
    run("dpkg-source", "--require-strong-checksums", "-x", description, target)
    return target


def test_each_suite_has_its_own_version_and_a_later_one_is_newer(sources: dict[str, Path], tmp_path: Path) -> None:
    for suite, version in VERSIONS.items():
        tree = unpack(sources[suite], tmp_path / suite)
        entry = run("dpkg-parsechangelog", cwd=tree)
        distribution = {"sid": "unstable"}.get(suite, suite)
        assert f"Version: {version}\nDistribution: {distribution}\n" in entry
        assert (sources[suite] / f"host-advisor_{version}.dsc").is_file()
    for older, newer in (("trixie", "forky"), ("forky", "sid")):
        run("dpkg", "--compare-versions", VERSIONS[older], "lt", VERSIONS[newer])


def test_one_archive_of_the_source_serves_them_all(sources: dict[str, Path]) -> None:
    found = {(place / f"host-advisor_{__version__}.orig.tar.gz").read_bytes() for place in sources.values()}
    assert len(found) == 1


@pytest.mark.parametrize("suite", ["bookworm", "jammy"])
def test_a_suite_whose_libraries_are_too_old_is_refused_with_what_to_do(tmp_path: Path, suite: str) -> None:
    done = subprocess.run(["sh", SOURCE, tmp_path / "out", suite], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"source.sh: {suite}: expected trixie, forky or sid; sh packaging/deb/build.sh ")
    assert not (tmp_path / "out").exists()


def test_who_builds_it_is_its_maintainer(tmp_path: Path) -> None:
    person = {"DEBFULLNAME": "Anna & Söhne", "DEBEMAIL": "anna@example.com"}
    run("sh", SOURCE, tmp_path / "out", "trixie", extra=person)
    tree = unpack(tmp_path / "out", tmp_path / "tree")
    assert "\nMaintainer: Anna & Söhne <anna@example.com>\n" in (tree / "debian/control").read_text()
    assert "\n -- Anna & Söhne <anna@example.com>  " in (tree / "debian/changelog").read_text()


def test_its_version_and_requirements_are_the_project_s(sources: dict[str, Path], tmp_path: Path) -> None:
    tree = unpack(sources["trixie"], tmp_path / "tree")
    # With its patches applied: Debian 13's typer is older than what an index of packages needs.
    built = dict(re.findall(r"^ python3-(\w+) \(>= ([\d.]+)\),$", (tree / "debian/control").read_text(), re.MULTILINE))
    floors = read_floors(built["all"], tree)
    assert {"yaml" if name == "pyyaml" else name: floor for name, floor in floors.items()} == {
        name: floor for name, floor in built.items() if name not in ("all", "hatchling")
    }


@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian (Debian's package lintian)")
def test_lintian_finds_nothing_in_the_source(sources: dict[str, Path]) -> None:
    (description,) = sources["sid"].glob("*.dsc")
    words = ("lintian", "--allow-root", "--display-info", "--pedantic", "--fail-on", "error,warning,info,pedantic")
    # A lintian that is older than the standards it is shown says so.
    reported = run(*words, "--suppress-tags", "newer-standards-version", description)
    assert not [line for line in reported.splitlines() if re.match(r"[EWIPX]: ", line)], reported


def test_every_override_is_explained() -> None:
    for path in (DEBIAN / "lintian-overrides", DEBIAN / "source/lintian-overrides"):
        explained = False
        for line in path.read_text().splitlines():
            if line.startswith("#"):
                explained = True
            else:
                assert explained, f"{path.name}: {line}"


class Chroot:
    """A Debian of its own in a directory."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def run(self, script: str) -> str:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        environment |= {"DEBIAN_FRONTEND": "noninteractive", "SOURCE_DATE_EPOCH": "1795478400"}
        done = run_text(
            [*ALONE, 'mount -t proc proc "$0/proc"; exec chroot "$0" sh -ec "$1"', str(self.place), script],
            env=environment,
        )
        assert done.returncode == 0, f"{script}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def trixie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chroot]:
    """A fresh Debian 13."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("a fresh Debian 13 needs root and debootstrap")
    place = tmp_path_factory.mktemp("trixie")
    base = run_text(["debootstrap", "--variant=minbase", "trixie", place])
    if base.returncode:
        pytest.skip(f"no Debian 13 from here: {base.stdout[-200:]}")
    yield Chroot(place)
    shutil.rmtree(place)


@pytest.mark.thorough
def test_it_builds_on_debian_13_satisfies_lintian_installs_works_and_leaves(
    sources: dict[str, Path], trixie: Chroot
) -> None:
    shutil.copytree(sources["trixie"], trixie.place / "build")
    before = trixie.run(LEFT)
    install = "apt-get install -y -qq --no-install-recommends"
    trixie.run(f"apt-get update -qq && {install} dpkg-dev lintian && cd /build && dpkg-source -x *.dsc tree")
    trixie.run("cd /build/tree && apt-get build-dep -y -qq --no-install-recommends .")
    trixie.run("cd /build/tree && dpkg-buildpackage --build=full --no-sign")
    found = trixie.run("cd /build && lintian --allow-root --display-info --pedantic --fail-on none *.changes")
    assert not re.findall(r"^[EWIPX]: .*", found, re.MULTILINE)
    # A machine that only runs it has nothing of what builds it.
    old = {line.split()[0] for line in before.splitlines() if line.endswith("\tinstall")}
    new = [line.split()[0] for line in trixie.run("dpkg --get-selections").splitlines()]
    trixie.run(f"apt-get purge -y -qq {' '.join(name for name in new if name not in old)}")
    assert trixie.run(LEFT) == before
    trixie.run(f"{install} /build/host-advisor_*_all.deb")
    assert trixie.run("advisor --version") == f"advisor {__version__}\n"
    trixie.run("mkdir /tmp/smoke && cd /build/tree && AUTOPKGTEST_TMP=/tmp/smoke sh debian/tests/scan")
    assert trixie.run("dpkg --verify host-advisor") == ""
    # Nothing is enabled.
    assert trixie.run("ls /etc/systemd/system/timers.target.wants 2>/dev/null | grep -c advisor || :") == "0\n"
    trixie.run("apt-get purge -y -qq --auto-remove host-advisor && rm -rf /var/lib/advisor /tmp/smoke")
    assert trixie.run(LEFT) == before
