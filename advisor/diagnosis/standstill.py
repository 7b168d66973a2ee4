"""Causes that let nothing through: devices that complete no request, peers that acknowledge nothing, processes that
wait for either without end."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.cause import BINDS_FROM, UNANSWERED_FROM, Asker, BindingCause, asks_storage, cause, probe_command
from advisor.diagnosis.observation import Observation
from advisor.diagnosis.storage import BUSY_FROM, IOSTATS, follow_up, waited_share
from advisor.host.numbers import count_noun
from advisor.host.patterns import lazy_regex

_DM = "Linux kernel documentation, ABI/testing/sysfs-block-dm (suspended)"
_STATES = "proc_pid_stat(5) (state D), proc_pid_wchan(5)"
_TCP_INFO = "ss(8); tcp_info of include/uapi/linux/tcp.h (busy_time, bytes_acked)"
_SNMP = "Linux kernel documentation, networking/snmp_counter (TCPSynRetrans, ActiveOpens)"
MANY_ASKED_AGAIN = 10
FEW_ASKED_AGAIN = 2
"""Of a peer to which a connection is asked for at both ends of the span."""
SILENT_FROM = 0.9
_NOT_OF_A_DISK = lazy_regex(r"rpc_|nfs|cifs|smb|fuse|request_wait_answer|ceph|percpu_rwsem")
"""Places in the kernel where a process waits for a server, or for a file system that is frozen, not for a busy disk."""
_WAITS_FOR_CHILD = "vfork"
"""Where the parent of a process sleeps until that has begun its own program: wait_for_vfork_done of kernel/fork.c."""
_NAMED = 5


@cause(
    id="disk.stuck",
    resource="disk",
    help="repair",
    what="Requests that a device was given and did not complete; mappings that are suspended or have no path; "
    "processes that slept all the time where no signal wakes them, and asked for nothing.",
    threshold="requests in flight in every sample and none completed, or a mapping suspended or without an active path "
    "at both ends, with tasks that wait 10 % of the time for storage; or a process in state D at both ends without a "
    "byte or a tick between, while no disk is busy or where it waits for a server",
    sources=(IOSTATS, _DM, _STATES),
    is_error=True,
    explains=("application.serial", "memory.dirty-limit"),
)
def stuck(seen: Observation) -> Iterator[BindingCause]:
    """Storage that answers nothing: no path left, a suspended mapping, a server that is gone."""
    asleep = _list_sleepers(seen)
    if any(one.utilisation >= BUSY_FROM for one in seen.loads.values()):
        asleep = {name: place for name, place in asleep.items() if _NOT_OF_A_DISK.search(place)}
    sleepers = list(asleep)
    names = ", ".join(sleepers[:_NAMED]) or None
    asks = Asker(None, sleepers[0], None) if sleepers else None
    waits = waited_share(seen) >= BINDS_FROM
    found = dict.fromkeys(_list_suspended(seen), "holds its requests back: it is suspended") if waits else {}
    if waits or sleepers:
        found |= dict.fromkeys(_list_pathless(seen), "has no path left, and its requests wait for one")
    if waits:
        # A driver that lost count says so of an idle device for ever: another one may be what is waited for.
        others = max((one.utilisation for one in seen.loads.values()), default=0.0)
        if sleepers or others < waited_share(seen) / 2:
            found |= {name: "completes none of its requests" for name in _list_silent(seen) if name not in found}
    above = {one for name in found for one in seen.stack.above(name)}
    for name, what in found.items():
        if name in above:
            continue
        is_mapping = name.startswith("dm-") or name not in seen.stack.devices
        tool = "multipath -ll" if "path" in what else "dmsetup status --noflush"
        yield stuck.bind(
            waited_share(seen),
            f"{name} {what}",
            device=name,
            evidence={
                "in_flight": seen.level("disk", name, "in_flight"),
                "stalled_share": seen.stall("io"),
                "processes": names,
            },
            advice="Find what it waits for: a suspended mapping, a thin pool without space, lost paths "
            "(queue_if_no_path), a controller that resets or a server that is gone. Nothing on it goes on until then.",
            commands=("dmsetup info", tool) if is_mapping else (f"journalctl -k --grep {name}",),
            asks=asks or asks_storage(seen, name),
            explains=(f"disk.slow-member {name}", f"array.degraded {name}", *follow_up(seen, name)),
        )
    if found or not sleepers:
        return
    places = [place for place in asleep.values() if place != "unknown"]
    yield stuck.bind(
        1.0,
        f"{count_noun(len(sleepers), 'process', 'sleeps', 'sleep')} without end, and no signal wakes "
        f"{'it' if len(sleepers) == 1 else 'them'}: {', '.join(sleepers[:_NAMED])}",
        evidence={
            "processes": names,
            "waits_in": max(places, key=places.count, default=None),
            "stalled_share": seen.stall("io"),
        },
        advice="What it waits for does not answer: a server of a hard mount, a frozen file system, a lock of the "
        "kernel.",
        commands=("journalctl -k --grep 'blocked for more than'", "grep . /proc/[0-9]*/wchan"),
        asks=asks,
    )


def _list_suspended(seen: Observation) -> list[str]:
    """Mappings that were suspended whenever they were looked at, twice or more."""
    states: dict[str, list[str]] = {}
    for sample in seen.span.samples:
        for name, words in sample.words.get("mapping", {}).items():
            states.setdefault(name, []).append(words.get("suspended", ""))
    return [name for name, found in states.items() if len(found) > 1 and set(found) == {"1"}]


def _list_pathless(seen: Observation) -> list[str]:
    """Multipath maps of which no path was active whenever they were looked at, twice or more."""
    looks = [sample.words["path"] for sample in seen.span.samples if "path" in sample.words]
    active = {name.partition(" ")[0] for look in looks for name, words in look.items() if words["state"] == "active"}
    every = {name.partition(" ")[0] for look in looks[-1:] for name in look}
    return sorted(every - active) if len(looks) > 1 else []


def _list_silent(seen: Observation) -> list[str]:
    """Devices with requests in flight in every sample, of which none was completed. Of a device in use completions
    are seen; some drivers count requests in flight that are none, but nobody waits for these."""
    found = []
    for name in seen.stack.devices:
        levels = seen.span.levels("disk", name, "in_flight")
        rises = [seen.rose("disk", name, field) for field in ("reads", "writes", "discards", "flushes")]
        known = [one for one in rises if one is not None]
        if len(levels) == len(seen.span.samples) and min(levels, default=0) > 0 and known and not any(known):
            found.append(name)
    return found


def _list_sleepers(seen: Observation) -> dict[str, str]:
    """``NAME (PID)`` of processes that slept uninterruptibly at every look and did nothing between, with the place in
    the kernel: two looks or more, of which the first and the last are as far apart as the span."""
    found = {}
    for name in seen.span.names("process"):
        rises = [seen.rose("process", name, field) for field in ("cpu_ms", "read_bytes", "write_bytes", "read_chars")]
        # What is hidden of other users' processes cannot be said to stand still.
        if any(rises) or rises[0] is None or rises[1] is None:
            continue
        looks = [sample.words.get("process", {}).get(name) for sample in seen.span.samples if "process" in sample.words]
        if _WAITS_FOR_CHILD in (seen.word("process", name, "waits_in") or ""):
            continue
        if len(looks) > 1 and all(words is not None and "waits_in" in words for words in looks):
            process = f"{seen.word('process', name, 'name')} ({name.partition('@')[0]})"
            found[process] = seen.word("process", name, "waits_in") or "unknown"
    return found


@cause(
    id="application.lock",
    resource="application",
    help="application",
    what="Processes that wait for a lock of a file, and processes of PostgreSQL that wait for one of its own.",
    threshold="one of PostgreSQL, or two for one file, at both ends of the span; locks between threads are not seen",
    sources=("proc_locks(5), flock(2)", "PostgreSQL, update_process_title; src/backend/storage/lmgr/proc.c"),
)
def lock(seen: Observation) -> Iterator[BindingCause]:
    """Processes that wait for each other, while CPUs and disks have room."""
    looks = [sample.words for sample in seen.span.samples if "process" in sample.words or "lock" in sample.words]
    if len(looks) < 2:
        return
    waiters: dict[str, list[str]] = {}
    for name in looks[-1].get("process", {}):
        if all(look.get("process", {}).get(name, {}).get("locked") for look in looks):
            waiters.setdefault("PostgreSQL", []).append(name.partition("@")[0])
    for pid, words in looks[-1].get("lock", {}).items():
        if all(look.get("lock", {}).get(pid, {}).get("file") == words["file"] for look in looks):
            waiters.setdefault(words["file"], []).append(pid)
    names = {name.partition("@")[0]: name for name in seen.span.names("process")}
    for what, pids in waiters.items():
        is_database = what == "PostgreSQL"
        if len(pids) < (1 if is_database else 2):
            continue
        first = names.get(pids[0], "")
        process = f"{seen.word('process', first, 'name') or 'process'} ({pids[0]})"
        holder = seen.word("lock", pids[0], "holder")
        yield lock.bind(
            1.0,
            f"Processes wait for each other: {count_noun(len(pids), 'session')} of PostgreSQL for a lock"
            if is_database
            else f"Processes wait for each other: {process} and others for a lock of process {holder}",
            evidence={"waiting": len(pids), "processes": ", ".join(pids[:_NAMED]), "holder": holder},
            advice="Find who has the lock and what it does: a transaction that was left open, or one long piece of "
            "work that is done under it. No tuning of the kernel shortens it.",
            commands=(
                "psql -c 'select pid, pg_blocking_pids(pid), now() - query_start, query from pg_stat_activity where "
                "cardinality(pg_blocking_pids(pid)) > 0'",
            )
            if is_database
            else ("lslocks", f"perf top -p {holder}"),
            asks=Asker(seen.word("process", first, "unit"), process, None),
        )


@cause(
    id="net.no-answer",
    resource="net",
    help="repair",
    what="Established connections that have sent data of which nothing is acknowledged, and requests for a "
    "connection that get no answer.",
    threshold="data under way 90 % of the time, segments sent again, not a byte acknowledged; 2 requests sent again "
    "and one peer asked at both ends, or 10 and half of all requests; or half as many segments sent again as sent, "
    "and 10",
    sources=(_TCP_INFO, _SNMP),
    explains=("net.loss", "net.round-trip", "net.link-saturated", "net.send-buffer"),
)
def no_answer(seen: Observation) -> Iterator[BindingCause]:
    """A peer that is gone, or a way that lets nothing through: too few segments are sent again to be a share."""
    window_ms = seen.span.seconds_of("tcp") * 1000
    found = []
    for name in seen.span.names("tcp"):
        busy, resent, acknowledged = (
            seen.rose("tcp", name, field) for field in ("busy_ms", "retransmitted", "bytes_acked")
        )
        if busy and window_ms and busy >= SILENT_FROM * window_ms and resent and acknowledged == 0:
            found.append((name, resent))
    if not found:
        yield from _unanswered(seen)
        return
    name, resent = max(found, key=lambda one: one[1])
    peer = name.rpartition(" > ")[2]
    yield no_answer.bind(
        1.0,
        f"{peer} acknowledges nothing that is sent to it",
        device=peer,
        evidence={"connections": len(found), "connection": name, "retransmitted": resent},
        advice="The peer is gone, or something on the way drops all packets of this size: try it with ping -M do -s.",
        commands=(probe_command(peer), "ss -tin"),
    )


def _unanswered(seen: Observation) -> Iterator[BindingCause]:
    """Connections that are asked for in vain; else segments of ones that have ended, or that are not listed."""
    names = (("TcpExt", "TCPSynRetrans"), ("Tcp", "ActiveOpens"), ("Tcp", "RetransSegs"), ("Tcp", "OutSegs"))
    again, opens, resent, sent = (seen.rose("protocol", *name) or 0 for name in names)
    peers = [name for name in seen.span.names("asked") if len(seen.span.levels("asked", name, "sockets")) > 1]
    peer = peers[0] if peers else None
    is_asked = again >= (FEW_ASKED_AGAIN if peer else max(MANY_ASKED_AGAIN, opens / 2))
    resent -= again
    if not is_asked and (resent < MANY_ASKED_AGAIN or resent < UNANSWERED_FROM * sent):
        return
    yield no_answer.bind(
        again / (again + opens) if is_asked else min(1.0, resent / max(1, sent)),
        f"{peer or 'A peer'} does not answer requests for a connection: {again:,} were sent again"
        if is_asked
        else f"Hardly anything that is sent is acknowledged: {count_noun(resent, 'segment')} sent again",
        of="requests" if is_asked else "segments",
        device=peer,
        evidence={"asked_again": again, "asked": opens, "retransmitted": resent, "sent": sent}
        | ({"peers": ", ".join(peers[:_NAMED])} if peers else {}),
        advice="The peer is down, its address is wrong, or a firewall on the way drops what is sent to it: a service "
        "that is stopped on a host that runs refuses at once."
        if is_asked
        else "A peer or its service is gone while connections to it last: they end by net.ipv4.tcp_retries2.",
        commands=(
            *((probe_command(peer),) if is_asked and peer else ()),
            "ss -tnp state syn-sent" if is_asked else "ss -tanop",
        ),
    )
