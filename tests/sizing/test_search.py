"""What carries a demand: machines and volumes, drives and links; what binds, and what falls short."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.limits import cloud_disks
from advisor.limits.declared import Declared, DeclaredVolume, parse_declared
from advisor.limits.machine_file import parse_machines
from advisor.limits.machines import find_machine
from advisor.report.limits import size_text
from advisor.sizing import metal
from advisor.sizing.cloud import parse_prices
from advisor.sizing.records import Choice, Cloud, Demand, Sizing, carried, parse_demand, purchases
from advisor.sizing.search import CLOUDS, SizeQuestion, answer, parse_layouts
from tests.cases import read_cases
from tests.known import known
from tests.limits.test_machines import ec2_type

DATA = read_cases(__file__)

PRICES = DATA["PRICES"]


def sized(*clouds: Cloud, limit: int = 10_000, **asked: Any) -> Sizing:
    names = ("read", "write", "iops", "latency", "capacity")
    demand = parse_demand(**{name: asked.pop(name) for name in names if name in asked})
    return answer(SizeQuestion(demand, clouds=clouds or CLOUDS, limit=limit, **asked))


find_cached = functools.cache(find_machine)


def kinds(found: Sizing) -> set[str]:
    return {one.kind for choice in found.choices for one in choice.volumes}


def one_of(found: Sizing, instance: str, kind: str) -> Choice:
    return next(one for one in found.choices if one.instance == instance and one.volumes[0].kind == kind)


def test_the_article_s_comparison() -> None:
    """S002: io2 Block Express against 16 × gp3, on r5b.24xlarge of 7,500 MB/s and 260,000 IOPS."""
    asked: dict[str, Any] = {"iops": "256000", "read": "2.8GB/s", "write": "1.2GB/s"}
    found = sized("aws", instances=("r5b.24xlarge",), layouts=parse_layouts("io2,gp3x16"), **asked)
    express, striped = one_of(found, "r5b.24xlarge", "io2"), one_of(found, "r5b.24xlarge", "gp3")
    assert (express.volumes[0].count, express.volumes[0].iops, express.volumes[0].mib_s) == (1, 256_000, 4000)
    assert (striped.volumes[0].count, striped.volumes[0].iops, striped.volumes[0].layout) == (16, 16_000, "striped")
    for one in (express, striped):
        machine = one.parts[0]
        assert (machine.what, machine.mb_s, machine.iops) == ("r5b.24xlarge", 7500, 260_000)
        assert machine.headroom == pytest.approx(1 - 256 / 260)


def test_volumes_that_are_bought_already_and_what_of_them_is_unusable() -> None:
    volume = '[[volume]]\ndevice="nvme{}n1"\ntype="gp3"\ngib=500\niops=16000\nthroughput-mib-per-s=1000\n'
    bought = parse_declared("".join(volume.format(at) for at in range(21)).encode(), "v.toml")
    found = sized(iops="200k", declared=bought, instances=("r5b.24xlarge",))
    (one,) = found.choices
    assert one.unusable == pytest.approx(1 - 7500 / (21 * 1048.576))
    assert one.binds == "r5b.24xlarge"
    assert "66 % of what these volumes promise cannot pass this instance" in flat(found)


def test_gp3_of_today_needs_fewer_volumes() -> None:
    found = sized("aws", iops="256000", instances=("r5b.24xlarge",))
    assert one_of(found, "r5b.24xlarge", "gp3").volumes[0].count == 4


def test_every_choice_carries_what_is_asked() -> None:
    found = sized("aws", "azure", read="1.5GB/s", write="500MB/s", iops="60k")
    assert found.choices
    for one in found.choices:
        assert (known(one.read_mb_s), known(one.write_mb_s)) >= (1499.9, 499.9)
        assert known(one.iops) >= 60_000
        assert 0 <= one.headroom <= 1
        assert one.headroom == min(part.headroom for part in one.parts)
        machine = known(find_cached(one.cloud, str(one.instance)))
        limits = known(machine.volumes).for_kinds({volume.kind for volume in one.volumes})
        assert limits.mb_per_s is None or limits.mb_per_s >= 2000
        assert limits.iops is None or limits.iops >= 60_000


def test_a_machine_of_which_a_figure_is_unknown_says_so_and_comes_last() -> None:
    found = sized("aws", read="1GB/s", iops="20k")
    flags = [bool(one.unknown) for one in found.choices]
    assert flags == sorted(flags)
    assert found.undecided == sum(flags)
    assert 0 < found.undecided < found.found
    newer = next(one for one in found.choices if one.instance == "r8g.48xlarge")
    assert newer.unknown == ("what r8g.48xlarge carries for longer than its maximum", "IOPS of r8g.48xlarge")
    assert f"{found.found - found.undecided} choices carry it" in flat(found)
    assert f"{found.undecided} may: something of them is unknown." in flat(found)


def test_where_nothing_is_certain_no_choice_is_said_to_carry_it() -> None:
    """More than the 12,500 MB/s that types with known IOPS carry."""
    found = sized("aws", read="10GB/s", write="3GB/s", iops="200k", latency="1ms")
    assert found.undecided == found.found > 0
    assert "No choice is known to carry it" in flat(found)


def test_a_file_of_the_provider_decides() -> None:
    types = parse_machines(json.dumps([ec2_type()]).encode(), "types.json", "2026-11-20")
    few = sized("aws", iops="3000", instances=("m7i.large",), given=types)
    assert few.choices
    assert not any(one.unknown for one in few.choices)
    assert sized("aws", iops="4000", instances=("m7i.large",), given=types).choices == ()


@pytest.mark.parametrize(("latency", "wanted"), DATA["only_what_is_documented_fits_a_latency"])
def test_only_what_is_documented_fits_a_latency(latency: str, wanted: set[str]) -> None:
    found = sized("aws", "azure", iops="4000", latency=latency)
    assert {kind.partition(" ")[0] for kind in kinds(found)} == wanted
    left_out = {one.kind for one in found.excluded}
    assert not left_out & wanted
    assert ("gp3" in left_out) is ("gp3" not in wanted)
    assert all(one.source for one in found.excluded)


def test_what_no_machine_or_volume_has() -> None:
    found = sized("aws", iops="4000", latency="0.1ms")
    assert found.choices == ()
    (short,) = found.short
    assert (short.quantity, short.asked, short.most) == ("latency_ms", 0.1, 0.5)
    assert short.by == pytest.approx(0.4)
    for cloud in ("aws", "azure"):
        (short,) = sized(cloud, read="90GB/s").short
        assert short.by == pytest.approx(90_000 - short.most)
        assert short.most > 5000
    # m5.large: 593.75 MB/s at most, 81.25 for ever.
    assert sized("aws", read="500MB/s", instances=("m5.large",)).choices == ()
    assert sized("aws", read="80MB/s", instances=("m5.large",)).choices


def test_what_falls_short_and_by_how_much() -> None:
    found = sized("aws", read="5GB/s", write="5GB/s", iops="300k", instances=("r5b.24xlarge",))
    assert [(one.quantity, one.asked, one.most, one.by) for one in found.short] == [
        ("mb_s", 10_000, 7500, 2500),
        ("iops", 300_000, 260_000, 40_000),
    ]
    text = flat(found)
    assert "No choice carries it." in text
    assert "AWS: 10,000 MB/s asked for, 7,500 at most: 2,500 MB/s short; r5b.24xlarge" in text


def test_figures_that_no_one_machine_has_together() -> None:
    """Each is carried by some machine of the file, both by none."""
    figures = {"a.large": (9000, 100), "b.large": (100, 90_000)}
    types = [
        ec2_type(
            InstanceType=name, EbsInfo={"EbsOptimizedInfo": {"BaselineThroughputInMBps": mb_s, "BaselineIops": iops}}
        )
        for name, (mb_s, iops) in figures.items()
    ]
    given = parse_machines(json.dumps(types).encode(), "t", "2026-11-20")
    found = sized("aws", read="8GB/s", iops="80k", given=given, instances=("a.large", "b.large"))
    assert found.choices == ()
    assert len(found.short) == 1


def test_which_sizes_take_which_disks() -> None:
    found = sized("azure", iops="2000")
    premium = {one.instance for one in found.choices if one.volumes[0].kind.startswith("Premium")}
    assert "Standard_D8s_v5" in premium
    assert not {name for name in premium if name and name.startswith(("Basic_", "Standard_A"))}
    assert "Standard_D8_v5" not in premium
    found = sized("azure", iops="2000", layouts=parse_layouts("Premium_LRSx9"))
    assert found.choices
    for one in found.choices:
        machine = known(find_cached("azure", str(one.instance)))
        assert (machine.most_disks or 0) >= 9
    found = sized("aws", iops="1000")
    mine = {one.instance for one in found.choices if one.volumes[0].kind == "io2"}
    assert "r4.large" not in mine
    assert "r5.large" in mine
    assert any(one.instance == "r4.large" for one in found.choices)


def test_drives_by_level_and_links() -> None:
    found = sized("metal", read="20GB/s", write="5GB/s")
    by_level = {one.volumes[0].layout: one for one in found.choices if one.volumes[0].kind.startswith("Intel")}
    # Each divides its time: 20 / 3.2 + 5 / 1.3 drives' worth.
    assert by_level["raid0"].volumes[0].count == 11
    assert by_level["raid10"].volumes[0].count == 14
    # Reads over all drives, writes over two fewer: 20 / (11 × 3.2) + 5 / (9 × 1.3) of the time.
    assert by_level["raid6"].volumes[0].count == 11
    (links,) = by_level["raid0"].links
    assert links.count * links.mb_s >= 20_000
    assert {one.binds for one in found.choices} <= {part.what for one in found.choices for part in one.parts}


def test_drives_of_a_file_and_what_of_them_cannot_pass_the_links() -> None:
    said = parse_declared(
        b'[[volume]]\ndevice="x"\ntype="drive"\nread-mb-per-s=7000\nwrite-mb-per-s=4000\nread-iops=1000000\n'
        b"write-iops=200000\n",
        "d.toml",
    )
    found = sized("metal", read="7GB/s", iops="100k", declared=said)
    raid0 = next(one for one in found.choices if one.volumes[0].layout == "raid0")
    assert raid0.unknown == ()
    assert (raid0.volumes[0].kind, raid0.volumes[0].count) == ("x", 1)
    assert raid0.volumes[0].source == "as declared in d.toml"


def test_figures_of_drives_that_levels_take_or_nobody_knows() -> None:
    said = parse_declared(b'[[volume]]\ndevice="x"\ntype="drive"\nread-iops=1000\nwrite-iops=1000\n', "d.toml")
    found = sized("metal", iops="6000", declared=said)
    counts = {one.volumes[0].layout: one.volumes[0].count for one in found.choices}
    assert counts == {"raid0": 6, "raid10": 12, "raid5": 24, "raid6": 36, "raid6 of 18 in each of 2 servers": 36}
    # What is not known of a drive carries nothing.
    found = sized("metal", read="1GB/s", iops="10k")
    assert found.choices == ()
    assert {one.kind: one.why.partition(";")[0] for one in found.excluded} == {
        "Intel P4600 1.6 TB": "not known of it: IOPS",
        "SATA 7,200 rpm": "not known of it: MB/s",
    }


def test_the_article_s_cluster_takes_several_servers_and_a_capacity_that_nobody_asked_for_is_said() -> None:
    found = sized("metal", read="132GB/s", capacity="190TiB")
    (raid6,) = (one for one in found.choices if one.volumes[0].layout.startswith("raid6"))
    (drives,), (links,) = raid6.volumes, raid6.links
    assert (drives.kind, drives.layout) == ("Intel P4600 1.6 TB", "raid6 of 24 in each of 6 servers")
    assert drives.count * 22 / 24 * known(drives.gib) >= 190 * 1024
    assert links.count * links.mb_s >= 132_000
    assert not any("capacity" in note for note in found.notes)
    assert any("capacity" in note for note in sized("metal", read="1GB/s").notes)


def test_by_price_and_those_without_one_last() -> None:
    prices = parse_prices(PRICES, "p.toml")
    found = sized("aws", iops="60k", prices=prices, prices_where="p.toml")
    amounts = [one.price.amount for one in found.choices if one.price]
    assert len(amounts) == 4
    assert amounts == sorted(amounts)
    assert [one.price is None for one in found.choices] == sorted(one.price is None for one in found.choices)
    first = found.choices[0]
    assert (first.instance, first.volumes[0].kind) == ("r5b.16xlarge", "gp3")
    (volume,) = found.choices[0].volumes
    beyond = volume.count * (
        (known(volume.iops) - 3000) * 0.01 + (volume.gib or 0) * 0.1 + ((volume.mib_s or 0) - 125) * 0.05
    )
    assert known(first.price).amount == pytest.approx(5 * 730 + beyond, abs=0.01)
    # What comes with each volume is free: more of them are cheaper than few.
    assert volume.count == 16
    unpriced = found.choices[-1]
    assert unpriced.price is None
    assert unpriced.price_lacks == (unpriced.instance,)
    assert "by the prices in p.toml of 2026-11-01, in EUR" in flat(found)


def test_steps_of_a_price() -> None:
    prices = parse_prices(PRICES, "p.toml")
    found = sized("aws", iops="40k", prices=prices, layouts=parse_layouts("io2x1"), instances=("r5b.16xlarge",))
    (one,) = found.choices
    assert known(one.price).amount == pytest.approx(5 * 730 + 40 * 0.2 + 32_000 * 0.07 + 8000 * 0.05, abs=0.01)


def test_a_limit_is_of_each_cloud() -> None:
    found = sized(read="1GB/s", limit=2)
    assert [one.cloud for one in found.choices] == ["aws", "aws", "azure", "azure", "metal", "metal"]
    assert found.found > 6


@pytest.mark.parametrize(("given_text", "words"), DATA["a_layout_that_is_none"])
def test_a_layout_that_is_none(given_text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_layouts(given_text)


def test_layouts_and_machines_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"--instance m99z\.large: it is in no table"):
        sized(iops="1000", instances=("m99z.large",))
    with pytest.raises(UsageError, match="--layout io2 contradicts --cloud metal"):
        sized("metal", read="1GB/s", layouts=parse_layouts("io2"))
    one = DeclaredVolume("drive", read_mb_per_s=3200.0, write_mb_per_s=1300.0)
    every = Declared(tuple(msgspec.structs.replace(one, device=f"nvme{n}n1") for n in range(24)))
    assert len(metal.drives_of(every)) == 1


@given(
    st.sampled_from(["gp3", "io2", "Premium_LRS", "StandardSSD_LRS", "PremiumV2_LRS", "UltraSSD_LRS"]),
    st.floats(1, 20_000),
    st.floats(1, 500_000),
    st.integers(0, 2**44),
)
@settings(max_examples=100, deadline=None)
def test_what_is_bought_carries_the_demand_and_is_for_sale(kind: str, mb_s: float, iops: float, size: int) -> None:
    demand = Demand(read_mb_s=mb_s, iops=iops, capacity_bytes=size)
    for one in purchases(kind, demand):
        total_mb, total_iops = carried(one)
        assert total_mb >= mb_s - 1e-6
        assert total_iops >= iops - 1e-6
        assert one.count * (one.gib or 0) >= size / 2**30 - 1e-6
        if kind in cloud_disks.MOST_IOPS:
            text = f"[[volume]]\ndevice='a'\ntype='{kind}'\ngib={one.gib}\niops={int(one.iops or 0)}\n"
            if kind == "gp3":
                text += f"throughput-mib-per-s={one.mib_s}\n"
            assert parse_declared(text.encode(), "v").volume[0].gib == one.gib


@given(st.floats(1, 50_000), st.floats(0, 50_000))
@settings(max_examples=50, deadline=None)
def test_one_drive_fewer_would_not_do(read: float, write: float) -> None:
    demand = Demand(read_mb_s=read, write_mb_s=write or None)
    for one in metal.choices(demand, Declared(), (("raid0", None),)):
        (drives,) = one.volumes
        if drives.kind.startswith("Intel"):
            needed = read / 3200 + write / 1300
            shared = re.search(r"each of (\d+) servers", drives.layout)
            servers = int(shared[1]) if shared else 1
            assert drives.count - servers < needed * 1.000001
            assert drives.count >= needed * 0.999999


def flat(found: Sizing) -> str:
    text = size_text(found, width=80, color=False)
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split())
