"""Causes where something that the kernel bounds is used up: buffers of datagrams, neighbours, ports, tasks."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.cause import BindingCause, asks_group, cause, is_below, limit_command, percent, plan_at_least
from advisor.diagnosis.observation import Observation
from advisor.host.numbers import count_noun
from advisor.observe.cgroups import unit_of_cgroup

_SNMP = "Linux kernel documentation, networking/snmp_counter; net/ipv4/udp.c (UDP_MIB_RCVBUFERRORS)"
_NETDATA_UDP = "netdata/netdata src/health/health.d/udp_errors.conf"
_SYSCTL = "Linux kernel documentation, networking/ip-sysctl"
LARGE_BUFFER = 8_388_608
UDP_DROPS_FROM = 10
"""A second, as netdata's alarm."""
PORTS_FROM = 0.95
TASKS_FROM = 0.95
FULL_FRAGMENTS_FROM = 0.75
"""Of the memory for fragments, at the end of the span: what found no room is not in it."""


@cause(
    id="net.udp-drops",
    resource="net",
    help="tuning",
    what="Datagrams that were dropped since the receive buffer of their socket was full (RcvbufErrors), or were not "
    "sent since there was no room for them (SndbufErrors).",
    threshold="10 a second (netdata: 10 on average over a minute), and 1 of 1,000 datagrams",
    sources=(_NETDATA_UDP, _SNMP),
)
def udp_drops(seen: Observation) -> Iterator[BindingCause]:
    rises = {
        field: (seen.rose("protocol", "Udp", field) or 0) + (seen.rose("udp6", "host", field) or 0)
        for field in ("RcvbufErrors", "InDatagrams", "SndbufErrors", "OutDatagrams")
    }
    seconds = seen.span.seconds_of("protocol")
    dropped, taken = rises["RcvbufErrors"], rises["InDatagrams"]
    if _are_many(dropped, taken, seconds):
        yield udp_drops.bind(
            dropped / (dropped + taken),
            f"{count_noun(dropped, 'datagram', 'was', 'were')} dropped: the receive buffer of a socket is full",
            of="datagrams",
            evidence={"dropped": dropped, "received": taken, "dropped_per_s": dropped / seconds},
            advice="The program reads too slowly, or its buffer is small (SO_RCVBUF, bounded by net.core.rmem_max).",
            commands=("ss -uamn", *plan_at_least(seen, "net.core.rmem_max", LARGE_BUFFER)),
        )
    refused, sent = rises["SndbufErrors"], rises["OutDatagrams"]
    if _are_many(refused, sent, seconds):
        yield udp_drops.bind(
            refused / (refused + sent),
            f"{count_noun(refused, 'datagram', 'was', 'were')} not sent: the send buffer of a socket, or the queue of "
            "a link, is full",
            of="datagrams",
            evidence={"not_sent": refused, "sent": sent, "not_sent_per_s": refused / seconds},
            advice="The program sends faster than the link takes it, or its buffer is small (SO_SNDBUF, bounded by "
            "net.core.wmem_max).",
            commands=("ss -uamn", "tc -s qdisc show", *plan_at_least(seen, "net.core.wmem_max", LARGE_BUFFER)),
        )


def _are_many(lost: int, others: int, seconds: float) -> bool:
    return bool(seconds) and lost / seconds >= UDP_DROPS_FROM and lost >= (lost + others) / 1000


@cause(
    id="net.reassembly",
    resource="net",
    help="tuning",
    what="Received IP fragments that could not be put together (ReasmFails), and how many of these for a part that "
    "never came (ReasmTimeout).",
    threshold="1 a second, and 1 of 1,000 fragments",
    sources=(
        _SYSCTL + " (ipfrag_high_thresh, ipfrag_time)",
        "net/ipv4/ip_fragment.c (ip_expire, ip_defrag); net/ipv6/reassembly.c",
    ),
)
def reassembly(seen: Observation) -> Iterator[BindingCause]:
    for family, key in (("IPv4", "net.ipv4.ipfrag_high_thresh"), ("IPv6", "net.ipv6.ip6frag_high_thresh")):
        failed, late, fragments = (
            seen.rose("fragments", family, field) or 0 for field in ("ReasmFails", "ReasmTimeout", "ReasmReqds")
        )
        seconds = seen.span.seconds_of("fragments")
        if not seconds or failed / seconds < 1 or failed < fragments / 1000:
            continue
        used, most = (seen.level("fragments", family, field) for field in ("memory", "most"))
        # One that was given up for its time is a failure, too; of the others each fragment is.
        is_loss = late >= failed / 2
        is_full = not is_loss and (used is None or not most or used >= FULL_FRAGMENTS_FROM * most)
        yield reassembly.bind(
            min(1.0, failed / max(failed, fragments)),
            f"{count_noun(failed, f'{family} packet')} could not be put together: a fragment never came"
            if is_loss
            else f"{count_noun(failed, f'{family} fragment')} could not be put together: "
            + ("the memory for them is full" if is_full else "they are damaged, or overlap"),
            of="fragments",
            evidence={"failed": failed, "given_up": late, "fragments": fragments, "memory": used, "memory_most": most},
            advice=f"Raise {key}, or send what fits the MTU of the way, so that nothing is fragmented."
            if is_full
            else "One lost fragment costs its whole packet: send what fits the MTU of the way (a smaller datagram, or "
            "jumbo frames on every hop), and look for what loses or damages packets.",
            commands=("nstat -az 'Ip*Reasm*'", f"advisor plan 'sysctl:{key}>=16777216'")
            if is_full
            else ("nstat -az 'Ip*Reasm*'", "ip -s link"),
            help=None if is_full else "repair",
        )


