"""What the articles behind the profiles measured, with which workload. Charts without numbers are marked as such."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise

from advisor.facts.host_facts import Facts
from advisor.planning.guards import LLT_PACKET_BYTES, MIB
from advisor.profiles.profile import Profile
from advisor.recommend import infoscale, iris, iscsi
from advisor.recommend.records import Figure, Outlook
from advisor.rules import sources
from advisor.rules.queries import (
    BEEGFS_NVME,
    JUMBO_FRAMES,
    LLT_FLOW_CONTROL,
    NETWORK_BUFFERS,
    NUMA_PINNING,
    by_name,
    links_below,
)
from advisor.rules.workload import DeclaredWorkload

_FSS_BASE = Figure(
    "Mirrored inside one zone: about half of the 2,000 IOPS (8 MB/s) of a local disk; across zones less still.",
    "4 KiB random, half reads, half writes",
    sources.WHITE_PAPER,
)

FIGURES: Mapping[str, tuple[Figure, ...]] = {
    JUMBO_FRAMES: (
        Figure(
            "MTU 9000 was the best of the three tunings; the paper has charts and no numbers.",
            "4 KiB sequential, half reads, half writes, mirrored over TCP inside one zone",
            sources.WHITE_PAPER,
        ),
        Figure(
            "A datagram of 8,192 bytes crosses MTU 1500 as 6 fragments; over an MTU mismatch TCP went on with smaller "
            "segments while datagrams of 8,972 bytes were all lost.",
            "UDP datagrams and TCP between two network namespaces",
            sources.MEASURED_MTU,
        ),
    ),
    NETWORK_BUFFERS: (
        Figure(
            "The buffers were slightly the best of the three tunings, with little difference; charts and no numbers.",
            "64 KiB sequential, half reads, half writes, mirrored over UDP inside one zone",
            sources.WHITE_PAPER,
        ),
        Figure(
            "Datagrams held at MTU 9000 and 1500: 12 and 15 by the default of 212,992 bytes, 51 and 61 by four times "
            "that (851,968), 504 and 606 by 8,388,608. One LLT window is 50.",
            "bursts of 8 KiB datagrams to a receiver that does not read",
            sources.MEASURED_UDP,
        ),
    ),
    LLT_FLOW_CONTROL: (
        Figure(
            "Twice the high-water marks (1,000 to 2,000 packets) was the best of the three tunings; charts and no "
            "numbers.",
            "4 KiB sequential, half reads, half writes, mirrored over UDP across two zones",
            sources.WHITE_PAPER,
        ),
        Figure("Between two zones of one region the round trip took 1.16 ms and 1.12 ms.", "ping", sources.IRIS_GP3),
        _FSS_BASE,
    ),
    BEEGFS_NVME: (
        Figure(
            "132 GB/s read and 121 GB/s written, 97 % and 89 % of the 136.4 GB/s of eleven EDR links.",
            "1 MiB sequential, a file for each of 1,024 and 256 threads on 32 clients, 33 targets, three to a file",
            sources.DELL_BEEGFS,
        ),
        Figure(
            "3.6 million IOPS written and 3.5 million read.",
            "4 KiB random, direct, a file for each of 512 and 1,024 threads",
            sources.DELL_BEEGFS,
        ),
        Figure(
            "Four drives wrote 5.1 GB/s as RAID 0 and 3.4 GB/s as RAID 10.",
            "dd, 1 MiB direct, a file of 10 GiB on one target",
            sources.DELL_BEEGFS,
        ),
    ),
    NUMA_PINNING: (
        Figure(
            "Access across the nodes cost 10 % and more; with services, links and drives bound to their nodes the "
            "system reached 97 % (read) and 89 % (write) of what its network carries.",
            "1 MiB sequential by 1,024 and 256 threads on six servers of two nodes",
            sources.DELL_BEEGFS,
        ),
    ),
    "web-server": (
        Figure(
            "Before its ports ran out, a host opened 28,232 connections to one address and port with the kernel's "
            "range, 49,152 with 16384 to 65535. Of a queue asked for at 4,096, 129 connections could wait with "
            "somaxconn 128, 4,097 with 4096.",
            "connections to a server on the same host, counted; no time was measured",
            sources.MEASURED_COUNTS,
        ),
    ),
    **infoscale.FIGURES,
    **iris.FIGURES,
    **iscsi.FIGURES,
}


# What a profile would cost on this very host, and what nobody knows about it yet.


def hurts(profile: Profile, outlook: Outlook, facts: Facts, command: str | None = None) -> tuple[str, ...]:
    """When the plan of ``command`` would hurt: on this host first, then in general. Bytes are reported in MiB."""
    given = _parse_settings(command)
    general = profile.hurts_when
    if "bytes" in given:
        usual = int(str(profile.parameters["bytes"].default))
        for words in (f"{usual:,} bytes", f"{usual // MIB} MiB"):
            general = general.replace(words, f"{int(given['bytes']):,} bytes")
    return (*_on_this_host(profile, outlook, facts, given), general)


def _parse_settings(command: str | None) -> Mapping[str, str]:
    """The ``--set`` pairs of an offered command."""
    pairs = (value.partition("=") for option, value in pairwise(shlex.split(command or "")) if option == "--set")
    return {name: value for name, _, value in pairs}


def _on_this_host(profile: Profile, outlook: Outlook, facts: Facts, given: Mapping[str, str]) -> Iterator[str]:
    parts = {profile.name, *profile.inherits}
    plan = outlook.plan
    # The links that the offered plan changes: those of its `links`, with all below them; else those of the plan.
    if "links" in given:
        links = by_name(facts)
        at_risk = sorted({each.name for name in given["links"].split(",") for each in links_below(name, links)})
    else:
        changes = outlook.plan.changes if outlook.plan else ()
        at_risk = sorted({one.tunable.split(":")[1] for one in changes if one.risk == "link"})
    if at_risk:
        yield f"{', '.join(at_risk)}: may lose its traffic for a moment, and for good where a peer carries less."
    yield from (
        f"{note[:1].upper()}{note[1:]}."
        for note in (plan.notes if plan and "bytes" not in given else ())
        if note.startswith("memory")
    )
    if NETWORK_BUFFERS in parts and facts.memory.sockets.udp and facts.memory.available_bytes:
        need = facts.memory.sockets.udp * 2 * int(given.get("bytes") or str(profile.parameters["bytes"].default))
        share = need / facts.memory.available_bytes
        yield f"{facts.memory.sockets.udp} UDP sockets could hold {need // MIB} MiB, {share:.1%} of what is available."
    highest = max(facts.llt.flow_control.get("highwater", 0), 0) if facts.llt else 0
    if LLT_FLOW_CONTROL in parts and highest:
        yield f"{2 * highest * LLT_PACKET_BYTES / MIB:.1f} MiB for each peer once its queue is full."
    sizes = [node.memory_bytes for node in facts.numa.nodes if node.memory_bytes]
    if NUMA_PINNING in parts and len(sizes) > 1:
        yield f"A service bound to the smallest node has {min(sizes) // MIB} MiB and no more."


def unknown(profile: Profile, outlook: Outlook, facts: Facts, workload: DeclaredWorkload | None) -> tuple[str, ...]:
    """What would make the judgement firmer, and how to learn it."""
    return tuple(dict.fromkeys(_list_unknown(profile, outlook, facts, workload)))


def _list_unknown(profile: Profile, outlook: Outlook, facts: Facts, workload: DeclaredWorkload | None) -> Iterator[str]:
    parts = {profile.name, *profile.inherits}
    yield from infoscale.untold(profile.name, facts, workload)
    if workload is None and profile.name != NUMA_PINNING and profile.name not in facts.roles:
        yield "what runs here: declare it with --workload"
    if JUMBO_FRAMES in parts:
        yield "what the peers and switches carry: advisor probe PEER"
    if parts & {NETWORK_BUFFERS, LLT_FLOW_CONTROL} and workload is not None and workload.rtt_seconds is None:
        yield "the round-trip time: advisor probe PEER, then rtt= in --workload"
    if NETWORK_BUFFERS in parts and facts.counters.udp_receive_buffer_errors is None:
        yield "whether datagrams were dropped: /proc/net/snmp could not be read"
    if LLT_FLOW_CONTROL in parts and facts.llt is not None:
        yield "whether LLT's flow control ever fires: watch lltstat -v, whose counters are not documented in public"
    if NUMA_PINNING in parts and len(facts.numa.nodes) > 1:
        yield "whether the services use their own node's devices: numastat, and --set units= in the plan"
    for one in outlook.plan.skipped if outlook.plan else ():
        if one.state == "unknown":
            yield f"{one.tunable}: {one.reason}"
