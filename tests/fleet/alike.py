"""Fleets of hosts that are alike but for what a test changes, and snapshots of such hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.facts.block.controller import CacheProtection, Controller, ControllerVolume
from advisor.facts.clusters.infoscale import InfoScale, LltHost
from advisor.facts.clusters.infoscale_configuration import InfoScaleSigns
from advisor.facts.clusters.llt import LltNode
from advisor.facts.host_facts import Facts, scan
from advisor.facts.processors.cpu import Cpu
from advisor.facts.processors.power import ClockGroup, Frequency
from advisor.facts.remote.iscsi import Iscsi, IscsiSession
from advisor.fleet.compare.columns import Fleet
from advisor.fleet.compare.comparison import FleetFinding, HostComparison
from advisor.fleet.compare.outliers import find_outliers
from advisor.fleet.compare.summary import AdvisorState, CaptureSource, summarise_host
from advisor.snapshot.archive import capture_host, save_snapshot
from tests.planning.system import LOOPBACK, Link, system
from tests.rules import build

ODD = "n8"
"""The host that tests change."""
CLOCKS = Frequency("intel_pstate", "active", (ClockGroup("0-3", "performance", None),))
COMMAND_LINE = "root=/dev/vda1 ro mitigations=off isolcpus=2-3"

Change = Callable[[Facts], Facts]


def host(number: int, **parts: Any) -> Facts:
    """A cluster node: two LLT links, one to the world, four drives in an array, a controller, iSCSI."""
    llt1 = build.link("eth1", addresses=(f"10.1.0.{number}/24",), mac=f"02:00:00:00:01:{number:02x}")
    llt2 = build.link(
        "eth2", addresses=(f"10.2.0.{number}/24",), features={"rx-gro": True, "tx-tcp-segmentation": True}
    )
    world = build.link("eth0", addresses=(f"192.0.2.{number}/24",), default_route=True)
    links = (build.llt_link("link1", "eth1"), build.llt_link("link2", "eth2"))
    hosts = tuple(LltHost(one, f"n{one}") for one in range(1, 13))
    facts = build.facts(
        host=build.identity(hostname=f"n{number}", machine_id=f"{number:032x}", boot_id=f"boot-{number}"),
        links=(world, llt1, llt2),
        disks=build.disks(4),
        arrays=(build.array(mountpoints=("/data",)),),
        filesystems=(build.filesystem(),),
        llt=build.llt(*links, nodes=(LltNode(number, f"n{number}", "OPEN", is_self=True, links_up=2, links=()),)),
        infoscale=InfoScale(None, {}, InfoScaleSigns(), hosts=hosts, seed_nodes=12),
        iscsi=Iscsi(sessions=(session(),), settings={"node.session.timeo.replacement_timeout": "120"}),
        controllers=(controller(),),
        sysctl={**build.LARGE_BUFFERS, "net.ipv4.tcp_mem": "90000 120000 180000", "fs.aio-nr": str(number)},
        numa=build.numa(2),
        cpu=Cpu("0-3", None, "0-3", 4, 4, 1, 1, "Intel(R) Xeon(R) Platinum 8268", "0-3", frequency=CLOCKS),
    )
    return build.replaced(facts, parts)


def session(**parts: Any) -> IscsiSession:
    return build.replaced(
        IscsiSession("session1", "iqn.x", "iqn.i", None, "LOGGED_IN", 120, 65536, 262144, True, False, 128, (), ()),
        parts,
    )


def controller(**parts: Any) -> Controller:
    volume = ControllerVolume("0", "raid6", "clean", "Optl", "write-back", "RWBD")
    protection = CacheProtection("battery", "Optimal", healthy=True)
    return build.replaced(Controller("c0", "storcli", "PERC H740P", "51.13", (volume,), True, protection), parts)


def fleet_of(hosts: Iterable[tuple[str, Facts]], extra: Mapping[str, Mapping[str, Any]] | None = None) -> Fleet:
    """A fleet; ``extra`` has by name what is not in the facts."""
    fleet = Fleet()
    for name, facts in hosts:
        usual: dict[str, Any] = {"standing": AdvisorState(("socket-buffers-8m",)), "command_line": COMMAND_LINE}
        more = {**usual, "skew_seconds": 0.0, **(extra or {}).get(name, {})}
        source = CaptureSource(name, "", more.pop("group", None), more.pop("skew_seconds"))
        fleet.add(summarise_host(facts, source, **more))
    return fleet


def twelve(change: Change | None = None, *, odd: Sequence[str] = (ODD,), count: int = 12) -> list[tuple[str, Facts]]:
    """Nodes n1 … n12, some of them changed."""
    found = [(f"n{number}", host(number)) for number in range(1, count + 1)]
    return [(name, change(facts) if change and name in odd else facts) for name, facts in found]


def compared(change: Change | None = None, **parts: Any) -> HostComparison:
    return find_outliers(fleet_of(twelve(change), parts.pop("extra", None)), **parts)


def only(comparison: HostComparison) -> FleetFinding:
    """The one finding there is."""
    assert len(comparison.findings) == 1, [(one.id, one.title, one.hosts) for one in comparison.findings]
    return comparison.findings[0]


def with_link(name: str, **parts: Any) -> Change:
    """Changes one link of a host."""

    def change(facts: Facts) -> Facts:
        links = (build.replaced(one, parts) if one.name == name else one for one in facts.links)
        return build.replaced(facts, {"links": tuple(links)})

    return change


def with_part(**parts: Any) -> Change:
    return lambda facts: build.replaced(facts, parts)


def with_sysctl(**values: str) -> Change:
    named = {key.replace("__", "."): value for key, value in values.items()}
    return lambda facts: build.replaced(facts, {"sysctl": {**facts.sysctl, **named}})


def snapshot(where: Path, name: str, *, mtu: int = 9000, files: Mapping[str, str | None] | None = None) -> Path:
    """A snapshot of a host that is a tree; its address goes by the number at the end of its name."""
    number = int("".join(filter(str.isdigit, name)) or 1)
    links = (
        LOOPBACK,
        Link("eth0", address=f"192.0.2.{number}", node=0),
        Link("eth1", mtu=mtu, address=f"10.1.0.{number}", node=1),
    )
    own = {"/etc/machine-id": f"{number:032x}\n", "/proc/sys/kernel/hostname": f"{name}\n"}
    kernel = {"/proc/sys/kernel/osrelease": "6.1.0-25-amd64\n", "/proc/sys/vm/swappiness": "10\n"}
    path = where / f"{name}.tar.gz"
    save_snapshot(capture_host(system(where / "trees" / name, links, {**own, **kernel, **(files or {})}), scan), path)
    return path
