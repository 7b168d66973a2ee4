"""The Containerfile, read as a builder would: no builder is needed, and none is replaced."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "packaging/container/Containerfile"


def read_instructions() -> list[tuple[str, str]]:
    """Each instruction with its argument; lines that end with a backslash are one."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE)
    lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
    return [(line.split(maxsplit=1)[0], " ".join(line.split()[1:])) for line in lines if line]


def arguments(name: str) -> list[str]:
    return [argument for instruction, argument in read_instructions() if instruction == name]


def test_two_stages_on_one_base_that_names_its_version() -> None:
    [base] = arguments("ARG")
    assert re.fullmatch(r"BASE=docker\.io/library/python:3\.\d+-slim-[a-z]+", base)
    assert arguments("FROM") == ["${BASE} AS build", "${BASE}"]


def test_it_starts_as_an_ordinary_user() -> None:
    instructions = read_instructions()
    assert arguments("USER") == ["65532:65532"]
    last = max(number for number, (name, _) in enumerate(instructions) if name in ("RUN", "COPY"))
    assert instructions.index(("USER", "65532:65532")) > last
    assert (arguments("ENTRYPOINT"), arguments("CMD")) == (['["advisor"]'], ['["scan"]'])


def test_all_that_the_build_needs_is_copied_and_nothing_that_is_ignored() -> None:
    copied = {word for line in arguments("COPY") if "--from" not in line for word in line.split()[:-1]}
    assert all((ROOT / word).exists() for word in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert copied == needed | set(wheel["packages"]) | set(wheel["force-include"])
    lines = (ROOT / ".containerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    assert lines[1] == "*"
    assert all(any(fnmatch.fnmatch(word, pattern) for pattern in kept) for word in copied)


def test_the_labels_are_those_of_the_package() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', " ".join(arguments("LABEL"))))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (labels["licenses"], labels["description"]) == (project["license"], project["description"])
    assert (ROOT / labels["documentation"]).is_file()


def test_the_manifests_name_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = re.findall(r"image: (\S+)", "".join(path.read_text() for path in ROOT.glob("packaging/kubernetes/*.yaml")))
    assert set(images) == {f"advisor:{version}"}
