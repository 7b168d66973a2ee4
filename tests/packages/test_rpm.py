"""The RPM: its spec on each family of distributions, built by rpmbuild, judged by rpmlint, installed and erased."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from advisor.version import __version__
from tests.running import run_text

from .conftest import ROOT, read_floors, run
from .test_packages import shipped

RPM = ROOT / "packaging/rpm"
SPEC = RPM / "host-advisor.spec"
FAMILIES = {"openSUSE": ("--define", "suse_version 1600"), "EL": ("--define", "rhel 10")}
pytestmark = pytest.mark.skipif(not shutil.which("rpmbuild"), reason="no rpmbuild (Debian's package rpm)")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The binary package; the one of its source lies next to it. Built once for all processes of a run of tests."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    directory = place / "rpm"
    with (place / "rpm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(directory.glob("*.noarch.rpm")):
            directory.mkdir(exist_ok=True)
            run("sh", RPM / "build.sh", directory)
    (found,) = directory.glob("*.noarch.rpm")
    assert found.name == f"host-advisor-{__version__}-1.noarch.rpm"
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_builds_with_the_libraries_that_the_project_declares(family: str) -> None:
    words = ("rpmspec", "--query", "--buildrequires", "--load", RPM / "macros.plain", *FAMILIES[family], SPEC)
    found = dict(re.findall(r"^python3-(\w+) >= ([\d.]+)$", run(*words), re.MULTILINE))
    own_names = {"Jinja2", "PyYAML"} if family == "openSUSE" else {"jinja2", "pyyaml"}
    assert own_names < set(found)
    oldest = found["base" if family == "openSUSE" else "devel"]
    libraries = {name.lower(): floor for name, floor in found.items() if name not in ("hatchling", "base", "devel")}
    assert libraries == read_floors(oldest)


def test_opensuse_has_no_generator_of_requirements() -> None:
    words = ("rpmspec", "--query", "--requires", "--load", RPM / "macros.plain", *FAMILIES["openSUSE"], SPEC)
    found = dict(re.findall(r"^python3-(\w+) >= ([\d.]+)$", run(*words), re.MULTILINE))
    assert {name.lower(): floor for name, floor in found.items()} == read_floors("3.11")


def test_units_are_handled_by_the_macros_of_each_family() -> None:
    for family, names in {"openSUSE": ("pre", "post", "preun", "postun"), "EL": ("post", "preun", "postun")}.items():
        parsed = run("rpmspec", "--parse", *FAMILIES[family], SPEC)  # without macros.plain: their names stay
        assert tuple(re.findall(r"^%(pre|post|preun|postun)$", parsed, re.MULTILINE)) == names
        macro = "service_(?:add|del)" if family == "openSUSE" else "systemd"
        assert tuple(re.findall(rf"^%{macro}_(\w+) .*advisor-metrics\.timer", parsed, re.MULTILINE)) == names


def test_it_holds_commands_manual_completions_units_and_profiles(package: Path) -> None:
    names = run("rpm", "--query", "--list", "--package", package).splitlines()
    for name in (
        *("/usr/bin/advisor", "/usr/share/man/man1/advisor.1.gz", "/usr/share/man/man1/advisor-apply.1.gz"),
        *("/usr/share/bash-completion/completions/advisor", "/usr/share/zsh/site-functions/_advisor"),
        *("/usr/share/fish/vendor_completions.d/advisor.fish", "/usr/lib/systemd/system/advisor-metrics.timer"),
    ):
        assert name in names
    profiles = {Path(name).name for name in names if "/_data/profiles/" in name}
    assert profiles == shipped("profiles")
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_rpmlint_finds_nothing(package: Path) -> None:
    if not shutil.which("rpmlint"):
        pytest.skip("no rpmlint (Debian's package rpmlint)")
    found = run_text(["rpmlint", "--config", RPM / "rpmlint.toml", SPEC, *package.parent.glob("*.rpm")])
    assert "2 packages and 1 specfiles checked" in found.stdout, found.stdout + found.stderr
    said = re.findall(r"^\S+: [EW]: .*", found.stdout, re.MULTILINE)
    if "rpmlint: 2.5." in found.stdout:
        # It takes every line of the spec for its changelog, and looks for requirements that the macros of openSUSE and
        # Fedora write; those of Debian 12 and 13 do neither.
        said = [one for one in said if "%changelog" not in one and "python-missing-require" not in one]
    assert not said
    assert found.returncode == 0


def test_every_filter_is_explained() -> None:
    lines = (RPM / "rpmlint.toml").read_text().partition("Filters = [\n")[2].splitlines()
    explained = False
    for line in lines[:-1]:
        explained = explained or line.startswith("  # ")
        assert explained, line
    assert len(lines) > len(tomllib.loads((RPM / "rpmlint.toml").read_text())["Filters"]) + 1


def test_rpm_installs_verifies_and_erases_it(package: Path, tmp_path: Path) -> None:
    """In a root of its own, which has no Python: what it needs and its scriptlets are not asked for."""
    rpm = ("rpm", "--root", tmp_path / "root", "--nodeps", "--noscripts")
    run(*rpm, "--install", package)
    assert run(*rpm, "--verify", "host-advisor") == ""
    launcher = (tmp_path / "root/usr/bin/advisor").read_text()
    assert launcher.startswith("#!/usr/bin/python3 -I\n")
    places = ("usr/bin", "usr/share", "usr/lib/systemd/system", "usr/lib/python*/site-packages")
    run(*rpm, "--erase", "host-advisor")
    assert not [file for place in places for top in tmp_path.glob(f"root/{place}") for file in top.rglob("*advisor*")]
