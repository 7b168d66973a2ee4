"""The page of ``advisor limits``: calm, whole, and harmless whatever a host is called."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.host_facts import scan
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.links import PciAndNetwork, PciHop
from advisor.limits.notes import Measurement, with_observed
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits
from advisor.report.encode import encode_document
from advisor.report.limits import format_minutes, format_number, limits_document, limits_text
from tests.captured import HWLOC_HOSTS, PEPC_HOSTS, host
from tests.golden import assert_golden
from tests.limits.hosts import EBS, array, disk, facts, link, mounted
from tests.report.pasted import lines_too_wide

NAMES = st.text(st.one_of(st.characters(), st.sampled_from("\x1b[2J\n\t宽\u202e\udcff /")), min_size=1, max_size=60)


def rich_host(name: str = "nvme1n1") -> Limits:
    names = [name, "nvme2n1"]
    said = Declared(tuple(DeclaredVolume("gp2", device=one, gib=100) for one in names), where="v.toml")
    one = facts(
        [*(disk(n, model=EBS) for n in names), *(disk(f"nvme{n}n1") for n in range(3, 6))],
        [array("md0", "raid1", names, size_bytes=10**12)],
        [link("eth0"), link("eth1", pci="0000:02:00.0")],
        filesystems=[mounted("md0", f"/srv/{name}")],
        instance_type="m5.large",
    )
    around = PciAndNetwork(hops={f"nvme{n}n1": (PciHop(f"0000:{n}0:00.0", 31_504),) for n in range(3, 6)})
    measured = [Measurement("iris.randread", "md0", "iops", 1200.0, 1.0)]
    return with_observed(limits_of(one, around, said), measured, one, said)


def test_the_page_of_a_rich_host() -> None:
    assert_golden("limits", limits_text(rich_host(), width=80, color=False))


def test_colour_changes_no_character_and_is_absent_without() -> None:
    plain = limits_text(rich_host(), width=100, color=False)
    assert "\x1b" not in plain
    assert "\x1b[1m" in limits_text(rich_host(), width=100, color=True)


@settings(max_examples=40, deadline=None)
@given(NAMES, st.integers(40, 170))
def test_hostile_names_stay_within_the_page_and_out_of_the_terminal(name: str, width: int) -> None:
    found = rich_host(name)
    lines = limits_text(found, width=width, color=False).split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines_too_wide("\n".join(lines), width) == []
    document = encode_document(limits_document(found))
    assert json.loads(document)["schema"] == "advisor.limits/1"
    assert b"\x1b" not in document


def test_the_document_holds_no_infinite_number_and_unknown_is_null() -> None:
    document = encode_document(limits_document(rich_host()))
    assert b"inf" not in document.replace(b"info", b"")
    paths = json.loads(document)["paths"]
    unknown = [one for path in paths for one in path["ceilings"] if one["known"] == "unknown"]
    assert unknown
    for one in unknown:
        assert set(one["sustained"].values()) == {None}
        assert one["why"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (12_421.4, "12,421"), (81.25, "81.2"), (3.0, "3"), (0.125, "0.125")]
)
def test_numbers(value: float | None, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2842, "47 min"), (30, "30 s"), (5400, "1 h 30 min"), (7200, "2 h"), (1800, "30 min")]
)
def test_times(seconds: float, text: str) -> None:
    assert format_minutes(seconds) == text


@pytest.mark.captured
@pytest.mark.parametrize("name", [*(f"hwloc/{one}" for one in HWLOC_HOSTS), *(f"pepc/{one}" for one in PEPC_HOSTS)])
@pytest.mark.parametrize("width", [80, 160])
def test_captured_hosts(name: str, width: int) -> None:
    found = limits_of(scan(host(name)))
    lines = limits_text(found, width=width, color=False).split("\n")
    assert lines_too_wide("\n".join(lines), width) == []
    assert "None" not in "\n".join(lines)
    assert json.loads(encode_document(limits_document(found)))["paths"] is not None
