"""What is installed, by whichever road, is the whole tool: it runs, far from the checkout, with its own data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from advisor.version import __version__
from tests.running import run_text

from .conftest import ROOT, run


def shipped(directory: str) -> set[str]:
    return {path.name for path in (ROOT / directory).iterdir() if path.is_file()}


def test_the_wheel_carries_profiles_templates_tables_and_what_ansible_needs(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for directory in ("profiles", "templates", "tables"):
        assert {f"advisor/_data/{directory}/{name}" for name in shipped(directory)} <= names
    for path in (ROOT / "advisor/fleet").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT)) in names


def test_the_sdist_carries_what_the_tests_and_packages_are_made_from(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "setup.sh", "packaging/deb/build.sh", "tests/test_docs.py", "docs/safety.md"} <= names


def test_twine_finds_nothing(built: Path) -> None:
    """--strict: a warning fails, too."""
    printed = run(
        sys.executable, "-m", "twine", "--no-color", "check", "--strict", *sorted(built.glob("host_advisor-*"))
    )
    # It breaks its lines at the width of a terminal, wherever that is in a path.
    assert printed.count("PASSED") == 2


# What pyroma misses, and why there is none.
NOT_THERE = (
    # The project publishes no address: whoever packages it names their own.
    "Your package does not have author-email data.",
    # It is published nowhere that a link could name; its documentation goes with the checkout.
    "Your package should have a 'url' field with a link to the project home page",
)


@pytest.mark.thorough
def test_pyroma_finds_nothing_that_is_not_explained(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    words = [sys.executable, "-m", "pyroma", "--file", "--min", "8", str(archive)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("Your package")]
    assert len(said) == len(NOT_THERE), said
    assert all(line.startswith(NOT_THERE) for line in said)
    assert "Final rating: 8/10" in done.stdout


BUNDLE = f"advisor {__version__} (bundle with its libraries)\n"


def judged(advisor: Path, home: Path, version: str = f"advisor {__version__}\n") -> None:
    """It scans and plans this machine, with nothing of the checkout in reach."""
    plain = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": ""}
    assert run(advisor, "--version", extra=plain, cwd=home) == version
    assert json.loads(run(advisor, "scan", "--json", extra=plain, cwd=home))["schema"] == "advisor.scan/1"
    listed = json.loads(run(advisor, "profiles", "list", "--json", extra=plain, cwd=home))
    assert {f"{one['name']}.toml" for one in listed["profiles"]} >= shipped("profiles")
    schema = json.loads(run(advisor, "schema", "profile-file", extra=plain, cwd=home))
    assert schema["$id"] == "urn:advisor:profile-file:1"
    script = run(advisor, "rollback-script", "socket-buffers-8m", extra=plain, cwd=home)
    assert script.startswith("#!/bin/sh\n")


def test_uv_installs_the_wheel_as_a_tool(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    run(sys.executable, "-m", "uv", "--quiet", "tool", "install", "--python", sys.executable, wheel, extra=places)
    judged(tmp_path / "bin/advisor", tmp_path)


@pytest.mark.thorough
def test_pipx_installs_the_wheel(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    places = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    uv = (sys.executable, "-m", "uv", "--quiet", "tool", "run", "--python", sys.executable)
    run(*uv, "pipx", "install", "--quiet", "--python", sys.executable, wheel, extra=places)
    judged(tmp_path / "bin/advisor", tmp_path)


@pytest.mark.thorough
def test_the_single_file_needs_nothing_but_python(tmp_path: Path) -> None:
    file = tmp_path / "advisor.pyz"
    run("sh", ROOT / "packaging/single-file.sh", file)
    judged(file, tmp_path, BUNDLE)
    # Without network: a namespace that has not even a loopback that is up.
    if os.geteuid() == 0:
        alone = run("unshare", "--net", file, "--version", extra={"HOME": str(tmp_path / "new")}, cwd=tmp_path)
        assert alone == BUNDLE
    # A compiled library for every Python and machine, and each wheel is in the list of what the bundle has with it.
    entries = (one.split("/") for one in zipfile.ZipFile(file).namelist())
    names = {parts[1] for parts in entries if parts[0] == ".deps" and parts[1]}
    for tag in ("cp311", "cp312", "cp313", "cp314"):
        for machine in ("x86_64", "aarch64"):
            assert [one for one in names if one.startswith("msgspec-") and f"-{tag}-" in one and machine in one]
    own = f".deps/host_advisor-{__version__}-py3-none-any.whl/host_advisor-{__version__}.dist-info"
    listed = json.loads(zipfile.ZipFile(file).read(f"{own}/sboms/host-advisor.cdx.json"))
    wheels = {wheel["name"] for one in listed["components"] for wheel in one["components"]}
    assert names <= wheels | {f"host_advisor-{__version__}-py3-none-any.whl"}


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb: not a Debian-like machine")
def test_the_debian_package_is_whole_and_comes_out_the_same_twice(tmp_path: Path) -> None:
    build = ROOT / "packaging/deb/build.sh"
    for name in ("one", "two"):
        run("sh", build, tmp_path / name, extra={"SOURCE_DATE_EPOCH": "1700000000"})
    (package,) = (tmp_path / "one").glob("*.deb")
    (again,) = (tmp_path / "two").glob("*.deb")
    assert package.read_bytes() == again.read_bytes()
    assert run("dpkg-deb", "--field", package, "Version").strip().startswith(f"{__version__}-1")
    assert package.name.split("_")[1].endswith("+bundle")
    assert "This package is a bundle" in run("dpkg-deb", "--field", package, "Description")
    run("dpkg-deb", "--extract", package, tmp_path / "tree")
    tree = tmp_path / "tree/usr"
    assert (tree / "share/man/man1/advisor-schema.1.gz").is_file()
    completions = ("bash-completion/completions/advisor", "zsh/vendor-completions/_advisor")
    for name in (*completions, "fish/vendor_completions.d/advisor.fish"):
        assert "advisor" in (tree / "share" / name).read_text()
    assert {path.name for path in (tree / "lib/advisor/advisor/_data/profiles").iterdir()} == shipped("profiles")
    listed = tree / f"lib/advisor/host_advisor-{__version__}.dist-info/sboms/host-advisor.cdx.json"
    assert {one["name"].lower() for one in json.loads(listed.read_text())["components"]} >= {"typer", "rich", "pyyaml"}
    assert (
        run(sys.executable, "-P", "-m", "advisor", "--version", extra={"PYTHONPATH": str(tree / "lib/advisor")})
        == BUNDLE
    )
    units = {path.name for path in (ROOT / "packaging/systemd").iterdir()}
    assert units == {path.name for path in (tree / "lib/systemd/system").iterdir()}
    # Nothing shows where it was built.
    found = subprocess.run(["grep", "-rlF", str(ROOT), tree], capture_output=True, text=True, check=False)
    assert not found.stdout


def test_a_removal_says_how_to_undo_what_stays(tmp_path: Path) -> None:
    with tarfile.open(ROOT / "tests/fixtures/transactions/three-layers-0.1.0.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    path = f"{Path(sys.executable).parent}:{os.defpath}"
    spec = (ROOT / "packaging/rpm/host-advisor.spec").read_text().rpartition("%preun\n")[2].partition("%systemd")[0]
    for script, gone, stays in (((ROOT / "packaging/debian/prerm").read_text(), "remove", "upgrade"), (spec, "0", "1")):
        told = [
            run_text(
                ["sh", "-ec", script, "prerm", word],
                env={"PATH": path, "ADVISOR_STATE_DIR": str(tmp_path / state)},
                check=True,
            ).stderr
            for word, state in ((gone, "state"), (stays, "state"), (gone, "none"))
        ]
        scripts = [line.strip() for line in told[0].splitlines()[1:]]
        assert scripts == [f"sh /var/lib/advisor/transactions/000{number}/rollback.sh" for number in (3, 2, 1)]
        assert told[1:] == ["", ""]
