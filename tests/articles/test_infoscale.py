"""The figures of the InfoScale articles (S000, the German copy; S001, the Japanese white paper), recomputed: rows
"000/001,…" and "001,…" of seed_facts.csv. Those that no computation can give are listed in docs/systems/infoscale.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from advisor.facts.settings.sysctl import parse_sysctl_file
from advisor.host.steps import RunCommand
from advisor.limits.cloud_disks import EbsVolume, bucket_of, lasts_seconds
from advisor.limits.machines import find_instance
from advisor.planning.guards import LLT_PACKET_BYTES, LLT_SHARE
from advisor.profiles.profile import load
from advisor.proof.workloads import WORKLOADS
from advisor.recommend.infoscale import PARTS
from advisor.rules import sources
from advisor.rules.clusters.infoscale import MIRRORED_IOPS_SHARE, MIRRORING_CPU_PERCENT, profile_of
from advisor.rules.judged import judge
from advisor.rules.network.buffers import LLT_WINDOW_BYTES, WHITE_PAPER_BYTES, below_profile
from advisor.rules.network.mtu import LLT_UDP_MTU, fragments
from advisor.rules.queries import largest_mtu
from advisor.tunables import parse_tunable
from tests.cases import read_cases
from tests.recommend.test_infoscale import FSS_TCP, NARROW, OPEN, of
from tests.report import plans
from tests.rules.build import facts, link, on_cloud

USUAL_DEFAULT: Final = 212_992
PAPER_LOCAL_IOPS: Final = 2000
"""A single node, and a shared disk: 4 KiB random, half reads (about, from a chart)."""
DATA = read_cases(__file__, FSS_TCP=FSS_TCP, OPEN=OPEN)

SYSCTL_BLOCK: Final = DATA["SYSCTL_BLOCK"]


def test_s000_s001_env() -> None:
    """Row "000/001,env": a gp2 volume of 5 GiB has a base of 100 IOPS, and t2 is in no table of EBS-optimised types."""
    bucket = bucket_of(EbsVolume("gp2", 5))
    assert bucket is not None
    assert lasts_seconds(bucket, 100) is None
    assert lasts_seconds(bucket, 101) is not None
    assert find_instance("t2.large") is None
    assert find_instance("m5.large") is not None


def test_s000_s001_patterns() -> None:
    """Row "000/001,patterns": nine, 4 KiB random and sequential and 64 KiB sequential, each 100, 50 and 0 % reads."""
    nine = {
        name: one for name, one in WORKLOADS.items() if name.startswith("infoscale.") and not name.endswith("-qd16")
    }
    assert len(nine) == 9
    sections = [one.sections[0] for one in nine.values()]
    shapes = sorted({(one.block_bytes, one.pattern.startswith("rand")) for one in sections})
    assert shapes == [(4096, False), (4096, True), (65536, False)]
    for shape in shapes:
        mixes = [one.write_share for one in sections if (one.block_bytes, one.pattern.startswith("rand")) == shape]
        assert sorted(mixes) == [0.0, 0.5, 1.0]


def test_s000_s001_result_4k_random() -> None:
    """Row "000/001,result 4K 50:50 random": 2,000 IOPS are 8 MB/s; mirrored about half; 5.4 M credits last 47 min."""
    block = WORKLOADS["infoscale.4k-rand-rw50"].sections[0].block_bytes
    assert round(PAPER_LOCAL_IOPS * block / 1e6) == 8
    assert PAPER_LOCAL_IOPS * MIRRORED_IOPS_SHARE == 1000
    assert round(PAPER_LOCAL_IOPS * MIRRORED_IOPS_SHARE * block / 1e6) == 4
    bucket = bucket_of(EbsVolume("gp2", 5))
    assert bucket is not None
    assert round((lasts_seconds(bucket, PAPER_LOCAL_IOPS) or 0) / 60) == 47


def test_s000_s001_cpu() -> None:
    """Row "000/001,CPU": mirroring costs at most 2 % of the CPUs, and a host that mirrors is informed."""
    assert MIRRORING_CPU_PERCENT == 2
    (found,) = [one for one in judge(facts(**FSS_TCP)) if one.id == "infoscale.mirroring-cost"]
    assert (found.evidence["expected_cpu_percent"], found.evidence["expected_iops_share"]) == (2, 0.5)


@pytest.mark.parametrize(("workload", "fits"), DATA["s000_s001_rule_mtu"])
def test_s000_s001_rule_mtu(workload: str, fits: str, tmp_path: Path) -> None:
    """Row "000/001,rule MTU": batch, sequential, many writes, blocks of 8 KiB on 1500; worse for small writes."""
    assert of(tmp_path, workload, FSS_TCP, "jumbo-frames").fits == fits
    assert fragments(LLT_UDP_MTU, 1500, "udp") == 6
    assert fragments(LLT_UDP_MTU, 9000, "udp") == 1


def test_s000_s001_rule_buffers() -> None:
    """Row "000/001,rule buffers": "four times the default" is 851,968 and not 8,388,608, which is 39.4 times."""
    assert 4 * USUAL_DEFAULT == LLT_WINDOW_BYTES == 851_968
    assert round(WHITE_PAPER_BYTES / USUAL_DEFAULT, 1) == 39.4
    for name in ("infoscale-fss-udp", "infoscale-fss-zones"):
        assert load(name).parameters["bytes"].default == LLT_WINDOW_BYTES
        assert "socket-memory" in load(name).guards


def test_s000_s001_rule_llt(tmp_path: Path) -> None:
    """Row "000/001,rule LLT": twice the mark, at once; the queue must not exceed memory (ours: 5 % of it)."""
    plan = plans.make(tmp_path, "llt-highwater-doubled", facts=facts(**OPEN))
    assert {(one.tunable, one.before, one.after) for one in plan.changes} == {
        ("llt:highwater", "1000", "2000"),
        ("llt:rporthighwater", "1000", "2000"),
    }
    assert {one.takes_effect for one in plan.changes} == {"now"}
    assert 2000 * LLT_PACKET_BYTES / 2**20 == 15.625
    assert (LLT_SHARE, "llt-memory" in load("infoscale-fss-zones").guards) == (0.05, True)


@pytest.mark.parametrize(("workload", "parts", "best"), DATA["s000_s001_best_per_case"])
def test_s000_s001_best_per_case(workload: str, parts: dict[str, Any], best: str, tmp_path: Path) -> None:
    """Row "000/001,best per case": TCP in one zone the MTU, UDP in one zone the buffers, across zones LLT's marks."""
    made = of(tmp_path, workload, parts, best)
    assert made.fits == "yes"
    tuning = {"fss-tcp": "jumbo-frames", "fss-udp": "socket-buffers-8m", "fss-cross-zone": "llt-highwater-doubled"}
    assert tuning[workload] in load(best).inherits
    assert of(tmp_path / "alone", workload, parts, tuning[workload]).fits == "yes"


