"""InfoScale and LLT in a cluster: hosts on which each rule fires, and hosts on which it is silent.

Hosts are built from what a scan reads, so that the recognition of the configuration is the real one.
"""

from __future__ import annotations

from typing import Any

from advisor.facts.infoscale import InfoScale, judged
from advisor.facts.infoscale_configuration import InfoScaleSigns
from advisor.facts.infoscale_text import LltHost, VxDisk
from advisor.facts.llt import Llttab
from tests.rules.build import FLOW, Table, bond, facts, link, llt, llt_link, on_cloud, replaced, virtual

TIMERS = {"peertrouble": 200, "peertroublelo": 400, "peerinact": 1600, "rpeerinact": 700}
TWO = (LltHost(0, "north"), LltHost(1, "south"))
MIRRORED = (VxDisk("xvdb", "auto:cdsdisk", "dg", ("online", "exported", "shared")),)
SHARED = (VxDisk("xvdb", "auto:cdsdisk", "dg", ("online", "shared")),)
PORTS = (link("eth1", addresses=("10.0.1.1/24",)), link("eth2", addresses=("10.0.2.1/24",), pci="0000:3c:00.0"))
UDP = (llt_link("link1", "eth1"), llt_link("link2", "eth2", port="50001"))
TCP = (llt_link("link1", "eth1", type="tcp"),)
AWS = on_cloud("aws", "t2.large")


def memory_of(available: int) -> Any:
    return replaced(facts().memory, {"available_bytes": available})


def table(*peers: str, **parts: Any) -> Llttab:
    empty = Llttab(node="n1", cluster="7", links=(), peers=peers, flow={"highwater": 1000}, timers={}, other=())
    return replaced(empty, parts)


def cluster(*links: Any, disks: tuple[VxDisk, ...] | None = None, hosts: Any = TWO, **parts: Any) -> dict[str, Any]:
    """A node with LLT over these links, and what its files say about InfoScale."""
    held = {"links": PORTS, "host": facts().host, **parts}
    tab = held.pop("table", table())
    own = llt(*(links or UDP), llttab=tab, timers=held.pop("timers", TIMERS), flow_control=held.pop("flow", FLOW))
    read = InfoScale(None, {}, InfoScaleSigns(), hosts=hosts, disks=disks)
    return {**held, "llt": own, "infoscale": judged(read, own, held["links"], held["host"].cloud)}


SINGLE = {"infoscale": judged(InfoScale(None, {}, InfoScaleSigns(), disks=SHARED), None, (), None)}
NEAR = table("10.0.1.2", "10.0.2.2")
FAR = table("10.0.17.2", other=("set-bcasthb 0", "set-arp 0"))

CASES: Table = {
    "infoscale.configuration": [
        (SINGLE, "info", "single-node"),
        (cluster(disks=SHARED), "info", "'shared-disk'"),
        (cluster(*TCP, disks=MIRRORED), "info", "'fss-tcp'"),
        (cluster(disks=MIRRORED, table=NEAR, host=AWS), "info", "'fss-udp'"),
        ("rtt=1.16ms", cluster(disks=MIRRORED), "info", "'fss-zones'"),
        (cluster(), "info", "vxdisk"),
        {},
        ("fss-udp", {"llt": llt(*UDP)}),
    ],
    "infoscale.mirroring-cost": [
        (cluster(*TCP, disks=MIRRORED), "info", "0.5"),
        ("fss-cross-zone", cluster(), "info", "862"),
        ("fss-udp", {"llt": llt(*UDP), "links": PORTS}, "info", "2.0"),
        cluster(disks=SHARED),
        ("fss-udp", {}),
        ("fss-udp", cluster(disks=SHARED)),
        # That it may mirror is not enough.
        cluster(),
    ],
    "llt.timer-order": [
        (cluster(timers={**TIMERS, "peerinact": 200}), "warning", "peertrouble 200"),
        (cluster(table=table(timers={"peertroublelo": 1600})), "warning", "/etc/llttab"),
        (
            cluster(llt_link("link1", "eth1", type="rdma"), timers={**TIMERS, "rpeerinact": 1600}),
            "warning",
            "rpeerinact 1600",
        ),
        cluster(),
        cluster(timers={**TIMERS, "rpeerinact": 1600}),
        cluster(timers={}),
    ],
    "llt.timer-drift": [
        (cluster(table=table(timers={"peerinact": 3200})), "advice", "live 1600"),
        cluster(table=table(timers={"peerinact": 1600})),
        cluster(timers={}, table=table(timers={"peerinact": 3200})),
    ],
    "llt.peerinact-short": [
        ("rtt=1.16ms", cluster(timers={**TIMERS, "peerinact": 1200}), "advice", "1200"),
        ("rtt=1.16ms", cluster()),
        ("rtt=300us", cluster(timers={**TIMERS, "peerinact": 1200})),
        cluster(timers={**TIMERS, "peerinact": 1200}),
    ],
    "llt.single-link": [
        (cluster(llt_link("link1", "eth1")), "advice", "eth1"),
        (cluster(*TCP), "info", "tcp"),
        cluster(),
        cluster(llt_link("a", "eth1"), llt_link("b", "eth2", low_priority=True)),
        cluster(llt_link("a", "eth1"), hosts=TWO[:1]),
    ],
    "llt.links-on-one-port": [
        (cluster(llt_link("a", "eth1"), llt_link("b", "eth1")), "warning", "b over eth1"),
        (
            cluster(
                llt_link("a", "eth1.5"),
                llt_link("b", "eth1.6"),
                links=(*PORTS, *(virtual(f"eth1.{n}", "vlan", lower=("eth1",)) for n in (5, 6))),
            ),
            "warning",
            "eth1: a over eth1.5",
        ),
        (
            cluster(llt_link("a", "bond0"), llt_link("b", "bond0"), links=bond("bond0", "eth1", "eth2")),
            "warning",
            "eth1, eth2",
        ),
        cluster(),
        cluster(llt_link("a", None), llt_link("b", None)),
    ],
    "llt.queue-memory": [
        (cluster(memory=memory_of(300 << 20)), "warning", "16384000"),
        cluster(),
        cluster(flow={}, memory=memory_of(1 << 20)),
    ],
    "llt.window-below-path": [
        ("fss-cross-zone", cluster(), "info", "353"),
        ("replication=sync,rtt=100us", cluster()),
        ("rtt=1.16ms", cluster()),
        cluster(disks=MIRRORED),
        ("fss-cross-zone", cluster(links=tuple(replaced(one, {"speed_mbps": None}) for one in PORTS))),
    ],
    "llt.broadcast-over-router": [
        (cluster(table=table("10.0.17.2")), "advice", "set-bcasthb 0"),
        (cluster(table=table("10.0.1.2", "10.0.17.2", other=("set-bcasthb 0",))), "advice", "set-arp 0"),
        cluster(table=FAR),
        cluster(table=NEAR),
        cluster(table=table("10.0.17.2", "odd"), links=()),
    ],
}
