"""On the public Python index `advisor` is somebody else's library, whose installation runs code: nothing here sends a
user there. The distribution is `host-advisor`."""

from __future__ import annotations

import email.parser
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT

TEXTS = ("advisor", "docs", "packaging", "profiles", "tables", "templates", "benchmarks", "tests", "*.*", "LICENSE")
KINDS = {".py", ".md", ".sh", ".toml", ".po", ".pot", ".j2", ".json", ".yml", ".yaml", ".cast", ".txt", ".svg", ".html"}
# `install`, options, and then the name alone: not a path, not part of another name.
NAME = r"""['"`]?advisor(?:\[[^]]*\])?(?:[<>=!~]=?[\w.*]+)?(?![\w./-])"""
BY_NAME = re.compile(
    rf"""(?:\bpip3?\b|\bpipx\b|\buv\b|\bconda\b|\bpoetry\b|\bpdm\b|\bapt(?:-get)?\b|\bdnf\b|\byum\b|\bzypper\b)
         [^`\n|;]*?\b(?:install|add|inject|download|run)\s[^`\n|;]*?(?<![\w./-]){NAME}
       | \buvx\s+(?:-\S+\s+)*{NAME}
       | (?<![\w-])advisor\[\w""",
    re.VERBOSE,
)
# One of these stands in each line that the pattern finds: to look for it first is a hundred times as fast.
VERBS = re.compile(r"install|add|inject|download|run|uvx|advisor\[")


@pytest.mark.parametrize(
    "text",
    [
        "pip install advisor",
        "python3 -m pip install --upgrade advisor",
        "pip install 'advisor[fleet]' or your",
        "pipx install advisor",
        "pip install ansible-core advisor==0.1.0",
        "uv tool install advisor",
        "uvx advisor scan",
        "apt-get install -y advisor",
        "needs advisor[fleet]",
    ],
)
def test_the_pattern_finds_such_a_text(text: str) -> None:
    assert BY_NAME.search(text)
    assert VERBS.search(text)


def test_no_text_installs_anything_by_that_name() -> None:
    files = [found for one in TEXTS for top in ROOT.glob(one) for found in (top.rglob("*") if top.is_dir() else [top])]
    read = [one for one in files if one.is_file() and one.suffix in KINDS and one != Path(__file__).resolve()]
    assert len(read) > 500
    found = [
        f"{one.relative_to(ROOT)}: {hit[0]}"
        for one in read
        for line in one.read_text("utf-8", "replace").splitlines()
        if "advisor" in line and VERBS.search(line)
        for hit in BY_NAME.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_the_distribution_has_a_name_of_its_own_and_carries_its_licence(built: Path) -> None:
    (wheel,) = built.glob("host_advisor-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = email.parser.Parser().parsestr(archive.read(path).decode())
        licence = archive.read(f"{path.rpartition('/')[0]}/licenses/LICENSE").decode()
        (entry,) = (one for one in archive.namelist() if one.endswith("entry_points.txt"))
        assert archive.read(entry).decode().strip() == "[console_scripts]\nadvisor = advisor.cli:run_program"
    assert (metadata["Name"], metadata["License-Expression"]) == ("host-advisor", "Apache-2.0")
    assert {"Summary", "Author", "Keywords", "Classifier", "License-File", "Requires-Python"} <= {*metadata}
    assert licence == (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
    (sdist,) = built.glob("host_advisor-*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert {"LICENSE", "SECURITY.md"} <= {one.partition("/")[2] for one in archive.getnames()}
