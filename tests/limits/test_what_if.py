"""``--what-if``: what each change does to the ceilings, and what is refused with its field."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import scan
from advisor.limits.declared import Declared, DeclaredVolume, parse_declared
from advisor.limits.links import PciAndNetwork, PciHop, read_pci_and_network
from advisor.limits.records import Limits, WhatIf
from advisor.limits.storage_use import Front, front_of, read_front
from advisor.limits.what_if import Scene, limits_of_scene, parse_changes, with_what_if
from advisor.report.limits import limits_text
from tests import beegfs_server
from tests.cli.inside import call_inside
from tests.known import known
from tests.limits.hosts import EBS, array, disk, facts, link, mounted
from tests.limits.test_host_ceiling import drives, near, stage
from tests.schemas import judge

ROOT = Path(__file__).parents[2]


def article() -> Scene:
    host = beegfs_server.behind_switches(beegfs_server.tree()).host()
    whole = scan(host)
    declared = parse_declared(beegfs_server.volumes().encode(), "v.toml")
    return Scene(whole, read_pci_and_network(host, whole), declared, read_front(host, whole))


def iris(instance: str = "r5b.24xlarge", count: int = 16) -> Scene:
    """S002, test 2: WIJ over five gp3, the database over sixteen."""
    names = [f"nvme{n}n1" for n in range(1, count + 6)]
    volumes = [DeclaredVolume("gp3", device=name, gib=1000, iops=16_000, throughput_mb_per_s=1000.0) for name in names]
    host = facts(
        [disk(name, model=EBS) for name in names],
        [array("wij", "striped", names[:5], manager="lvm"), array("db", "striped", names[5:], manager="lvm")],
        filesystems=[mounted("wij", "/wij"), mounted("db", "/db")],
        instance_type=instance,
        virtualization="amazon",
    )
    return Scene(host, PciAndNetwork(), Declared(tuple(volumes)), front_of(host))


def metal(level: str = "raid6", count: int = 8) -> Scene:
    names = [f"sd{letter}" for letter in "abcdefghijklmnop"[:count]]
    host = facts(
        [disk(name, kind="scsi") for name in names],
        [array("md0", level, names, size_bytes=(count - 2) * 1_600_000_000_000)],
        [link(f"eth{n}", pci=f"0000:0{n}:00.0") for n in range(2)],
        filesystems=[mounted("md0", "/data")],
    )
    hops = dict.fromkeys(names, (PciHop("0000:05:00.0", 64_000),))
    return Scene(host, PciAndNetwork(hops=hops), drives(*names, read=200, write=100), front_of(host))


def ask(scene: Scene, *texts: str) -> tuple[Limits, WhatIf]:
    found = with_what_if(limits_of_scene(scene), scene, parse_changes(texts))
    return found, known(found.what_if)


def test_raid_10_for_raid_6() -> None:
    local = msgspec.structs.replace(metal(), front=Front("local", "here"))
    limits, after = ask(local, "raid=raid10")
    assert (known(limits.host).read_mb_s, known(limits.host).write_mb_s) == (near(1600), near(600))
    assert (after.host.read_mb_s, after.host.write_mb_s) == (near(1600), near(400))
    (path,) = after.paths
    assert (known(path.after).usable_bytes or 0) / (known(path.before).usable_bytes or 1) == near(4 / 6, rel=1e-6)
    assert after.given == ("raid=raid10: in place of md0 (raid6)",)


def test_changes_that_change_nothing_known() -> None:
    limits, after = ask(metal(), "raid=raid0")
    assert not after.changes_ceiling
    assert known(after.host.binds).stage == "network"
    text = " ".join(limits_text(limits, width=80, color=False).split())
    assert "The ceiling of the host does not change. 235 MB/s, bound by links (eth0, eth1)" in text
    blind = msgspec.structs.replace(metal(), declared=Declared(), front=Front("local", "here"), context=PciAndNetwork())
    limits, after = ask(blind, "raid=raid10")
    assert not after.changes_ceiling
    assert "unknown before and after" in " ".join(limits_text(limits, width=80, color=False).split())


WIRE = 125 * 1448 / 1538

# What holds after the change: of the host, of a stage (network, media, pcie), or of the one path that changes.
# fmt: off
CHANGES: list[tuple[Callable[[], Scene], str, dict[str, object]]] = [
    (metal, "mtu=9000", {"read_mb_s": near(2 * 125 * 8948 / 9038)}),
    *((metal, text, {"network.read_mb_s": near(links * WIRE)}) for text, links in (
        ("links=+1", 3), ("links=-1", 1), ("links=4", 4), ("links=+1:10Gbit/s", 12), ("eth0:links=3", 4),
        ("speed=25Gbit/s", 50), ("eth1:speed=10G", 11))),
    (article, "links=+1", {"read_mb_s": near(31_504), "write_mb_s": near(31_200), "binds": "pcie"}),
    # S002, test 1: io2 Block Express volumes.
    (iris, "/db:volumes=1xio2:100000iops /wij:volumes=1xio2:256000iops",
     {"media.read_iops": near(356_000), "media.read_mb_s": near(2 * 4000 * 1.048576), "paths": {"/db", "/wij"}}),
    (iris, "/wij:volumes=5xgp3:500MB/s:8000iops",
     {"paths": {"/wij"}, "path.read_mb_s": near(2500), "path.read_iops": near(40_000)}),
    (article, "volumes=24xdrive:6800/4000MB/s", {"media.read_mb_s": near(24 * 6800), "pcie.read_mb_s": near(31_504)}),
    (iris, "volumes=4xgp3:1000MB/s:16000iops", {"media.read_mb_s": near(4000)}),
    (iris, "volumes=2xgp3:1000MB/s:16000iops+3xgp3:1000MB/s:16000iops",
     {"media.read_mb_s": near(5000), "paths": {"/db", "/wij"}}),
    (iris, "/db:stripes=4", {"paths": {"/db"}, "path.read_mb_s": near(4000)}),
    (iris, "instance=r5b.8xlarge",
     {"read_mb_s": near(2500), "given": ("instance=r5b.8xlarge: in place of r5b.24xlarge",)}),
    (iris, "instance=r5b.8xlarge,/db:volumes=8xgp3:1000MB/s:16000iops /db:stripes=2",
     {"media.read_mb_s": near(5000 + 2000)}),
]
# fmt: on


@pytest.mark.parametrize(("scene", "text", "expected"), CHANGES, ids=[text for _, text, _ in CHANGES])
def test_what_a_change_does(scene: Callable[[], Scene], text: str, expected: dict[str, object]) -> None:
    _, after = ask(scene(), text)
    for name, value in expected.items():
        part, _, field = name.rpartition(".")
        if part == "path":
            (path,) = after.paths
            assert getattr(known(path.after), field) == value, name
        elif part:
            assert getattr(stage(after.host, part), field) == value, name
        elif name == "paths":
            assert {path.name for path in after.paths} == value
        elif name == "binds":
            assert known(after.host.binds).stage == value
        else:
            assert getattr(after if name == "given" else after.host, name) == value, name


@pytest.mark.parametrize(
    ("scene", "text", "field", "possible"),
    [
        (metal, "raid=raid7", "field raid: raid7", "raid10"),
        (metal, "nonsense", "field nonsense: not one of", "raid10"),
        (metal, "raids=raid10", "is raid meant", "raid10"),
        (metal, "raid=", "field raid: it has no value", "raid=raid10"),
        (metal, "/nowhere:raid=raid10", "field /nowhere: no data path", "/data"),
        (metal, "stripes=8", "field stripes: no striped or linear volume", ""),
        (metal, "mtu=12", "field mtu: 12", "mtu=9000"),
        (metal, "eth9:mtu=9000", "field eth9: no link", "eth0"),
        (metal, "links=-2", "field links: 0 links", "there are 2"),
        (metal, "links=many", "field links: many", "links=+1"),
        (metal, "speed=fast", "field speed: fast", "speed=100Gbit/s"),
        (metal, "instance=r5b.huge", "field instance: r5b.huge is not in the tables", "r5b"),
        (metal, "eth0:instance=r5b.large", "field eth0", "instance="),
        (iris, "stripes=40", "lies on 5 devices", "1 to 5"),
        (iris, "volumes=3xgp9", "type gp9", "gp3"),
        (iris, "volumes=3xgp2", "needs its size", "500GiB"),
        (iris, "volumes=3xgp3:99999999iops", "field volumes.iops", "gp3"),
        (iris, "volumes=3xgp3:fast", "fast: expected IOPS", "gp3"),
        (iris, "volumes=3xgp3:16000iops:8000iops", "given twice", "gp3"),
        (iris, "volumes=3xdrive", "needs its data sheet", "3200/1300MB/s"),
        (iris, "volumes=9999xgp3", "more than 1,024", ""),
        (iris, "volumes=0xgp3", "0 volumes", ""),
        (lambda: metal("raid1", 2), "raid=raid6", "md0 has 2 members, raid6 takes 4", "raid10"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field_and_what_is_possible(
    scene: Any, text: str, field: str, possible: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        ask(scene(), text)
    assert field in refused.value.message
    assert possible in (refused.value.hint or "")


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return call_inside("limits", *words, COLUMNS=80)


def test_on_the_command_line(tmp_path: Path) -> None:
    snapshot = ROOT / "tests/fixtures/storage-host-root.tar.gz"
    done = run("--snapshot", snapshot, "--what-if", "links=+1", "mtu=9000")
    assert done.returncode == 0, done.stderr
    assert "links=+1: " in done.stdout
    assert "mtu=9000: " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    done = run("--snapshot", snapshot, "--json", "--what-if", "links=+1,mtu=9000")
    document: dict[str, Any] = judge(done.stdout, done.returncode)
    assert set(document["what_if"]) >= {"given", "host", "changes_ceiling"}
    done = run("--snapshot", snapshot, "--json", "--what-if", "colour=red")
    assert done.returncode == 2
    assert "field colour" in json.loads(done.stdout)["error"]["message"]
    done = run("--snapshot", snapshot, "links=+1")
    assert done.returncode == 2


def test_iops_that_are_not_known_are_no_gain() -> None:
    """m7i.48xlarge is in the table without IOPS: 260,000 do not become what the volumes carry."""
    _, found = ask(iris(count=24), "instance=m7i.48xlarge")
    assert found.changes_ceiling
    assert (found.host.read_iops, found.host.write_iops) == (None, None)
    assert found.host.read_iops_at_most is not None
    assert found.paths
    assert all(path.after is not None and path.after.read_iops is None for path in found.paths)
