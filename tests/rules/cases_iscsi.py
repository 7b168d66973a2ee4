"""Hosts with iSCSI sessions or targets: those that need a rule, and those that do not."""

from __future__ import annotations

from typing import Any

from advisor.facts.array import Array, PathGroup
from advisor.facts.iscsi import Iscsi, IscsiConnection, IscsiNode, IscsiSession
from advisor.facts.iscsi_target import IscsiTarget, TargetPortal
from advisor.facts.links import Link
from advisor.facts.path_load import PathLoad
from advisor.facts.site_settings import SiteSetting
from tests.rules.build import Table, array, bond, disk, identity, link, numa, replaced, virtual

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

CASES: Table = {
    "iscsi.paths-share-link": [
        ({"iscsi": over("eth1", "eth1"), "links": TWO}, "advice", "eth1"),
        ({"iscsi": over("eth1.1", "eth1.2"), "links": VLANS}, "advice", "eth1.2"),
        {"iscsi": over("eth1", "eth2"), "links": TWO},
        {"iscsi": over("eth1"), "links": TWO},
        {"iscsi": over("eth1", None), "links": TWO},
        {"iscsi": over("eth1", "gone"), "links": TWO},
        {"iscsi": over("bond0", "bond0"), "links": bond("bond0", "eth1", "eth2")},
        {"iscsi": Iscsi((session(1, target="iqn.a"), session(2, target="iqn.b"))), "links": TWO},
    ],
    "iscsi.paths-share-subnet": [
        (
            {"iscsi": over("eth1", "eth2"), "links": (path("eth1", 1), path("eth2", 1))},
            "advice",
            "10.0.1.0/24: eth1, eth2",
        ),
        {"iscsi": over("eth1", "eth2"), "links": TWO},
        {"iscsi": over("eth1", "eth1"), "links": TWO},
    ],
    "iscsi.mtu-differs": [
        (
            {"iscsi": over("eth1", "eth2"), "links": (path("eth1", 1), path("eth2", 2, mtu=1500))},
            "warning",
            "eth2: 1500",
        ),
        (
            {
                # Another target name for each controller of the storage; the map says that they are one.
                "iscsi": Iscsi((session(1, "eth1"), session(2, "eth2", target="iqn.other"))),
                "arrays": (MAP,),
                "links": (path("eth1", 1), path("eth2", 2, mtu=1500)),
            },
            "warning",
            "eth2: 1500",
        ),
        {"iscsi": over("eth1", "eth2"), "links": TWO},
        {"iscsi": over("eth1", "eth2"), "links": (path("eth1", 1), path("eth2", 2, mtu=None))},
    ],
    "iscsi.far-node": [
        ({"iscsi": over("eth1", "eth2"), "links": TWO, "numa": numa(2)}, "info", "eth1"),
        (
            {"iscsi": exports("eth1"), "links": (path("eth1", 1, numa_node=1),), "disks": NEAR, "numa": numa(2)},
            "advice",
            "nvme0n1",
        ),
        {"iscsi": over("eth1", "eth2"), "links": TWO},
        {"iscsi": over("eth1", "eth2"), "links": (path("eth1", 1), path("eth2", 2, numa_node=1)), "numa": numa(2)},
        {"iscsi": exports("eth1"), "links": (path("eth1", 1),), "disks": NEAR, "numa": numa(2)},
        {"iscsi": exports(None), "links": TWO, "disks": NEAR, "numa": numa(2)},
        {"iscsi": over(None), "numa": numa(2)},
    ],
    "iscsi.order": [
        ({"iscsi": over("eth1"), "links": TWO}, "info", TARGET),
        ({"iscsi": exports("eth1")}, "info", TARGET),
        {"iscsi": Iscsi(nodes=(node(),))},
        {"iscsi": exports("eth1", enabled=False)},
    ],
    "iscsi.session-lost": [
        ({"iscsi": over("eth1", state="FAILED")}, "critical", "FAILED"),
        {"iscsi": over("eth1", state=None)},
    ],
    "iscsi.replacement-timeout": [
        ({"iscsi": over("eth1", "eth2", mapped=True), "arrays": (MAP,)}, "advice", "session1 (sda): 120 s"),
        ({"iscsi": over("eth1", mapped=True, recovery_seconds=-1)}, "advice", "for ever"),
        ({"iscsi": over("eth1", recovery_seconds=15)}, "warning", "session1 (sda): 15 s"),
        {"iscsi": over("eth1", mapped=True, recovery_seconds=15)},
        {"iscsi": over("eth1", recovery_seconds=120)},
        {"iscsi": over("eth1", recovery_seconds=-1)},
        {"iscsi": over("eth1", recovery_seconds=None)},
        {"iscsi": over("eth1", recovery_seconds=5, disks=())},
    ],
    "iscsi.queue-depth": [
        ({"iscsi": Iscsi(nodes=(node(cmds_max="100"),))}, "advice", "100 is no power of two"),
        ({"iscsi": Iscsi(nodes=(node(cmds_max="4096"),))}, "advice", "outside 2 to 2048"),
        (
            {"iscsi": Iscsi(settings=node(cmds_max="32", queue_depth="64").settings)},
            "advice",
            "iscsid.conf: queue_depth 64 is above cmds_max 32",
        ),
        {"iscsi": Iscsi(nodes=(node(cmds_max="128", queue_depth="128"),))},
        {"iscsi": Iscsi(nodes=(node(cmds_max="many"),))},
    ],
    "iscsi.small-bursts": [
        ({"iscsi": over("eth1", first_burst_bytes=8192)}, "info", "FirstBurstLength 8192"),
        ("backup", {"iscsi": over("eth1", max_burst_bytes=65_536)}, "advice", "MaxBurstLength 65536"),
        ({"iscsi": over("eth1", immediate_data=False)}, "info", "ImmediateData No"),
        # What LIO offers by itself.
        ("backup", {"iscsi": over("eth1", first_burst_bytes=65_536, max_burst_bytes=262_144)}),
        ("backup", {"iscsi": over("eth1", first_burst_bytes=None, immediate_data=None)}),
    ],
    "iscsi.data-digest": [
        ({"iscsi": over("eth1", data_digest=True)}, "info", "session1"),
        {"iscsi": over("eth1", data_digest=None)},
    ],
    "iscsi.path-selector": [
        (round_robin(1000, 10_000), "advice", "eth2: 10,000 Mbit/s"),
        round_robin(1000, 1000),
        round_robin(1000, 0),
        {**round_robin(1000, 10_000), "arrays": (MAP,)},
    ],
    "iscsi.late-path-switch": [
        (
            {**MAPPED, "arrays": (MAP,), "host": OLD, "site_settings": (set_in_file("rr_min_io_rq", "1000"),)},
            "advice",
            "rr_min_io_rq = 1000",
        ),
        (
            {
                **MAPPED,
                "arrays": (MAP,),
                "host": identity(kernel="2.6.30-tip"),
                "site_settings": (set_in_file("rr_min_io", "1000"),),
            },
            "advice",
            "rr_min_io = 1000",
        ),
        ({**MAPPED, "arrays": turns(1000), "host": OLD}, "advice", "set by no file"),
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
        ),
        # A section that wins.
        {
            **{**MAPPED, "arrays": (MAP,), "host": OLD},
            "site_settings": (set_in_file("rr_min_io_rq", "1000"), set_in_file("rr_min_io_rq", "1", "overrides")),
        },
        {"iscsi": over("eth1"), "site_settings": (set_in_file("rr_min_io_rq", "1000"),)},
    ],
    "iscsi.unequal-paths": [
        (carried(9 * 10**9, 10**9), "advice", "sdb by eth2: 10 %"),
        (carried(9 * 10**9, 10**9, 10.0, 2_000), "advice", "900.0 MB/s"),
        carried(5 * 10**9, 4 * 10**9),
        carried(9 * 10**9, 10**9, requests=10),
        {**carried(9, 1), "links": (path("eth1", 1), path("eth2", 2, speed_mbps=100))},
    ],
}
