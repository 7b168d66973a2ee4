"""``--workload``: names, keys and what is said about a word that is neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.rules.workload import WORKLOADS, DeclaredWorkload, parse_workload
from tests.cases import read_cases

PROFILES = Path(__file__).parents[2] / "profiles"
TUNINGS = {
    *("cloud-volumes", "ebs-volumes", "jumbo-frames", "llt-highwater-doubled", "low-latency", "numa-pinning"),
    "socket-buffers-8m",
}
"""Profiles of a setting, not of a service."""

DATA = read_cases(__file__, DeclaredWorkload)


@pytest.mark.parametrize(("text", "expected"), DATA["is_read"])
def test_is_read(text: str, expected: DeclaredWorkload) -> None:
    parsed = parse_workload(text)
    assert parsed.rtt_seconds == pytest.approx(expected.rtt_seconds)
    assert (parsed.name, parsed.write_share) == (expected.name, expected.write_share)
    assert parsed.block_bytes == expected.block_bytes
    assert (parsed.access, parsed.transport) == (expected.access, expected.transport)
    assert parsed.replication == expected.replication


@pytest.mark.parametrize(("text", "named"), DATA["what_is_wrong_is_named"])
def test_what_is_wrong_is_named(text: str, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_workload(text)
    assert named in caught.value.message


def test_an_unknown_word_names_those_that_are_known() -> None:
    with pytest.raises(UsageError) as caught:
        parse_workload("speed=fast")
    assert caught.value.hint is not None
    for word in (*(one.name for one in WORKLOADS.values()), "write", "block", "access", "transport", "rtt"):
        assert str(word) in caught.value.hint


def test_every_profile_of_a_service_is_a_workload() -> None:
    assert {path.stem for path in PROFILES.glob("*.toml")} - set(WORKLOADS) == TUNINGS
    assert parse_workload("infoscale-fss-zones") == parse_workload("fss-cross-zone")


@given(st.text() | st.from_regex(r"(write|block|rtt|access)=[0-9a-z.%]{0,9}(,[a-z]+=[0-9a-z%]*)?", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        workload = parse_workload(text)
    except UsageError:
        return
    assert workload.write_share is None or 0 <= workload.write_share <= 1
    assert workload.block_bytes is None or workload.block_bytes >= 512
    assert workload.rtt_seconds is None or workload.rtt_seconds > 0
