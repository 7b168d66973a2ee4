"""``advisor fleet limits``: the article's cluster out of its hosts, clients against servers, what is not known."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from advisor.fleet.compare.summary import CaptureSource
from advisor.fleet.limits import gather_ceilings
from advisor.limits.cluster import cluster_of
from advisor.limits.declared import Declared, DeclaredVolume, parse_declared
from advisor.limits.records import HostCeiling
from advisor.limits.storage_use import Front, RemoteFilesystem
from advisor.planner import read_for_scan_and_plans
from advisor.snapshot.archive import capture_host, save_snapshot
from tests import beegfs_server
from tests.cases import read_cases
from tests.cli.inside import call_inside
from tests.limits.hosts import EBS, disk, facts, link, mounted
from tests.limits.test_host_ceiling import article, near, of, stage
from tests.schemas import judge

DATA = read_cases(__file__)


def client(gigabits: int | None = 100) -> HostCeiling:
    wire = link("ib0", kind="infiniband", speed=gigabits and gigabits * 1000)
    return of(
        facts(links=[wire]),
        front=Front("client", "beegfs /mnt", remote=(RemoteFilesystem("/mnt", "beegfs", ("ib0",)),)),
    )


@pytest.fixture(scope="module")
def six() -> tuple[tuple[str, HostCeiling], ...]:
    """Five storage servers and the one that has metadata and three storage targets."""
    storage = article()
    return (*((f"stor{n}", storage) for n in range(1, 6)), ("meta1", article("meta")))


def test_the_article_s_cluster_is_bound_by_eleven_links(six: tuple[tuple[str, HostCeiling], ...]) -> None:
    """S004: media 422 and 172 GB/s, eleven x16 cards of storage 173, eleven EDR links 136.4; 132 and 121 measured."""
    found = cluster_of(six).cluster
    media, pcie, network = (stage(found, name) for name in ("media", "pcie", "network"))
    assert (round((media.read_mb_s or 0) / 1000), round((media.write_mb_s or 0) / 1000)) == (422, 172)
    assert round((pcie.read_mb_s or 0) / 1000) == 173
    assert len(network.members) == 11
    assert found.read_mb_s == near(136_400, rel=0.003)
    assert found.binds is not None
    assert found.write_binds is not None
    assert (found.binds.stage, len(found.binds.members)) == ("network", 11)
    assert (found.binds.next_stage, round((found.binds.next_mb_s or 0) / 1000)) == ("pcie", 173)
    assert (found.write_binds.next_stage, round((found.write_binds.next_mb_s or 0) / 1000)) == ("media", 172)
    assert found.binds.lifted_mb_s == near(11 * 15_752)


def test_clients_bind_where_they_are_few(six: tuple[tuple[str, HostCeiling], ...]) -> None:
    few = cluster_of((*six, *((f"c{n}", client()) for n in range(8))))
    assert few.cluster.binds is not None
    assert (few.cluster.binds.stage, len(few.cluster.binds.members)) == ("clients", 8)
    assert few.cluster.read_mb_s == near(8 * 12_421, rel=1e-4)
    assert few.cluster.binds.next_stage == "network"
    many = cluster_of((*six, *((f"c{n}", client()) for n in range(32)))).cluster
    assert many.binds is not None
    assert many.binds.stage == "network"
    assert stage(many, "clients").read_mb_s == near(32 * 12_421, rel=1e-4)


def test_a_server_of_which_nothing_is_known_leaves_the_cluster_unknown(
    six: tuple[tuple[str, HostCeiling], ...],
) -> None:
    blind = of(
        facts([disk("nvme0n1")], links=[link("eth0", speed=None)], filesystems=[mounted("nvme0n1", "/d")]),
        front=Front("server", "serves", ("eth0",)),
    )
    found = cluster_of((*six, ("blind", blind))).cluster
    assert (found.read_mb_s, found.binds) == (None, None)
    assert any("blind" in note for note in found.notes)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return call_inside("fleet", "limits", *words, COLUMNS=80)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("captures")
    (place / "v.toml").write_text(beegfs_server.volumes())
    roles: dict[str, beegfs_server.Role] = {"stor1": "storage", "meta1": "meta"}
    for name, role in roles.items():
        host = beegfs_server.behind_switches(beegfs_server.tree(role)).host()
        save_snapshot(capture_host(host, read_for_scan_and_plans), place / f"{name}.tar.gz")
    return place


def test_captures_on_the_command_line(captures: Path) -> None:
    words = (captures / "stor1.tar.gz", captures / "meta1.tar.gz", "--volumes", captures / "v.toml")
    done = run(*words, "--measured", "read=37GB/s")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "reads 37,000 MB/s: 99 % of 37,263" in " ".join(done.stdout.split())
    done = run(*words, "--json")
    document: dict[str, Any] = judge(done.stdout, done.returncode)
    assert document["schema"] == "advisor.fleet-limits/1"
    assert document["cluster"]["binds"]["stage"] == "network"
    assert [one["name"] for one in document["hosts"]] == ["stor1", "meta1"]


def test_a_host_that_cannot_be_read_is_named_and_the_others_are_added_up(captures: Path) -> None:
    (captures / "bad.tar.gz").write_bytes(b"no archive")
    (captures / "empty").mkdir(exist_ok=True)
    done = run(captures / "stor1.tar.gz", captures / "bad.tar.gz", captures / "empty", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 4
    assert set(document["failed"]) == {"bad", "empty"}
    assert document["cluster"]["read_mb_s"] == pytest.approx(24_842, abs=1)


@pytest.mark.parametrize(("words", "message"), DATA["a_call_that_is_wrong_exits_2"])
def test_a_call_that_is_wrong_exits_2(words: tuple[str, ...], message: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def iris(name: str | None, iops: int = 60_000) -> HostCeiling:
    names = ["nvme1n1", "nvme2n1"]
    volumes = Declared(tuple(DeclaredVolume("io2", device=one, gib=1000, iops=iops) for one in names))
    systems = [mounted(one, f"/{one}") for one in names]
    return of(facts([disk(one, model=EBS) for one in names], filesystems=systems, instance_type=name), volumes)


def test_what_binds_the_iops_of_a_cluster() -> None:
    found = cluster_of([("a", iris("r5b.24xlarge", 200_000)), ("b", iris("r5b.24xlarge"))]).cluster
    assert found.read_iops == near(260_000 + 120_000)
    assert found.iops_binds is not None
    assert (found.iops_binds.stage, found.iops_binds.members) == ("instance", ("a:r5b.24xlarge",))
    assert (found.iops_binds.next_stage, found.iops_binds.next_iops) == ("media", near(400_000 + 120_000))


def test_provisioned_iops_of_all_hosts_count_against_one_account(tmp_path: Path) -> None:
    text = 'instance-type = "r5b.24xlarge"\n[[volume]]\ndevice = "nvme0n1"\ngib = 1000\ntype = "io2"\niops = 60000\n'
    declared = parse_declared(text.encode(), "v.toml")
    sources = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.snap"
        save_snapshot(capture_host(beegfs_server.tree().host(), read_for_scan_and_plans), path)
        sources.append(CaptureSource(name, str(path), is_capture=False))
    found, failed, quotas = gather_ceilings(sources, declared, {})
    assert (len(found), failed) == (2, {})
    (iops,) = [one for one in quotas if one.unit == "IOPS"]
    assert (iops.provisioned, iops.default) == (120_000, 100_000)
    assert any(
        "120,000 IOPS, more than the default of 100,000" in note for note in cluster_of(found, quotas).cluster.notes
    )
