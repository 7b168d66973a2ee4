"""docs/tuned-profiles.md has a row for each profile of TuneD, with profiles of advisor that exist."""

from __future__ import annotations

import re
from pathlib import Path

from advisor.profiles.profile import profile_paths
from tests.importers.tuned_package import NAMES, SINCE

PAGE = Path(__file__).parents[2] / "docs/tuned-profiles.md"


def rows() -> dict[str, tuple[str, str]]:
    found = re.findall(r"^\| ([a-z-]+) \| (.+?) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: (ours, why) for name, ours, why in found}


def test_each_profile_of_tuned_has_a_row_in_their_order() -> None:
    assert [*rows()] == sorted({*NAMES, *SINCE})
    assert f"The {len(rows())} profiles of TuneD 2.28" in PAGE.read_text("utf-8")


def test_a_row_names_profiles_that_there_are_or_none_and_says_why() -> None:
    for ours, why in rows().values():
        named = re.findall(r"\[([a-z0-9-]+)\]\(profiles/\1\.md\)", ours)
        assert named or ours == "none", ours
        assert {*named} <= {*profile_paths()}
        assert len(why) > 10
