"""The schema of a profile's TOML file, held by a library that is not ours against files that lint judges."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

from advisor.errors import InvalidInputError
from advisor.operations.library import read_schema
from advisor.profiles.profile import parse_profile
from tests.cases import read_cases

SHIPPED = sorted((Path(__file__).parents[2] / "profiles").glob("*.toml"))
DATA = read_cases(__file__)

VALID = DATA["VALID"]


def faults(text: str) -> list[str]:
    schema = read_schema("profile-file")
    jsonschema.Draft7Validator.check_schema(schema)
    return [one.message for one in jsonschema.Draft7Validator(schema).iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_profile_is_valid(path: Path) -> None:
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(("old", "new"), DATA["what_lint_refuses_in_one_field"])
def test_what_lint_refuses_in_one_field_the_schema_refuses(old: str, new: str) -> None:
    assert faults(VALID) == []
    parse_profile(VALID.encode(), "late.toml")
    text = VALID.replace(old, new, 1)
    assert text != VALID
    assert faults(text) != []
    with pytest.raises(InvalidInputError):
        parse_profile(text.encode(), "late.toml")
