"""A bundle says that it is one, and lists its libraries in CycloneDX; the judge is CycloneDX's own validator."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from advisor.version import __version__

from .conftest import ROOT, run

SBOM = ROOT / "packaging/sbom.py"
PLACE = f"host_advisor-{__version__}.dist-info/sboms/host-advisor.cdx.json"
FIXED = {"SOURCE_DATE_EPOCH": "1795478400"}
UV = (sys.executable, "-m", "uv", "--quiet")


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with host-advisor and its libraries, as the Debian package of build.sh has one."""
    place = tmp_path_factory.mktemp("bundle")
    (wheel,) = built.glob("*.whl")
    run(*UV, "pip", "install", "--python", sys.executable, "--target", place, "--link-mode", "copy", wheel)
    run(sys.executable, SBOM, place, extra=FIXED)
    return place


@pytest.fixture(scope="module")
def wheels(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel of host-advisor with its list, and the wheels of the libraries."""
    place = tmp_path_factory.mktemp("wheels")
    (wheel,) = built.glob("*.whl")
    own = Path(shutil.copy(wheel, place))
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "download", "--only-binary", ":all:", "--dest", place / "libraries", wheel)
    (place / "libraries" / wheel.name).unlink()
    run(sys.executable, SBOM, own, place / "libraries", extra=FIXED)
    return own, place / "libraries"


def find_errors(text: str) -> list[str]:
    """What CycloneDX's own schema finds wrong, where nothing may stand that it does not know."""
    validation = pytest.importorskip("cyclonedx.validation.json", reason="no cyclonedx-python-lib: pip install .[test]")
    from cyclonedx.schema import SchemaVersion

    found = validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return [] if found is None else [str(found)]


def references(document: dict[str, Any]) -> set[str]:
    return {one["bom-ref"] for one in (document["metadata"]["component"], *document["components"])}


def test_it_lists_every_distribution_that_is_there(installed: Path) -> None:
    text = (installed / PLACE).read_text()
    assert not find_errors(text)
    document = json.loads(text)
    there = {path.name.removesuffix(".dist-info").replace("_", "-").lower() for path in installed.glob("*.dist-info")}
    listed = {ref.removeprefix("pkg:pypi/").replace("@", "-") for ref in references(document)}
    assert listed == there
    assert document["metadata"]["component"]["name"] == "host-advisor"
    needs = {one["ref"]: one.get("dependsOn", []) for one in document["dependencies"]}
    assert set(needs) == references(document) >= {ref for found in needs.values() for ref in found}
    own = document["metadata"]["component"]["bom-ref"]
    assert {ref.partition("@")[0] for ref in needs[own]} >= {"pkg:pypi/typer", "pkg:pypi/pyyaml", "pkg:pypi/psutil"}
    assert all(one["licenses"] for one in document["components"])


def test_what_is_linked_into_a_library_is_not_claimed_to_be_listed(installed: Path) -> None:
    document = json.loads((installed / PLACE).read_text())
    (one,) = document["compositions"]
    assert one["aggregate"] == "incomplete"
    assert set(one["assemblies"]) == references(document)


def test_the_same_libraries_give_the_same_bytes(installed: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(installed, again)
    run(sys.executable, SBOM, again, extra=FIXED)
    assert (again / PLACE).read_bytes() == (installed / PLACE).read_bytes()


def test_the_bundle_says_that_it_is_one(installed: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-P", "-m", "advisor")
    expected = f"advisor {__version__} (bundle with its libraries)\n"
    for words in (("--version",), ("--no-color", "--version")):
        assert run(*command, *words, extra={"PYTHONPATH": str(installed)}, cwd=tmp_path) == expected


@pytest.mark.thorough
def test_a_wheel_s_list_has_the_hashes_of_all_wheels(wheels: tuple[Path, Path]) -> None:
    own, libraries = wheels
    with zipfile.ZipFile(own) as archive:
        text = archive.read(PLACE).decode()
    assert not find_errors(text)
    document = json.loads(text)
    listed = {file["name"]: file["hashes"] for one in document["components"] for file in one["components"]}
    assert listed == {
        path.name: [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]
        for path in libraries.glob("*.whl")
    }


def test_the_changed_wheel_is_whole_and_installs_as_a_bundle(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    own, libraries = wheels
    with zipfile.ZipFile(own) as archive:
        (record,) = (one for one in archive.namelist() if one.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1] for row in csv.reader(archive.read(record).decode().splitlines())}
        assert set(rows) == set(archive.namelist())
        for name, digest in rows.items():
            if name != record:
                found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).decode().rstrip("=")
                assert digest == f"sha256={found}"
    words = ("--target", tmp_path / "in", "--no-index", "--find-links", libraries, own)
    run(*UV, "pip", "install", "--python", sys.executable, *words)
    reported = run(sys.executable, "-P", "-m", "advisor", "--version", extra={"PYTHONPATH": str(tmp_path / "in")})
    assert reported == f"advisor {__version__} (bundle with its libraries)\n"
