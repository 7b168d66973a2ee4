"""Nodes of the white paper's configurations with their volumes: VxVM on EBS disks, VxFS on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.host import Host
from tests import vxvm
from tests.articles.table import Case, fact, found, limited
from tests.cases import read_cases
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


DATA = read_cases(__file__, Case, fact, found, limited, local_mirror, shared, striped, without_root)

VOLUMES: Final = DATA["VOLUMES"]
