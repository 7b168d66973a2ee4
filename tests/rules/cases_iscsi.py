"""Hosts with iSCSI sessions or targets: those that need a rule, and those that do not."""

from __future__ import annotations

from typing import Any

from advisor.facts.block.block import Array, PathGroup, PathLoad
from advisor.facts.network.links import Link
from advisor.facts.remote.iscsi import Iscsi, IscsiConnection, IscsiNode, IscsiSession, IscsiTarget, TargetPortal
from advisor.facts.settings.site_settings import SiteSetting
from tests.cases import read_cases
from tests.rules import build
from tests.rules.build import Table, array, disk, identity, joined, link, replaced, virtual

TARGET = "iqn.2004-04.com.example:disk1"


def session(number: int, by: str | None = "eth1", **parts: Any) -> IscsiSession:
    """A session by one link, with one disk (sda for 1), as open-iscsi makes it."""
    wire = IscsiConnection(
        name=f"connection{number}:0",
        state="up",
        address=f"10.0.{number}.20",
        port=3260,
        persistent_address=f"10.0.{number}.20",
        persistent_port=3260,
        local_address=None,
        link=by,
        max_recv_bytes=262_144,
        header_digest=False,
        data_digest=parts.pop("data_digest", False),
    )
    base = IscsiSession(
        name=f"session{number}",
        target=TARGET,
        initiator=None,
        initiator_interface="default",
        state="LOGGED_IN",
        recovery_seconds=120,
        first_burst_bytes=262_144,
        max_burst_bytes=16_776_192,
        immediate_data=True,
        initial_r2t=False,
        can_queue=113,
        connections=(wire,),
        disks=(f"sd{'xabcdefgh'[number]}",),
    )
    return replaced(base, parts)


def over(*links: str | None, mapped: bool = False, **parts: Any) -> Iscsi:
    """One session by each of these links; with ``mapped`` all their disks are below multipath."""
    sessions = tuple(session(number, name, **parts) for number, name in enumerate(links, 1))
    disks = tuple(name for one in sessions for name in one.disks) if mapped else ()
    return Iscsi(sessions=sessions, multipath_disks=disks)


def path(name: str, subnet: int, **parts: Any) -> Link:
    return link(name, addresses=(f"10.0.{subnet}.7/24",), **{"mtu": 9000, "speed_mbps": 1000, **parts})


TWO = (path("eth1", 1), path("eth2", 2))
MAP = array("mpatha", "sda", "sdb", manager="dm-multipath", level="multipath", device="dm-0", disks=("sda", "sdb"))


def alone(features: str) -> Array:
    """A map of one path."""
    return replaced(MAP, {"members": ("sda",), "detail": {"features": features}})


def turns(count: int | None, selector: str = "round-robin") -> tuple[Array, ...]:
    """The map with this many requests a turn in its table; with None the table could not be read."""
    groups = () if count is None else (PathGroup(selector, count, ("sda", "sdb")),)
    return (replaced(MAP, {"path_groups": groups}),)


def carried(first: int, second: int, seconds: float | None = None, requests: int = 500_000) -> dict[str, Any]:
    """Bytes by the two paths of the map."""
    load = PathLoad("mpatha", 0, {"sda": requests, "sdb": requests}, {"sda": first, "sdb": second}, seconds)
    arrays, links = turns(1), (path("eth1", 1), path("eth2", 2))
    return {"iscsi": over("eth1", "eth2", mapped=True), "arrays": arrays, "links": links, "path_load": (load,)}


OLD = identity(kernel="3.10.0-1160.el7.x86_64")
MAPPED: dict[str, Any] = {"iscsi": over("eth1", "eth2", mapped=True)}


def exports(*portals: str | None, disks: tuple[str, ...] = ("nvme0n1",), enabled: bool = True) -> Iscsi:
    where = tuple(TargetPortal(f"10.0.{n}.20", 3260, name) for n, name in enumerate(portals))
    return Iscsi(targets=(IscsiTarget(TARGET, 1, enabled, where, disks, {}),))


def node(**settings: str) -> IscsiNode:
    keys = {f"node.session.{key}": value for key, value in settings.items()}
    return IscsiNode("/etc/iscsi/nodes/x/y/default", TARGET, "10.0.1.20,3260,1", "default", keys)


def set_in_file(key: str, value: str, scope: str = "defaults") -> SiteSetting:
    return SiteSetting("/etc/multipath.conf", 3, key, value, scope)


def round_robin(first: int, second: int) -> dict[str, Any]:
    turns = replaced(MAP, {"detail": {"policy": "round-robin"}})
    links = (path("eth1", 1, speed_mbps=first), path("eth2", 2, speed_mbps=second))
    return {"iscsi": over("eth1", "eth2", mapped=True), "arrays": (turns,), "links": links}


VLANS = (
    link("eth1", upper=("eth1.1", "eth1.2")),
    virtual("eth1.1", "vlan", lower=("eth1",), addresses=("10.0.1.7/24",)),
    virtual("eth1.2", "vlan", lower=("eth1",), addresses=("10.0.2.7/24",)),
)
NEAR = (disk("nvme0n1", numa_node=0),)

DATA = read_cases(__file__, build, globals())

CASES: Table = joined(
    DATA["CASES"],
    {
        "iscsi.late-path-switch": [
            *(
                {**MAPPED, "arrays": arrays, "host": host, "site_settings": (setting,)}
                for arrays, host, setting in (
                    # The kernel sees to it by itself; the table shows what is active; another key; less.
                    ((MAP,), identity(kernel="4.18.0-553.el8.x86_64"), set_in_file("rr_min_io_rq", "1000")),
                    ((MAP,), identity(kernel="4.6.0"), set_in_file("rr_min_io_rq", "1000")),
                    (turns(1), OLD, set_in_file("rr_min_io_rq", "1000")),
                    ((MAP,), OLD, set_in_file("rr_min_io", "1000")),
                    ((MAP,), identity(kernel="2.6.31"), set_in_file("rr_min_io", "1000")),
                    ((MAP,), identity(kernel="2.6.18-419.el5"), set_in_file("rr_min_io_rq", "1000")),
                    ((MAP,), OLD, set_in_file("rr_min_io_rq", "8")),
                )
            )
        ]
    },
)
