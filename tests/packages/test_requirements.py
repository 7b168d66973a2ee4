"""The declared requirements are true: advisor runs on the lowest versions that it names, and on the newest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.version import Version

from docs.command_page import help_pages

from .conftest import ROOT, find_python, read_floors, run

PYTHONS = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
ARCHIVE = ROOT / "tests" / "fixtures" / "storage-host-root.tar.gz"
WRONG = {
    ("scan", "--bogus"): "No such option: --bogus",
    ("scan", "--root"): "Option '--root' requires an argument",
    ("plan",): "Missing argument 'PROFILE…'",
    ("fleet", "scan"): "Missing option '-i' / '--inventory'",
    ("apply", "jumbo-frames", "--confirm-within", "x"): "--confirm-within: 'x' is not a whole number of seconds",
    ("scan", "--interval", "0"): "--interval: expected 0.1 to 3600, found 0",
    ("bogus",): "No such command 'bogus'",
}


OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
MATRIX = [
    pytest.param(
        *(version, resolution),
        id=f"{version}-{resolution}",
        marks=() if (version, resolution) == (OWN, "lowest-direct") else pytest.mark.thorough,
    )
    for version in PYTHONS
    for resolution in ("lowest-direct", "highest")
]
"""In the common run the lowest versions by the Python of the tests; all else is thorough."""
pytestmark = pytest.mark.parametrize(("version", "resolution"), MATRIX, scope="module")


@pytest.fixture(scope="module")
def installed(version: str, resolution: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with advisor and the versions that this resolution chooses."""
    place = tmp_path_factory.mktemp(f"python{version}")
    uv = (sys.executable, "-m", "uv", "--quiet")
    run(*uv, "venv", "--python", find_python(version), place)
    python = place / "bin" / "python"
    # Wheels alone, as a machine without a compiler has them: a version that has none is passed over.
    wheels = ("--only-binary", ":all:", "--no-binary", "host-advisor")
    command = (*uv, "pip", "install", "--python", python, "--resolution", resolution, *wheels, ROOT)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode and ("dns error" in done.stderr or "Failed to fetch" in done.stderr):
        pytest.skip("no index of packages is reached from here")
    assert done.returncode == 0, done.stderr
    if resolution == "lowest-direct":
        floors = read_floors(version)
        code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
        found = dict(zip(floors, run(python, "-c", code, *floors).split(), strict=True))
        assert {name: Version(one) for name, one in found.items()} == {
            name: Version(floor) for name, floor in floors.items()
        }
    return python


# Each call as the program makes it, in one process.
IN_ONE_PROCESS = """
import contextlib, io, json, sys
from advisor.cli import main

ended = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["advisor", *words]
    out, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as error:
            code = error.code
    ended.append([code, out.buffer.getvalue().decode(), errors.buffer.getvalue().decode()])
print(json.dumps(ended))
"""


def ends_of(python: Path, place: Path, calls: Sequence[Sequence[str]]) -> list[tuple[int, str, str]]:
    """Code, output and errors of each call."""
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(place / "state"), "NO_COLOR": "1"}
    command = [str(python), "-c", IN_ONE_PROCESS, json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return [(code, out, errors) for code, out, errors in json.loads(done.stdout)]


def test_every_page_of_help_is_made_by_this_typer(installed: Path, tmp_path: Path) -> None:
    pages = help_pages()
    calls = [("--no-color", *name.split(), "--help") for name in pages]
    for name, (code, page, errors) in zip(pages, ends_of(installed, tmp_path, calls), strict=True):
        assert (code, errors) == (0, "")
        assert page.startswith(f"Usage: advisor {name}".rstrip())


def test_wrong_calls_are_refused(installed: Path, tmp_path: Path) -> None:
    """In the same words; but newer versions of typer know only the bound that is exceeded."""
    ends = ends_of(installed, tmp_path, list(WRONG))
    for message, (code, _, errors) in zip(WRONG.values(), ends, strict=True):
        assert code == 2
        one_bound = re.sub(r"expected (\S+) to \S+,", r"expected \1 or more,", message)
        assert errors.startswith((f"advisor: {message}", f"advisor: {one_bound}")), errors


def test_a_captured_host_is_scanned_planned_and_exported(installed: Path, tmp_path: Path) -> None:
    export = ("profiles", "export", "socket-buffers-8m", "--format", "ansible", "-o", str(tmp_path / "role"))
    seen = (("scan", "--all"), ("explain", "1"), ("recommend",), ("limits",), ("scan", "--json"))
    calls = [(*words, "--snapshot", str(ARCHIVE)) for words in (*seen, ("plan", "socket-buffers-8m"), export)]
    for words, (code, _, errors) in zip(calls, ends_of(installed, tmp_path, calls), strict=True):
        unexpected = [line for line in errors.splitlines() if not line.startswith(("written: ", "use it with: "))]
        assert (code, unexpected) == (0, []), words


def test_what_netlink_is_asked_by_is_there(installed: Path, tmp_path: Path) -> None:
    """The loopback has no rings to read: a plain answer, by netlink or by ioctl, and nothing is logged."""
    code = "from advisor.host.netlink import read_coalesce; print(type(read_coalesce('lo')).__name__)"
    done = subprocess.run([str(installed), "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Missing\n", "")