def test_s001_sysctl_block(tmp_path: Path) -> None:
    """Row "001,sysctl block": quoted triples are refused, nothing needs a reboot, 131,072 is not lowered to 87,380."""
    lines = parse_sysctl_file(SYSCTL_BLOCK, "/etc/sysctl.conf", at_boot=True)
    assert [line.key for line in lines if line.rejected] == ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]
    plan = plans.make(tmp_path, "socket-buffers-8m")
    after = {one.tunable: one.after for one in plan.changes}
    assert {one.takes_effect for one in plan.changes} <= {"now", "new-sockets"}
    assert after["sysctl:net.ipv4.tcp_rmem"] == "4096 131072 8388608"
    assert after["sysctl:net.core.rmem_default"] == "8388608"
    assert not any('"' in value for value in after.values())
    assert {line.key for line in lines} == {
        one.tunable.removeprefix("sysctl:") for one in load("socket-buffers-8m").tunables
    }


def test_s001_llt_set(tmp_path: Path) -> None:
    """Row "001,LLT set": lltconfig -F highwater:2000 and rporthighwater:2000, kept by set-flow in /etc/llttab."""
    plan = plans.make(tmp_path, "llt-highwater-doubled", facts=facts(**OPEN))
    steps = {step for one in plan.changes for step in one.steps}
    assert steps == {RunCommand(("lltconfig", "-F", f"{name}:2000")) for name in ("highwater", "rporthighwater")}
    (file,) = plan.files
    assert file.path == "/etc/llttab"
    assert (file.after or b"").endswith(b"set-flow highwater:2000\nset-flow rporthighwater:2000\n")


def test_s001_ifconfig(tmp_path: Path) -> None:
    """Row "001,ifconfig": eth1 at 9000, kept over a reboot; 9001 is the most on AWS."""
    plan = plans.make(
        tmp_path, "infoscale-fss-tcp", files=plans.tree_files(eth1=1500), facts=facts(**{**FSS_TCP, "links": NARROW})
    )
    (change,) = plan.changes
    assert (change.tunable, change.before, change.after) == ("link:eth1:mtu", "1500", "9000")
    assert change.persist is not None
    assert largest_mtu(facts(host=on_cloud("aws", "t2.large")), link("eth1", mtu_max=9216)) == 9001
    assert parse_tunable("link:eth1:mtu").risk == "link"


def test_s000_s001_cloud_choice() -> None:
    """Row "000/001,cloud choice": in one zone shared disks, without tuning; across zones mirrors, with LLT's marks."""
    assert PARTS["shared-disk"] == ()
    assert "llt-highwater-doubled" in PARTS["fss-zones"]
    assert "Inside one zone the paper prefers it" in load(profile_of("shared-disk")).helps_when
    (found,) = [one for one in judge(facts(**FSS_TCP)) if one.id == "infoscale.mirroring-cost"]
    assert sources.WHITE_PAPER in found.sources


def test_s000_s001_buffer_ref() -> None:
    """Row "000/001,buffer ref": the guide that the paper links to advises to keep the defaults, and is cited so."""
    assert sources.KEEP_DEFAULTS in below_profile.sources
    assert "do not adjust defaults" in sources.KEEP_DEFAULTS
    assert any("keep the defaults" in source for source in load("socket-buffers-8m").sources)
