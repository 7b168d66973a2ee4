"""iSCSI sessions: their state, timeouts, queues and negotiated sizes, and how multipath chooses between them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.block.block import Array, PathLoad
from advisor.facts.remote.iscsi import Iscsi, IscsiSession
from advisor.facts.settings.site_settings import SiteSetting
from advisor.facts.unknown import ISCSID_CONF
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import ISCSI, ISCSI_MULTIPATH
from advisor.rules.remote import multipath
from advisor.rules.remote.iscsi import sessions_of
from advisor.rules.remote.multipath import FOR_EVER, fault_finder
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, SetTunable, plan_profile, rule

ORDER = 150

LATE_SWITCH_REQUESTS = 100
CMDS_MAX = range(2, 2049)
_CMDS, _DEPTH = "node.session.cmds_max", "node.session.queue_depth"
_SMALL_FIRST_BURST_BYTES = 64 << 10
_SMALL_BURST_BYTES = 256 << 10
_WAIT_SECONDS = 120
_NEW_FILE = f"where {multipath.CONF} does not exist, the plan prints the lines for a new one as a manual step"
_REQUESTS_SINCE_ADDED = 10_000
_REQUESTS_IN_INTERVAL = 1_000


@rule(
    id="iscsi.session-lost",
    severity="critical",
    title="An iSCSI session is not logged in",
    what="The state of each session: LOGGED_IN is the one that works.",
    why="A session that is down serves nothing, and no setting makes it faster.",
    helps_when="Always, before any measurement.",
    hurts_when="The storage is down on purpose: then wait for it.",
    sources=(sources.ISCSID_CONF,),
)
def not_logged_in(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    lost = tuple(one for one in sessions_of(facts) if one.state not in (None, "LOGGED_IN"))
    if not lost:
        return None
    return not_logged_in.found(
        why="The kernel has lost these sessions: I/O to their disks waits or fails, and other paths carry all.",
        evidence={
            "sessions": tuple(one.name for one in lost),
            "detail": tuple(f"{one.name} to {one.target or '?'}: {one.state}" for one in lost),
        },
        remedy=(
            RunShell("iscsiadm -m session -P 1", "see the sessions"),
            RunShell("journalctl -u iscsid", "read what open-iscsi says about them"),
            *(
                RunShell(f"advisor probe {shlex.quote(portal)}", f"see whether {portal} answers")
                for portal in _portals(lost)
            ),
        ),
    )


def _portals(sessions: Iterable[IscsiSession]) -> tuple[str, ...]:
    found = (connection.address or connection.persistent_address for one in sessions for connection in one.connections)
    return tuple(dict.fromkeys(address for address in found if address))


def _keep_waiting(facts: Facts) -> Iterator[SetTunable]:
    """The timeout of new records and of those that are there; a session applies it when it logs in."""
    for path, _ in _files(facts.iscsi) if facts.iscsi else ():
        yield SetTunable(f"file:{path}:node.session.timeo.replacement_timeout", str(_WAIT_SECONDS), "at-least")


def _list_timeouts(sessions: Iterable[IscsiSession]) -> tuple[str, ...]:
    return tuple(
        f"{one.name} ({', '.join(one.disks)}): "
        + ("for ever" if (one.recovery_seconds or 0) < 0 else f"{one.recovery_seconds} s")
        for one in sessions
    )


@rule(
    id="iscsi.replacement-timeout",
    severity="warning",
    title="The replacement timeout does not fit the paths",
    what="recovery_tmo of each session that has disks, with and without another path in a multipath map above: above "
    "30 s (or for ever) with one, below 60 s without. Not where a map of one path queues (queue_if_no_path).",
    why="With multipath a short timeout lets the other path take over; without it a long one rides an interruption "
    "out. The default of 120 s is for the latter; 5 to 15 s with multipath is common practice.",
    helps_when="A link, switch or storage controller fails or restarts.",
    hurts_when="Too short with multipath: a storage whose controllers take longer to change over loses all paths at "
    "once, unless no_path_retry queues.",
    sources=(sources.ISCSID_CONF, sources.OPEN_ISCSI),
)
def replacement_timeout(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    fault_of = fault_finder(facts)
    found: dict[str | None, list[IscsiSession]] = {}
    for one in sessions_of(facts):
        if (seconds := one.recovery_seconds) is not None:
            fault = fault_of("iscsi", one.disks, FOR_EVER if seconds < 0 else seconds)
            found.setdefault(fault, []).append(one)
    long, short = found.get("late", ()), found.get("early", ())
    if long:
        yield replacement_timeout.found(
            severity="advice",
            title="iSCSI paths hold I/O long before they fail over",
            why="When a link fails, requests wait in the session for this long before multipath may send them by "
            "another path.",
            evidence={"sessions": tuple(one.name for one in long), "detail": _list_timeouts(long)},
            remedy=(
                plan_profile(ISCSI_MULTIPATH),
                "it sets iscsid.conf and each node record; then log out and in, one path after the other",
            ),
        )
    if short:
        yield replacement_timeout.found(
            title="iSCSI disks without another path fail too early",
            why="Nothing stands behind these sessions: when one is away for longer, the file system gets I/O errors "
            "and goes read-only.",
            evidence={"sessions": tuple(one.name for one in short), "detail": _list_timeouts(short)},
            remedy=(*_keep_waiting(facts), "then log out and in with the file systems unmounted"),
        )


def _setting_number(settings: Mapping[str, str], key: str) -> int | None:
    text = settings.get(key, "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) else None


def _queue_faults(settings: Mapping[str, str]) -> Iterator[str]:
    commands, depth = _setting_number(settings, _CMDS), _setting_number(settings, _DEPTH)
    if commands is not None and commands not in CMDS_MAX:
        yield f"cmds_max {commands} is outside 2 to 2048"
    elif commands is not None and commands & (commands - 1):
        yield f"cmds_max {commands} is no power of two"
    if commands is not None and depth is not None and depth > commands:
        yield f"queue_depth {depth} is above cmds_max {commands}"


def _list_edits(iscsi: Iscsi) -> Iterator[SetTunable]:
    for path, settings in _files(iscsi):
        # The settings to change and their new values: commands raised to the depth, the depth cut only at the maximum.
        commands, depth = _setting_number(settings, _CMDS), _setting_number(settings, _DEPTH)
        if commands is None or not any(_queue_faults(settings)):
            changed_settings = {}
        else:
            power = min(1 << (max(commands, depth or 0, CMDS_MAX.start) - 1).bit_length(), CMDS_MAX.stop - 1)
            cut = {_DEPTH: power} if depth is not None and depth > power else {}
            changed_settings = ({_CMDS: power} if power != commands else {}) | cut
        for key, value in changed_settings.items():
            yield SetTunable(f"file:{path}:{key}", str(value))


def _files(iscsi: Iscsi) -> tuple[tuple[str, Mapping[str, str]], ...]:
    return ((ISCSID_CONF, iscsi.settings), *((node.path, node.settings) for node in iscsi.nodes))


def portal_of(text: str) -> str:
    """The portal as iscsiadm takes it, from the name of its record: address,port,group."""
    address, _, rest = text.partition(",")
    port = rest.partition(",")[0]
    host = f"[{address}]" if ":" in address and not address.startswith("[") else address
    return f"{host}:{port}" if port else text


@rule(
    id="iscsi.queue-depth",
    severity="advice",
    title="iSCSI session and disk queue depths do not fit",
    what="cmds_max and queue_depth of iscsid.conf and of the node records (defaults 128 and 32).",
    why="cmds_max is the session's, queue_depth that of each of its disks.",
    helps_when="More outstanding requests are wanted than the session takes, at 10 Gbit/s and more.",
    hurts_when="Larger numbers fill the storage's own queue: it answers queue full, and latency grows.",
    sources=(sources.ISCSID_CONF,),
)
def queues(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    iscsi = facts.iscsi
    if iscsi is None:
        return None
    found = tuple(f"{path}: {fault}" for path, settings in _files(iscsi) for fault in _queue_faults(settings))
    if not found:
        return None
    return queues.found(
        why="open-iscsi takes powers of two from 2 to 2048 for the commands of a session; a disk cannot have more "
        "outstanding than its session.",
        evidence={"detail": found},
        remedy=(*_list_edits(iscsi), "then log out of each target and in again"),
    )


def _small_sizes(session: IscsiSession) -> Iterator[str]:
    if session.first_burst_bytes is not None and session.first_burst_bytes < _SMALL_FIRST_BURST_BYTES:
        yield f"FirstBurstLength {session.first_burst_bytes}"
    if session.max_burst_bytes is not None and session.max_burst_bytes < _SMALL_BURST_BYTES:
        yield f"MaxBurstLength {session.max_burst_bytes}"
    for one in session.connections:
        if one.max_recv_bytes is not None and one.max_recv_bytes < _SMALL_FIRST_BURST_BYTES:
            yield f"MaxRecvDataSegmentLength {one.max_recv_bytes}"
    if session.immediate_data is False:
        yield "ImmediateData No"


@rule(
    id="iscsi.small-bursts",
    severity="advice",
    title="A session negotiated small bursts",
    what="First and maximum burst, largest segment and immediate data as negotiated: below 64 KiB, 256 KiB and 64 KiB, "
    "or off. open-iscsi offers 256 KiB, 16 MiB and 256 KiB.",
    why="The smaller of both ends' offers holds. Less than these costs a round trip more for larger writes.",
    helps_when="Large sequential requests, most of all over a longer round trip.",
    hurts_when="The storage has little memory for each session.",
    sources=(sources.ISCSID_CONF, sources.RFC_ISCSI),
)
def small_bursts(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = {one: sizes for one in sessions_of(facts) if (sizes := tuple(_small_sizes(one)))}
    if not found:
        return None
    is_wanted = workload is not None and workload.has_large_blocks and workload.access == "sequential"
    return small_bursts.found(
        severity="advice" if is_wanted else "info",
        why="What one end offered was negotiated down to the smaller of the two: large blocks travel in more pieces, "
        "and each piece that was not sent along has to be asked for first. The profile sets what this host offers to "
        "new records; the storage has to offer it too (LIO: param/ of the portal group), and a new login to follow: "
        "iscsiadm -m session -P 3.",
        evidence={
            "sessions": tuple(one.name for one in found),
            "detail": tuple(f"{one.name}: {', '.join(sizes)}" for one, sizes in found.items()),
        },
        remedy=plan_profile(ISCSI),
        intent=not is_wanted,
    )


@rule(
    id="iscsi.data-digest",
    severity="info",
    title="A session computes data digests",
    what="DataDigest of each connection, as negotiated.",
    why="Digests are end-to-end checksums of iSCSI's own.",
    helps_when="One CPU is busy with the session before its link is.",
    hurts_when="Without it, damage between the ends goes unseen where TCP's checksum misses it.",
    sources=(sources.RFC_ISCSI, sources.ISCSID_CONF),
)
def digests(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(one for one in sessions_of(facts) if any(wire.data_digest for wire in one.connections))
    if not found:
        return None
    return digests.found(
        why="The processor computes a CRC32C of every byte at both ends. It finds what TCP's checksum lets pass, and "
        "costs a share of a CPU for each session.",
        evidence={"sessions": tuple(one.name for one in found)},
        remedy="keep it where data passes routers or switches that are not trusted to keep it whole; else switch "
        "node.conn[0].iscsi.DataDigest off at both ends, and measure both: advisor bench, advisor compare",
        intent=True,
    )


@rule(
    id="iscsi.path-selector",
    severity="advice",
    title="Round robin over iSCSI paths of different speed",
    what="The path selector of multipath maps over iSCSI disks (dmsetup table), and the speeds of the links below.",
    why="service-time, multipath's default, sends each request to the path that will have answered first.",
    helps_when="Paths of one map over links of different speed.",
    hurts_when="The maker of the storage asks for round robin in its device section: that section wins.",
    sources=(sources.MULTIPATH_CONF, sources.OPENFILER),
)
def path_selector(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for array in facts.arrays:
        if array.manager == "dm-multipath" and multipath.selector(array) == "round-robin":
            speeds = multipath.link_speeds(facts, array)
            if len(set(speeds.values())) > 1:
                yield path_selector.found(
                    title=f"{array.name} has iSCSI paths of different speed",
                    why="Round robin gives each path the same number of requests, so all wait for the slowest; "
                    "service-time, which is multipath's default, does not.",
                    evidence={
                        "arrays": (array.name,),
                        "links": tuple(speeds),
                        "detail": tuple(f"{name}: {speed:,} Mbit/s" for name, speed in speeds.items()),
                    },
                    remedy=plan_profile(ISCSI_MULTIPATH),
                )


def _turn_words(facts: Facts, array: Array) -> tuple[str, ...]:
    """What says that a map changes its path late, by its table or by the line that holds; nothing where none does."""
    won, turn = multipath.winning(facts, array, multipath.turn_key(facts)), multipath.requests_per_turn(array)
    if turn is None and not multipath.sets_one_itself(facts):
        turn = int(won.value) if won is not None and re.fullmatch(r"[0-9]{1,9}", won.value, re.ASCII) else None
        if won is None or turn is None or turn < LATE_SWITCH_REQUESTS:
            return ()
        return (f"{array.name}: {_describe_line(won)}",)
    if turn is None or turn < LATE_SWITCH_REQUESTS:
        return ()
    known = [word for word in multipath.product(facts, array) if word]
    by = (
        _describe_line(won)
        if won is not None
        else "set by no file: multipath's own default, or its built-in entry for "
        + (" ".join(known) if known else "the storage")
    )
    return (f"{array.name}: {turn} requests a turn in device-mapper's table; {by}",)


def _describe_line(won: SiteSetting) -> str:
    return f"{won.path}:{won.line}: {won.key} = {won.value}" + (f" for {won.scope}" if won.scope else "")


@rule(
    id="iscsi.late-path-switch",
    severity="advice",
    title="multipath switches paths after many requests",
    what="The requests that a path gets in a turn, by the table of each multipath map over iSCSI disks (dmsetup "
    "table); where it cannot be read, rr_min_io_rq in the section of multipath.conf that holds for the map, on kernels "
    "before 4.6 (rr_min_io before 2.6.31). 100 and more.",
    why="With fewer requests outstanding than that, the paths work one after the other and not side by side. Since "
    "Linux 4.6 the kernel sets the count to 1 itself, whatever a file says.",
    helps_when="Sequential work over several links of the same speed, on an old kernel.",
    hurts_when="The storage's controllers hand a volume over at each change of path (an old active/passive array).",
    sources=(sources.OPENFILER, sources.MULTIPATH_CONF, sources.DM_ROUND_ROBIN),
)
def late_switch(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(text for one in multipath.iscsi_maps(facts) for text in _turn_words(facts, one))
    if facts.iscsi is None or not found:
        return None
    return late_switch.found(
        why="So many requests go down one path before the next has its turn that few are ever on the others: the "
        "article had 128.0 MB/s over four 1 GbE paths while ESXi changed the path after 1,000 requests, and 394.5 with "
        "that and the rest of the transport put right. Linux sends one request a turn by itself since 4.6; this kernel "
        "takes what is configured.",
        evidence={"detail": found, "disks": facts.iscsi.multipath_disks},
        remedy=(plan_profile(ISCSI_MULTIPATH), *([] if multipath.is_configured(facts) else [Decide(_NEW_FILE)])),
    )


def _is_unequal(facts: Facts, array: Array, load: PathLoad) -> bool:
    """Whether one path of a group carries less than half, or more than twice, of an equal share, on equal links."""
    if len(set(multipath.link_speeds(facts, array).values())) > 1:
        return False
    least = _REQUESTS_SINCE_ADDED if load.seconds is None else _REQUESTS_IN_INTERVAL
    if sum(load.requests.values()) < least:
        return False
    fair = sum(load.bytes_moved.values()) / len(load.bytes_moved)
    return min(load.bytes_moved.values()) < fair / 2 or max(load.bytes_moved.values()) > 2 * fair


@rule(
    id="iscsi.unequal-paths",
    severity="advice",
    title="The paths of a multipath map do not carry equally",
    what="Bytes by path within one priority group of each multipath map over iSCSI (/sys/block/*/stat), since the path "
    "was added or over advisor scan --interval SECONDS: a path below half or above twice an equal share, of 10,000 "
    "requests and more (1,000 in an interval). Groups over links of different speed are left out.",
    why="Paths of a group that are used in turn carry the same; where they do not, the fullest link binds all.",
    helps_when="Links of the same speed, and a load that needs more than one of them.",
    hurts_when="A path was away or was added later: its counters are smaller for that alone. Look at an interval.",
    sources=(sources.OPENFILER, sources.BLOCK_STAT),
)
def unequal_paths(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    arrays = {one.name: one for one in multipath.iscsi_maps(facts)}
    for array, load in ((arrays[one.array], one) for one in facts.path_load if one.array in arrays):
        if _is_unequal(facts, array, load):
            total = sum(load.bytes_moved.values()) or 1
            by_disk = {disk: "+".join(one.links) for one in sessions_of(facts) for disk in one.disks if one.links}
            is_late = bool(_turn_words(facts, array))
            when = "since each was added" if load.seconds is None else f"in {load.seconds:g} s"
            yield unequal_paths.found(
                title=f"The paths of {array.name} do not carry equally",
                why=f"The links of one priority group are equal, and what they carried {when} is not: the article's "
                "test is that each path carries the same. "
                + (
                    "A path that was lost for a time has less since then: look at an interval under load. "
                    if load.seconds is None
                    else ""
                )
                + ("The path changes after many requests only (iscsi.late-path-switch). " if is_late else ""),
                evidence={
                    "array": array.name,
                    "disks": tuple(load.bytes_moved),
                    "detail": tuple(
                        f"{path}{f' by {by_disk[path]}' if path in by_disk else ''}: {100 * moved / total:.0f} %, "
                        f"{count_noun(load.requests[path], 'request')}"
                        + ("" if not load.seconds else f", {moved / load.seconds / 1e6:.1f} MB/s")
                        for path, moved in load.bytes_moved.items()
                    ),
                },
                remedy=plan_profile(ISCSI_MULTIPATH)
                if is_late
                else (
                    RunShell(
                        "advisor scan --interval 10",
                        "look again while a sequential load runs (advisor bench --workload iometer.maxtp-r100)",
                    ),
                    RunShell(
                        "multipath -ll", "see one group with all paths (path_grouping_policy multibus), and none failed"
                    ),
                    RunShell("iscsiadm -m session -P 1", "see the sessions"),
                ),
            )
