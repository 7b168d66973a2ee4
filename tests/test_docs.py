"""The documentation says what the program does: generated pages are fresh, and no field is left out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from advisor.exporters import FORMATS
from advisor.planning.guards import _GUARDS
from advisor.profiles.profile import (
    Computed,
    Condition,
    ForEach,
    Only,
    Operator,
    Parameter,
    Profile,
    ProofDeclaration,
    Wanted,
    parse_profile,
)
from advisor.tunables.kind import Sense
from tests.each import for_each
from tests.running import run_text

DOCS = Path(__file__).parents[1] / "docs"
FORMAT = (DOCS / "profile-format.md").read_text()
RECORDS = (Profile, Parameter, Computed, Wanted, Only, Condition, ProofDeclaration)


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_text([sys.executable, str(DOCS / "generate.py"), *arguments])


def test_generated_pages_are_fresh() -> None:
    done = generate("--check")
    assert done.returncode == 0, f"run python docs/generate.py\n{done.stdout}{done.stderr}"


@for_each(
    "record field", [(record, field.encode_name) for record in RECORDS for field in msgspec.structs.fields(record)]
)
def test_the_format_names_every_field(record: type, field: str) -> None:
    assert f"`{field}`" in FORMAT, f"{record.__name__} has a field {field}"


@pytest.mark.parametrize("word", [*get_args(Sense), *get_args(ForEach), *get_args(Operator), *_GUARDS])
def test_the_format_names_every_word(word: str) -> None:
    assert f"`{word}`" in FORMAT


def test_the_example_of_the_format_is_a_profile() -> None:
    example = re.search(r"```toml\n(.*?)```", FORMAT, re.DOTALL)
    assert example is not None
    assert parse_profile(example[1].encode(), "profile-format.md").name == "swap-late"


@pytest.mark.parametrize("form", FORMATS)
def test_the_page_of_exports_has_every_form(form: str) -> None:
    assert f"`{form}`" in (DOCS / "export.md").read_text()


@pytest.mark.parametrize("page", sorted((DOCS / "profiles").glob("*.md")), ids=lambda page: page.stem)
def test_the_site_and_the_readme_lead_to_every_profile(page: Path) -> None:
    assert f"profiles/{page.name}\n" in (DOCS.parent / "mkdocs.yml").read_text()
    assert "](docs/profiles/README.md)" in (DOCS.parent / "README.md").read_text()
    assert page.stem == "README" or f"]({page.name})" in (DOCS / "profiles/README.md").read_text()
