"""RAID, headers, volume types and the table of instance types: each figure against its source."""

from __future__ import annotations

import csv
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.block import family_of
from advisor.limits.cloud_disks import EbsVolume, carried
from advisor.limits.figures import QUANTITIES, Figures, combined
from advisor.limits.links import tcp_efficiency
from advisor.limits.machines import find_instance, table_directory
from tests.cases import read_cases
from tests.known import known

DATA = read_cases(__file__)

ONE = Figures(100, 50, 1000, 600)


@pytest.mark.parametrize(("level", "count", "expected"), DATA["levels"])
def test_levels(level: str, count: int, expected: tuple[float, ...]) -> None:
    """Small writes cost N over 1, 2, 4 and 6: raid5 of four drives writes as one drive does."""
    found = combined(level, [ONE] * count)
    assert tuple(found.of(quantity) for quantity in QUANTITIES) == expected


def test_paths_and_members_of_an_array() -> None:
    assert combined("multipath", [ONE] * 4, one_medium=True) == ONE
    found = combined("raid10", [ONE] * 3, missing=1)
    assert (found.read_mb_per_s, found.write_mb_per_s) == (300, 100)


@pytest.mark.parametrize(("level", "family"), DATA["families"])
def test_families(level: str | None, family: str | None) -> None:
    assert family_of(level) == family


@given(
    st.sampled_from(["raid0", "raid1", "raid10", "raid4", "raid5", "raid6", "linear", "multipath"]),
    st.lists(st.tuples(*[st.one_of(st.floats(1, 1e6), st.just(math.inf))] * 4), min_size=1, max_size=24),
    st.integers(0, 3),
)
def test_no_array_is_more_than_the_sum_of_its_members_allows(
    level: str, members: list[tuple[float, ...]], missing: int
) -> None:
    figures = [Figures(*one) for one in members]
    found = combined(level, figures, missing=missing)
    for quantity in QUANTITIES:
        assert not math.isnan(found.of(quantity))
        assert found.of(quantity) > 0
        if not missing:
            assert found.of(quantity) <= sum(one.of(quantity) for one in figures) * 1.000001


@pytest.mark.parametrize(
    ("mtu", "timestamps", "ipv6", "expected"),
    [
        (1500, True, False, 1448 / 1538),
        (9000, True, False, 8948 / 9038),
        (1500, False, False, 1460 / 1538),
        (1500, True, True, 1428 / 1538),
        (40, True, False, 0),
    ],
)
def test_what_headers_leave(mtu: int, timestamps: bool, ipv6: bool, expected: float) -> None:
    assert tcp_efficiency(mtu, timestamps=timestamps, ipv6=ipv6) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("volume", "iops", "mib", "expected"),
    [
        (EbsVolume("gp2", 5), None, None, (25, 100, 128, 3000)),
        (EbsVolume("gp2", 334), None, None, (250, 1002, 250, 3000)),
        (EbsVolume("gp2", 5334), None, None, (250, 16000, None, None)),
        (EbsVolume("gp3", 100), None, None, (125, 3000, None, None)),
        (EbsVolume("gp3", 1000), 16000, 1000.0, (1000, 16000, None, None)),
        (EbsVolume("io1", 1000), 1000, None, (250, 1000, None, None)),
        (EbsVolume("io1", 1000), 32000, None, (500, 32000, None, None)),
        (EbsVolume("io1", 2000), 64000, None, (1000, 64000, None, None)),
        (EbsVolume("io2", 1000), 256000, None, (4000, 256000, None, None)),
        (EbsVolume("io2", 1000), 1000, None, (256, 1000, None, None)),
        (EbsVolume("st1", 1024), None, None, (40, 40, 250, 250)),
        (EbsVolume("st1", 16384), None, None, (500, 500, None, None)),
        (EbsVolume("sc1", 2048), None, None, (24, 24, 160, 160)),
    ],
)
def test_volume_types(
    volume: EbsVolume, iops: int | None, mib: float | None, expected: tuple[float | None, ...]
) -> None:
    """The tables of the Amazon EBS user guide."""
    found = known(carried(volume, iops, mib))
    assert (found.mib_per_s, found.iops, found.burst_mib_per_s, found.burst_iops) == pytest.approx(expected)


def test_provisioned_iops_that_nobody_told_are_not_guessed() -> None:
    assert carried(EbsVolume("io1", 100)) is None
    assert carried(EbsVolume("io2", 100)) is None


@pytest.mark.parametrize(
    ("name", "base", "most", "iops"),
    [("r5b.24xlarge", 7500, 7500, 260_000), ("m5.large", 81.25, 593.75, 18_750), ("t3.large", 86.88, 347.5, 15_700)],
)
def test_rows_of_the_table(name: str, base: float, most: float, iops: int) -> None:
    found = known(find_instance(name))
    assert (found.base_mb_per_s, found.max_mb_per_s, found.max_iops) == (base, most, iops)
    assert found.bursts is (base != most)


def test_every_row_of_the_table_can_be_read_and_agrees_with_itself() -> None:
    lines = (table_directory() / "ec2-ebs-limits.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(rows) == len({row["type"] for row in rows}) == 625
    for row in rows:
        found = known(find_instance(row["type"]))
        assert found.base_mb_per_s == pytest.approx(found.base_mbps / 8, abs=0.1)
        assert found.max_mb_per_s == pytest.approx(found.max_mbps / 8, abs=0.1)
        assert (found.base_mbps, found.base_iops) <= (found.max_mbps, found.max_iops)


@pytest.mark.parametrize(
    "name", ["", "type", "r5b", "r5b.24xlarge,1", "m9z.large", "# What EC2", "t2.large", "\n", "é.x"]
)
def test_what_is_not_in_the_table_is_unknown(name: str) -> None:
    assert find_instance(name) is None