@cause(
    id="net.neighbours-full",
    resource="net",
    help="tuning",
    what="How often the table of neighbours (ARP, NDP) had no room for one more.",
    threshold="any: packets to who is not in it are dropped",
    sources=(_SYSCTL + " (neigh/default/gc_thresh3)", "net/core/neighbour.c, neigh_alloc (table_fulls)"),
    is_error=True,
    explains=("net.loss", "net.no-answer"),
)
def neighbours_full(seen: Observation) -> Iterator[BindingCause]:
    for family in seen.span.names("neighbour"):
        full = seen.rose("neighbour", family, "full")
        if not full:
            continue
        entries, most = (seen.level("neighbour", family, field) for field in ("entries", "most"))
        key = f"net.{family.lower()}.neigh.default.gc_thresh3"
        yield neighbours_full.bind(
            entries / most if entries is not None and most else 0.0,
            f"The table of {family} neighbours is full: it had no room {count_noun(full, 'time')}",
            of="entries",
            evidence={"times_full": full, "entries": entries, "most": most},
            advice="Raise gc_thresh1 to gc_thresh3 above the number of hosts of the networks, or make these smaller.",
            commands=(f"sysctl {key}", "ip -s neigh"),
        )


@cause(
    id="net.ports-used-up",
    resource="net",
    help="tuning",
    what="Local ports of net.ipv4.ip_local_port_range that are used towards one destination, TIME-WAIT included.",
    threshold="95 % of the range at the end of the span",
    sources=(_SYSCTL + " (ip_local_port_range)", "connect(2), EADDRNOTAVAIL"),
)
def ports_used_up(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("ports"):
        used, whole = (seen.level("ports", name, field) for field in ("used", "range"))
        # Of an earlier moment, or of a destination that is no longer the busiest.
        is_now = name in seen.span.samples[-1].gauges.get("ports", {})
        if used is None or not whole or used / whole < PORTS_FROM or not is_now:
            continue
        peer = name.rpartition(" > ")[2]
        yield ports_used_up.bind(
            used / whole,
            f"{percent(used / whole)} of the local ports are used towards {peer}: new connections to it fail",
            of="ports",
            device=peer,
            evidence={"used": used, "ports": whole, "from_and_to": name, "waiting": seen.level("sockets", "TCP", "tw")},
            advice="Keep connections open and use them again; a wider range (net.ipv4.ip_local_port_range), "
            "net.ipv4.tcp_tw_reuse=1, or more addresses on either side.",
            commands=("ss -tan state time-wait", "sysctl net.ipv4.ip_local_port_range net.ipv4.tcp_tw_reuse"),
        )


@cause(
    id="application.task-limit",
    resource="application",
    help="tuning",
    what="How often a control group was refused one more process or thread (pids.events); threads of the whole host "
    "against kernel.pid_max and kernel.threads-max.",
    threshold="any; of the host 95 % at the end of the span",
    sources=(
        "Linux kernel documentation, admin-guide/cgroup-v2, pids; cgroup-v1/pids",
        "Linux kernel documentation, admin-guide/sysctl/kernel (pid_max, threads-max); proc_loadavg(5)",
    ),
)
def task_limit(seen: Observation) -> Iterator[BindingCause]:
    tasks = seen.level("tasks", "host", "tasks")
    levels = {name: seen.level("tasks", "host", name) for name in ("pid_max", "threads-max")}
    limits = {name: limit for name, limit in levels.items() if limit is not None}
    name = min(limits, key=lambda one: limits[one], default="")
    if tasks is not None and name and limits[name] * TASKS_FROM <= tasks:
        yield task_limit.bind(
            tasks / limits[name],
            f"{tasks:,.0f} threads run of the {limits[name]:,.0f} that kernel.{name} admits: new ones are refused",
            of="limit",
            evidence={"tasks": tasks, **limits},
            advice="Find which program starts threads without end; a larger limit for many that are meant.",
            commands=(
                f"advisor plan 'sysctl:kernel.{name}>={2 * limits[name]:.0f}'",
                "ps -eo nlwp,pid,comm --sort=-nlwp",
            ),
        )
    rises = {path: seen.rose("cgroup", path, "tasks_refused") for path in seen.span.names("cgroup")}
    refused = {path: count for path, count in rises.items() if count}
    for path, count in refused.items():
        # A group counts what those below it were refused, too: the deepest is meant.
        if any(is_below(other, path) for other in refused):
            continue
        unit = unit_of_cgroup(path)
        tasks, most = (seen.level("cgroup", path, field) for field in ("tasks", "tasks_max"))
        yield task_limit.bind(
            tasks / most if tasks is not None and most else 1.0,
            f"{unit or path} was refused a process or thread {count_noun(count, 'time')}",
            of="limit",
            evidence={"cgroup": path, "refused": count, "tasks": tasks, "limit": most},
            advice="Raise TasksMax= of the service, unless it starts processes without end.",
            commands=limit_command(
                seen, path, "TasksMax,TasksCurrent", file="pids.max", controller="pids", file_v1="pids.max"
            ),
            asks=asks_group(seen, path, "cpu_ms"),
        )
