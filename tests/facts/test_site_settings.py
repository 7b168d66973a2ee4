"""Settings in files that are no sysctl files."""

from __future__ import annotations

from advisor.facts.settings.site_settings import parse_multipath


def test_sections_without_end_keep_a_bounded_place() -> None:
    ((number, (key, value, place)),) = parse_multipath("device {\n" * 5000 + "features 1\n")
    assert (number, key, value) == (5001, "features", "1")
    assert len(place) < 300
