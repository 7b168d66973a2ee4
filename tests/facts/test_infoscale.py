"""InfoScale: what its files and commands say, and which of the white paper's five configurations they leave."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.clusters.infoscale import (
    DISK_LIST,
    GABTAB,
    LLTHOSTS,
    InfoScale,
    LltHost,
    VcsResource,
    VxDisk,
    only_resources,
    parse_gabtab,
    parse_llthosts,
    parse_main_cf,
    parse_vxdisk_list,
    read_infoscale,
)
from advisor.facts.clusters.infoscale_configuration import TITLES, InfoScaleSigns, recognised
from advisor.facts.clusters.llt import read_llt
from advisor.facts.host_facts import scan
from advisor.facts.redaction import without_secrets
from advisor.facts.system.identity import Cloud
from advisor.facts.unknown import LLTTAB, MAIN_CF, Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.cases import read_cases
from tests.rules.build import link
from tests.trees import host_of, make_command, make_tree

HOSTS = "# written by the installer\n0 north\n 1 south\n1 again\nx 2\n"
DATA = read_cases(__file__, Cloud, Completed, InfoScaleSigns, Missing, HOSTS=HOSTS)

MOVING = DATA["MOVING"]
CLUSTER_VOLUMES = DATA["CLUSTER_VOLUMES"]
LISTED = DATA["LISTED"]
SHARED = DATA["SHARED"]
UDP = DATA["UDP"]
TCP = "set-node north\nset-cluster 7\nlink link1 tcp - tcp 50000 - 10.0.1.1 -\n"
LINKS = (link("eth1", addresses=("10.0.1.1/24",)), link("eth2", addresses=("10.0.2.1/24",)))
AWS = Cloud("aws", "t2.large")
NEAR = UDP + "set-addr 1 link1 10.0.1.2\nset-addr 1 link2 10.0.2.2\n"
FAR = UDP + "set-addr 1 link1 10.0.17.2\nset-addr 1 link2 10.0.18.2\nset-bcasthb 0\nset-arp 0\n"


def read(
    files: Mapping[str, str], disks: str | Completed | Missing | None = None, cloud: Cloud | None = None
) -> tuple[InfoScale | None, dict[str, str]]:
    contents = {path: text.encode() for path, text in files.items()} | {"/sys/module/loop/x": b""}
    answers: dict[tuple[str, ...], Completed | Missing] = {}
    if disks is not None:
        contents["/etc/vx/volboot"] = b"volboot 3.1\n"
        answers[DISK_LIST] = Completed(0, disks, "") if isinstance(disks, str) else disks
    host = Host(MemoryFiles(contents, {}, frozenset(), {}), RecordedCommands(answers), is_root=True)
    unknown = Unknowns()
    llt = read_llt(host, LINKS, unknown)
    return read_infoscale(host, llt, LINKS, cloud, unknown), {one.fact: one.why for one in unknown.listed()}


def left(found: InfoScale | None) -> list[str]:
    assert found is not None
    assert list(found.configurations) == list(TITLES)
    return [name for name, fit in found.configurations.items() if fit != "no"]


# --- the texts ------------------------------------------------------------------------------------------------------


def test_llthosts() -> None:
    assert parse_llthosts(HOSTS) == (LltHost(0, "north"), LltHost(1, "again"))


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("/sbin/gabconfig -c -n2\n", 2),
        ("#!/bin/sh\n/sbin/gabconfig -c -n 4\n", 4),
        ("/sbin/gabconfig -c -x\n", None),
        ("#/sbin/gabconfig -c -n2\n", None),
        ("/sbin/gabconfig -n2 -c\n", 2),
        ("", None),
    ],
)
def test_gabtab(text: str, seeds: int | None) -> None:
    assert parse_gabtab(text) == seeds


def test_main_cf_has_systems_and_resources_and_no_secrets() -> None:
    config = parse_main_cf(MOVING)
    assert config.systems == ("north", "south")
    assert config.resources == (
        VcsResource("EBSVol", "volume", {}),
        VcsResource("DiskGroup", "data", {"DiskGroup": "datadg"}),
        VcsResource("Mount", "mnt", {"BlockDevice": "/dev/vx/dsk/datadg/vol1"}),
    )


def test_a_block_that_is_closed_on_its_own_line() -> None:
    config = parse_main_cf(CLUSTER_VOLUMES)
    assert config.systems == ("north", "south")
    assert [one.type for one in config.resources] == ["CVMCluster", "CFSMount", "AWSIP"]
    assert config.resources[-1].attributes == {"OverlayIP": "172.31.0.9"}


@given(st.text(alphabet="ab (){}=\"'\n\t/#sytemDskGroup") | st.sampled_from([MOVING, CLUSTER_VOLUMES]))
def test_what_a_snapshot_keeps_of_main_cf_reads_the_same(text: str) -> None:
    kept = without_secrets(MAIN_CF, text.encode()).decode()
    assert kept == only_resources(text)
    assert parse_main_cf(kept) == parse_main_cf(text)
    assert not {"topsecret", "hIJcIDjGIfHLgK", "admin", "10.0.0.9"} & set(kept.replace('"', " ").split())


def test_vxdisk_list() -> None:
    found = parse_vxdisk_list(LISTED)
    assert found[0] == VxDisk("xvdb", "auto:cdsdisk", "datadg", ("online", "exported", "shared"))
    assert [one.group for one in found] == ["datadg", "datadg", None]
    assert [one.group for one in parse_vxdisk_list(SHARED)] == ["GRP01", "vxfencoorddg"]


# --- the five -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "files", "disks", "cloud"),
    [*DATA["what_is_certain"], ("fss-udp", {LLTTAB: NEAR, LLTHOSTS: HOSTS}, LISTED, AWS)],
)
def test_what_is_certain(expected: str, files: dict[str, str], disks: str | None, cloud: Cloud | None) -> None:
    found, _ = read(files, disks, cloud)
    assert found is not None
    assert (found.configuration, left(found)) == (expected, [expected])
    assert found.configurations[expected] == "yes"
    assert found.signs.seen


@pytest.mark.parametrize(
    ("expected", "files", "disks", "cloud"),
    [
        *DATA["what_stays_open"],
        (["fss-udp", "fss-zones"], {LLTTAB: FAR, LLTHOSTS: HOSTS}, LISTED, AWS),
        (["fss-udp", "fss-zones"], {LLTTAB: UDP, LLTHOSTS: HOSTS}, LISTED, AWS),
    ],
)
def test_what_stays_open(expected: list[str], files: dict[str, str], disks: str | None, cloud: Cloud | None) -> None:
    found, _ = read(files, disks, cloud)
    assert found is not None
    assert (found.configuration, left(found)) == (None, expected)
    assert "yes" not in found.configurations.values()
    assert bool(recognised(found.signs).untold) is bool(expected)


def test_a_host_without_infoscale_has_none() -> None:
    assert read({}) == (None, {})
    assert read({LLTHOSTS: HOSTS, GABTAB: "gabconfig -c -n2"}) == (None, {})


def test_a_seed_of_one_is_no_count_of_nodes() -> None:
    one, _ = read({LLTTAB: UDP, GABTAB: "/sbin/gabconfig -c -n1\n"})
    two, _ = read({LLTTAB: UDP, GABTAB: "/sbin/gabconfig -c -n2\n"})
    assert "single-node" in left(one)
    assert "single-node" not in left(two)


@pytest.mark.parametrize(("answer", "words"), DATA["a_volume_manager_that_does_not"])
def test_a_volume_manager_that_does_not_answer_is_unknown_and_proves_nothing(
    answer: Completed | Missing, words: str
) -> None:
    found, unknown = read({LLTTAB: UDP, LLTHOSTS: HOSTS}, answer)
    assert found is not None
    assert found.disks is None
    assert words in unknown["infoscale.disks"]
    assert found.configuration is None


def test_an_address_that_moves_is_told() -> None:
    found, _ = read({LLTTAB: UDP, MAIN_CF: CLUSTER_VOLUMES})
    assert found is not None
    assert any("OverlayIP of address" in text for text in found.signs.seen)


# --- the judgement itself -------------------------------------------------------------------------------------------

BOOLS = st.sampled_from([None, True, False])
SIGNS = st.builds(
    InfoScaleSigns,
    is_cluster=BOOLS,
    transports=st.sampled_from([(), ("tcp",), ("udp",), ("udp6",), ("udp", "tcp"), ("ether",), ("rdma",)]),
    mirrors=BOOLS,
    place=st.sampled_from([None, "one-zone", "several-zones"]),
)


@given(SIGNS)
def test_one_is_named_only_where_it_is_the_only_one_and_the_rest_is_told(signs: InfoScaleSigns) -> None:
    found = recognised(signs)
    fits = list(found.fits.values())
    assert (found.configuration is None) == ("yes" not in fits)
    if found.configuration is not None:
        assert fits.count("no") == 4
        assert signs.is_cluster is not None
        assert found.untold == ()
    else:
        assert bool(found.untold) or "possible" not in fits


@given(SIGNS)
def test_to_know_more_rules_nothing_in(signs: InfoScaleSigns) -> None:
    nothing = recognised(InfoScaleSigns())
    assert set(nothing.fits.values()) == {"possible"}
    for name, fit in recognised(InfoScaleSigns(is_cluster=signs.is_cluster)).fits.items():
        if fit == "no":
            assert recognised(signs).fits[name] == "no"


@pytest.mark.parametrize(("signs", "expected"), DATA["the_five_by_their_signs"])
def test_the_five_by_their_signs(signs: InfoScaleSigns, expected: str | None) -> None:
    assert recognised(signs).configuration == expected


def test_a_snapshot_says_the_same_and_holds_no_password(tmp_path: Path) -> None:
    files = {LLTTAB: UDP, MAIN_CF: MOVING, LLTHOSTS: HOSTS, "/etc/vx/volboot": "x"}
    make_command(tmp_path / "bin", "vxdisk", f"cat <<'EOF'\n{SHARED}EOF")
    here = host_of(make_tree(tmp_path / "root", files), tmp_path / "bin")
    archive = capture_host(here, scan)
    (tmp_path / "x").write_bytes(archive)
    there = open_snapshot(tmp_path / "x")
    assert "hIJcIDjGIfHLgK" not in str(there.read(MAIN_CF))
    found = scan(there).infoscale
    assert found is not None
    assert found == scan(here).infoscale
    assert (found.configuration, len(found.disks or ())) == ("shared-disk", 2)
