"""All rules on a host with 24 NVMe drives, in this process: how long one judgement takes, and which rules take it.

    python -m benchmarks.rules              a host of the size of Dell's BeeGFS servers, without and with a workload
    python -m benchmarks.rules SNAPSHOT     another host, as advisor snapshot captured it

Prints Markdown tables; docs/benchmarks.md holds one run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from advisor.facts.host_facts import Facts, scan
from advisor.facts.system.memory import Counters
from advisor.rules.judged import RULES, judge
from advisor.rules.workload import DeclaredWorkload, parse_workload
from advisor.snapshot.archive import open_snapshot
from tests.beegfs_server import server
from tests.rules.build import (
    SYSCTL,
    array,
    disk,
    facts,
    filesystem,
    irqs,
    link,
    llt,
    llt_link,
    numa,
    origin,
    pcie,
    replaced,
)

RUNS = 200
SLOWEST = 8
QUEUE = {
    **{"scheduler": "[none] mq-deadline", "read_ahead_kb": "128", "io_timeout": "30000", "nr_requests": "1023"},
    **{"max_sectors_kb": "128", "max_hw_sectors_kb": "2048", "rq_affinity": "0", "nomerges": "2", "add_random": "1"},
    **{"physical_block_size": "4096", "optimal_io_size": "4096", "wbt_lat_usec": "0"},
}


def large_host() -> Facts:
    """Two nodes, 96 CPUs, 24 NVMe drives in six arrays with a file system each, four links of 48 queues, LLT."""
    drives = tuple(
        disk(
            f"nvme{n}n1",
            numa_node=n // 12,
            queue=QUEUE,
            pcie=pcie(8.0, 4, bridges={"0000:3a:00.0": 126_016}),
            partition_offsets={f"nvme{n}n1p1": 32_256},
        )
        for n in range(24)
    )
    arrays = tuple(
        array(
            f"md{n}", *(f"nvme{4 * n + m}n1" for m in range(4)), level="raid5", data_disks=3, mountpoints=(f"/data{n}",)
        )
        for n in range(6)
    )
    links = tuple(
        link(
            f"eth{n}",
            mtu=1500,
            irqs=tuple(range(100 * n, 100 * n + 48)),
            addresses=(f"10.0.{n}.1/24",),
            pcie=pcie(8.0, 8),
        )
        for n in range(4)
    )
    return facts(
        numa=numa(2, cpus_each=48),
        cpu=replaced(facts().cpu, {"threads": 96, "cores": 48, "packages": 2, "online": "0-95"}),
        links=links,
        irqs=tuple(irq for n in range(4) for irq in irqs(100 * n, 48, on="0-47")),
        disks=drives,
        arrays=arrays,
        filesystems=tuple(filesystem(f"md{n}", stripe_unit_bytes=0, stripe_width_bytes=0) for n in range(6)),
        sysctl=SYSCTL,
        sysctl_origin={key: origin(key, value, value) for key, value in SYSCTL.items()},
        counters=Counters(softnet_processed=10**6, softnet_dropped=10, udp_receive_buffer_errors=9),
        llt=llt(llt_link("a", "eth0"), llt_link("b", "eth1", port="50001")),
    )


def measure_times(work: Callable[[], object], runs: int = RUNS) -> tuple[list[float], list[float]]:
    """Wall and CPU milliseconds of each run, after one that warms up."""
    work()
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        cpus.append((time.process_time() - cpu) * 1000)
        walls.append((time.perf_counter() - wall) * 1000)
    return walls, cpus


def whole(host: Facts, names: list[str | None]) -> None:
    print(f"{len(RULES)} rules, {len(host.disks)} disks, {len(host.links)} links, {len(host.irqs)} interrupts\n")
    print(f"| workload | findings | wall ms, median (maximum of {RUNS}) | CPU ms, median (maximum) |")
    print("|---|---|---|---|")
    for name in names:
        workload = parse_workload(name) if name else None
        walls, cpus = measure_times(partial(judge, host, workload))
        found = len(judge(host, workload))
        columns = " | ".join(f"{statistics.median(spent):.1f} ({max(spent):.1f})" for spent in (walls, cpus))
        print(f"| {name or 'none'} | {found} | {columns} |")


def slowest(host: Facts, workload: DeclaredWorkload | None) -> None:
    print("\n| rule | CPU ms, median |\n|---|---|")
    spent = {rule.id: statistics.median(measure_times(partial(rule, host, workload), 20)[1]) for rule in RULES}
    for rule, median in sorted(spent.items(), key=lambda pair: -pair[1])[:SLOWEST]:
        print(f"| `{rule}` | {median:.3f} |")


def main(arguments: list[str]) -> None:
    if arguments:
        hosts = {Path(arguments[0]).name: scan(open_snapshot(Path(arguments[0])))}
    else:
        hosts = {"24 drives that need much": large_host(), "a BeeGFS server with 24 drives": server()}
    for name, host in hosts.items():
        print(f"\n## {name}\n")
        whole(host, [None, "backup", "oltp,rtt=1ms,transport=tcp,replication=sync"])
        slowest(host, parse_workload("backup"))


if __name__ == "__main__":
    main(sys.argv[1:])
