"""What a profile would cost on this very host, and what nobody knows about it yet."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise

from advisor.facts.host_facts import Facts
from advisor.planning.guards import LLT_PACKET_BYTES, MIB
from advisor.profiles.profile import Profile
from advisor.recommend import infoscale
from advisor.recommend.outlook import Outlook
from advisor.rules.queries import JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS, NUMA_PINNING, by_name, links_below
from advisor.rules.workload import DeclaredWorkload


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
