"""Nodes of the white paper's configurations with their volumes: VxVM on EBS disks, VxFS on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.host import Host
from tests import vxvm
from tests.articles.table import Case, fact, found, limited
from tests.facts.storage import Tree
from tests.vxvm import answer, dco, group, listed, mount, nvme, nvme_lines, plex, stripe, subdisk, volume, vxprint

_EBS = "Amazon Elastic Block Store"
_DEVICE = "/dev/vx/dsk/datadg/vol01"


def _node(count: int) -> Tree:
    tree = nvme(count)
    tree.files["/etc/vx/volboot"] = "volboot 3.1 0.5 80\n"
    mount(tree, _DEVICE, "/data")
    return tree


def striped(columns: int, read_nstream: int) -> Callable[[], Host]:
    """A single node with a striped volume."""

    def host() -> Host:
        tree = _node(columns)
        media = vxvm.names(columns)
        vxvm.vxtunefs(tree, "/data", vxvm.tuned(65536, read_nstream))
        answer(
            tree,
            vxprint(group("datadg", media, volume("vol01"), *stripe("vol01-01", "vol01", media))),
            *nvme_lines(columns),
        )
        return tree.host()

    return host


def _of_model(tree: Tree, model: str) -> None:
    tree.files |= {path: f"{model}   " for path in tree.files if path.endswith("/model")}


def local_mirror() -> Host:
    """A volume of two plexes, both on EBS volumes of this node."""
    tree = _node(2)
    _of_model(tree, _EBS)
    media = vxvm.names(2)
    records = [volume("vol01")]
    for at, (one, access) in enumerate(media.items(), 1):
        records += [plex(f"vol01-0{at}", "vol01"), subdisk(f"vol01-0{at}", one, access)]
    answer(tree, vxprint(group("datadg", media, *records)), *nvme_lines(2))
    return tree.host()


def shared(*, with_log: bool, plex_state: str = "ACTIVE", model: str = "") -> Callable[[], Host]:
    """Flexible Storage Sharing: one plex on the disk of this node, one on a disk that the peer exports."""

    def host() -> Host:
        tree = _node(2)
        if model:
            _of_model(tree, model)
        media = {"datadg01": "node1_nvme0_0", "datadg02": "node2_nvme0_0"}
        kstate = "ENABLED" if plex_state == "ACTIVE" else "DETACHED"
        records = [volume("vol01"), plex("vol01-01", "vol01"), subdisk("vol01-01", "datadg01", "node1_nvme0_0")]
        records += [plex("vol01-02", "vol01", kstate=kstate, state=plex_state)]
        records += [subdisk("vol01-02", "datadg02", "node2_nvme0_0")]
        records += dco("vol01", "datadg01", "node1_nvme0_0") if with_log else []
        answer(
            tree,
            vxprint(group("datadg", media, *records)),
            listed("node1_nvme0_0", "datadg01", "nvme0n1", status="online exported shared"),
            listed("node2_nvme0_0", "datadg02", "-", status="online remote shared"),
        )
        return tree.host()

    return host


def without_root() -> Host:
    """The same volume, asked by an ordinary user: VxVM's tools are silent."""
    return _node(1).host(is_root=False)


VOLUMES: Final = (
    Case(
        "a single node with a striped volume of VxVM below /data",
        "S001: VxVM and VxFS on the disks of the instance",
        striped(4, 4),
        limited("/data"),
        ("datadg/vol01: raid0 of nvme0n1, nvme1n1, nvme2n1, nvme3n1",),
    ),
    Case(
        "the same, VxFS reading one column ahead",
        "S001: the storage is VxFS; its vendor sets read_nstream to the number of columns",
        striped(4, 1),
        found("vxfs.streams-off-stripes"),
        ("read_pref_io=65536,read_nstream=4",),
    ),
    Case(
        "the same, with the values that VxFS takes from the stripes",
        "S001: the storage is VxFS; its vendor sets read_nstream to the number of columns",
        striped(4, 4),
        found("vxfs.streams-off-stripes"),
        ("no finding",),
    ),
    Case(
        "FSS: a plex here and a plex on the peer's disk",
        "S001: the disks of the nodes are mirrored to each other over LLT",
        shared(with_log=True),
        limited("/data"),
        ("datadg/vol01: raid1 of nvme0n1, node2_nvme0_0",),
    ),
    Case(
        "the same, as a fact",
        "S001: the disks of the nodes are mirrored to each other over LLT",
        shared(with_log=True),
        fact("arrays"),
        ('"level": "raid1"', '"members": ["nvme0n1"]', '"remote": "node2_nvme0_0"', '"state": "active"'),
    ),
    Case(
        "FSS on EBS volumes: the mirror lies on the peer's disk",
        "S001: the disks of the nodes are mirrored to each other over LLT",
        shared(with_log=True, model=_EBS),
        found("arrays.redundant-on-ebs"),
        ("no finding",),
    ),
    Case(
        "a mirror of two EBS volumes of one node",
        "S004: EBS replicates each volume already",
        local_mirror,
        found("arrays.redundant-on-ebs"),
        ("raid0",),
    ),
    Case(
        "FSS without a DCO",
        "S001: the disks of the nodes are mirrored to each other over LLT",
        shared(with_log=False),
        found("vxvm.mirror-without-log"),
        ("vxsnap -g datadg prepare vol01",),
    ),
    Case(
        "FSS after the peer's plex was detached",
        "S001: the disks of the nodes are mirrored to each other over LLT",
        shared(with_log=True, plex_state="IOFAIL"),
        found("arrays.degraded"),
        ("arrays.degraded (critical)", "vxreattach"),
    ),
    Case(
        "a node that is asked without root",
        "S001: VxVM and VxFS on the disks of the instance",
        without_root,
        fact("arrays"),
        ('"name": "datadg/vol01"', '"level": null', '"mountpoints": ["/data"]', '"manager": "vxvm"'),
    ),
    Case(
        "its limits without root",
        "S001: VxVM and VxFS on the disks of the instance",
        without_root,
        limited("/data"),
        ("/data: no ceiling of it is known",),
    ),
)
