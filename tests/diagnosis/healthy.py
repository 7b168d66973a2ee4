"""Hosts that are well, idle or busy, at random but with counters that agree with each other.

Each figure stays on the well side of what its source calls a fault, up to a margin of a tenth; a part of the spans has
counters that begin again, devices that appear, no PSI, or control groups of version 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.diagnosis.moments import Array, Connection, Disk, Group, Link, Machine, NfsMount, Process

_NAMES = {"nvme0n1": "259:0", "sda": "8:0", "vda": "254:0"}


def healthy_machine(seed: int) -> Machine:
    """The host of a number; the same for the same number."""
    dice = random.Random(seed)
    load = dice.choice((0.0, 0.05, 0.3, 0.6, 1.0))
    cpus = dice.choice((1, 2, 4, 8, 16))
    user = load * dice.uniform(0, 0.5)
    io_some = load * dice.uniform(0, 0.09)
    machine = Machine(
        cpus=cpus,
        user=user,
        system=load * dice.uniform(0, 0.12),
        iowait=min(io_some, load * dice.uniform(0, 0.05)),
        steal=dice.choice((0.0, 0.0, dice.uniform(0, 0.03))),
        softirq=tuple(load * dice.uniform(0, 0.15) for _ in range(cpus)),
        cpu_some=user * dice.uniform(0, 0.4),
        io_some=io_some,
        memory_some=dice.choice((0.0, dice.uniform(0, 0.05))),
        psi=dice.random() > 0.2,
        version1=dice.random() < 0.25,
        running=dice.randint(1, max(1, cpus // 2)),
        disks=tuple(_disks(dice, load)),
        links=tuple(
            Link(f"eth{at}", rx_bytes=load * share * dice.uniform(0, 0.8), tx_bytes=load * share * dice.uniform(0, 0.8),
                 speed=speed, missed=dice.choice((0, 0, 3)))
            for at in range(dice.randint(1, 3))
            for speed in (dice.choice((1000, 10_000, 25_000)),)
            for share in (speed * 1e6 / 8,)
        ),
        groups=tuple(
            Group(f"/system.slice/s{at}.service", io_some=load * dice.uniform(0, 0.08), throttled=dice.uniform(0, 0.05),
                  memory_some=dice.uniform(0, 0.03), quota=dice.choice(("max 100000", "200000 100000")),
                  memory_max=dice.choice(("max", str(8 << 30))), read_bytes=load * dice.uniform(0, 1e6), reads=10,
                  refused=dice.choice((None, 0.0)))
            for at in range(dice.randint(1, 5))
        ),
        connections=tuple(
            Connection(f"10.0.0.{at + 2}:5201", busy=load * dice.uniform(0, 0.4), rwnd=load * dice.uniform(0, 0.1),
                       rtt=(rtt := dice.choice((0.1, 0.3, 2, 30, 90)) * dice.uniform(1, 1.5)), least_rtt=rtt * 0.8,
                       bytes=load * dice.uniform(0, 1e7), resent=dice.choice((0, 0, 0.2)))
            for at in range(dice.randint(0, 12))
        ),
        arrays=dice.choice(((), (Array(),), (Array(action="check"),))),
        tcp={
            "OutSegs": (sent := load * dice.uniform(10, 20_000)), "InSegs": sent,
            "RetransSegs": sent * dice.uniform(0, 0.003),
            "PassiveOpens": dice.uniform(0, 50), "TCPOFOQueue": sent * dice.uniform(0, 0.004),
        },
        vm={
            "pswpin": dice.choice((0, 0, dice.uniform(0, 10))), "pswpout": dice.choice((0, 0, dice.uniform(0, 200))),
            "allocstall_normal": dice.uniform(0, 5), "workingset_refault_file": load * dice.uniform(0, 500),
            "compact_stall": 90.0 if seed % 3 else 0.0,
        },
        dirty=(int(load * dice.uniform(0, 180_000)), int(load * dice.uniform(0, 20_000))),
        conntrack=dice.choice((None, (int(dice.uniform(0, 0.8) * 65_536), 65_536))),
        packets=tuple(load * dice.uniform(0, 30_000) for _ in range(cpus)),
        thermal=dice.choice((None, 0.0, dice.uniform(0, 0.03))),
        edac=dice.choice((None, 0.0)),
        irqs=tuple(load * dice.uniform(0, 10_000) for _ in range(cpus)),
        nodes=dice.choice(((), ((20_000, dice.uniform(0, 1200)), (20_000, dice.uniform(0, 1200))))),
        bursts=(0.0, *(dice.uniform(0, 0.9) for _ in range(9))),
        **_rare_figures(seed),
    )  # fmt: skip
    # No more CPUs wait than there are requests to wait for.
    return replace(machine, iowait=min(machine.iowait, sum(one.queue for one in machine.disks) / cpus))


def _rare_figures(seed: int) -> dict[str, Any]:
    """What only some hosts have, from dice of its own: figures that stand still or near a limit, and are no fault."""
    dice = random.Random(-1 - seed)
    return {
        "udp": {"InDatagrams": dice.uniform(0, 20_000), "RcvbufErrors": dice.choice((0, 0, dice.uniform(0, 0.9)))},
        # A sender of broadcasts that one fragment of ten thousand misses, and clocks that are steered.
        "fragments": {"ReasmReqds": (parts := dice.choice((0, 0, 9000))), "ReasmFails": parts / 20_000},
        "stepped": dice.choice((0.0, 0.0, 0.02, -0.05)),
        "neighbours_full": dice.choice((None, 0)),
        "ports": dice.choice((0, 20, 150)),
        "suspended": (),
        "log": dice.choice(
            ((), (), ("Buffer I/O error on dev sr0, logical block 0", "usb 1-1: reset", "I/O error, dev fd0, sector 0"))
        ),
        "processes": (
            Process(files=dice.choice((None, (900, 1024)))),
            # An old process that waits for a driver, but is woken now and then; one that rests.
            Process("qemu", "vm.scope", cpu=dice.uniform(0.02, 0.9), waits_in=dice.choice(("", "folio_wait_bit"))),
            Process("bash", "", cpu=0, chars=0, read=0),
            Process("kworker/u8:2-flush-8:0", "", cpu=dice.uniform(0, 0.85), chars=0, read=0, of_kernel=True),
        ),
        "mounts": dice.choice(
            (
                (),
                # Attributes that a program waits for now and then, and writeback that nobody waits for.
                (NfsMount(requests=dice.uniform(1, 40), rtt_ms=dice.uniform(0.3, 11), operation="GETATTR"),),
                (NfsMount(requests=dice.uniform(10, 900), queue_ms=dice.uniform(0, 50), rtt_ms=40, operation="WRITE"),),
            )
        ),
        "extra": {
            "/proc/loadavg": f"0.50 0.40 0.30 2/{dice.randint(200, 30_000)} 4711\n",
            "/proc/sys/kernel/pid_max": "32768\n",
        },
    }  # fmt: skip


def _disks(dice: random.Random, load: float) -> list[Disk]:
    found = []
    for name in dice.sample(sorted(_NAMES), dice.randint(1, 3)):
        rotational = name == "sda" and dice.random() < 0.5
        own = {"nvme0n1": 0.15, "vda": 1.2, "sda": 9.0 if rotational else 0.4}[name]
        wait = own * dice.uniform(0.4, 1.3)
        # At most two thirds of the time is there a request.
        most = 0.66 * 1000 / wait
        each = load * dice.uniform(0.05, 0.5) * most
        found.append(
            Disk(name, reads=each, writes=each * dice.uniform(0.1, 0.9), read_kib=dice.choice((4, 8, 16, 64)),
                 write_kib=dice.choice((4, 16, 64)), wait_ms=wait, rotational=rotational, number=_NAMES[name],
                 errors=dice.choice((0, 0, 0.2)))  # status queries of smartd count as failed commands
        )  # fmt: skip
    return found


def healthy_history(seed: int) -> Machine | Callable[[float], Machine]:
    """The same host; of some numbers one whose counters begin again, or with a disk that appears."""
    machine = healthy_machine(seed)
    kind = seed % 10
    if kind == 7:
        # A driver that is loaded again: its device counts from 0.
        again = replace(machine, disks=tuple(replace(one, reads=one.reads / 9, writes=0) for one in machine.disks))
        return lambda at: machine if at < 5 else again
    if kind == 8:
        new = replace(machine, disks=(*machine.disks, Disk("sdz", 5, 5, number="65:144")))
        return lambda at: machine if at < 5 else new
    return machine
