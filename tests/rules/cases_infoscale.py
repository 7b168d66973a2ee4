"""InfoScale and LLT in a cluster: hosts on which each rule fires, and hosts on which it is silent.

Hosts are built from what a scan reads, so that the recognition of the configuration is the real one.
"""

from __future__ import annotations

from typing import Any

from advisor.facts.clusters.infoscale import InfoScale, LltHost, VxDisk, judged
from advisor.facts.clusters.infoscale_configuration import InfoScaleSigns
from advisor.facts.clusters.llt import Llttab
from tests.cases import read_cases
from tests.rules import build
from tests.rules.build import FLOW, Table, facts, joined, link, llt, llt_link, on_cloud, replaced, virtual

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

DATA = read_cases(__file__, build, globals())

CASES: Table = joined(
    DATA["CASES"],
    {
        "infoscale.configuration": [
            (cluster(*TCP, disks=MIRRORED), "info", "'fss-tcp'"),
            ("fss-udp", {"llt": llt(*UDP)}),
        ],
        "infoscale.mirroring-cost": [
            (cluster(*TCP, disks=MIRRORED), "info", "0.5"),
            ("fss-udp", {"llt": llt(*UDP), "links": PORTS}, "info", "2.0"),
        ],
        "llt.single-link": [(cluster(*TCP), "info", "tcp"), cluster(llt_link("a", "eth1"), hosts=TWO[:1])],
        "llt.links-on-one-port": [
            (
                cluster(
                    llt_link("a", "eth1.5"),
                    llt_link("b", "eth1.6"),
                    links=(*PORTS, *(virtual(f"eth1.{n}", "vlan", lower=("eth1",)) for n in (5, 6))),
                ),
                "warning",
                "eth1: a over eth1.5",
            )
        ],
        "llt.window-below-path": [
            ("fss-cross-zone", cluster(links=tuple(replaced(one, {"speed_mbps": None}) for one in PORTS)))
        ],
    },
)
