"""InterSystems IRIS: where journal, WIJ and databases lie, its write daemons, and the mirror over two zones."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from advisor.facts.clusters.infoscale_configuration import LONG_ROUND_TRIP_SECONDS
from advisor.facts.clusters.iris import Cpf, Iris, IrisPlace
from advisor.facts.settings import vendor_values
from advisor.rules import sources
from advisor.rules.clusters.iris_memory import PROFILE, label
from advisor.rules.queries import sysctl_numbers
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, plan_profile, rule

ORDER = 250

WRITE_DAEMONS_PROFILE = "iris-write-daemons"
ARTICLE_STRIPE_BYTES = 4 << 20
_ARTICLE_ASYNCWIJ = 16
_ARTICLE_DAEMONS = 16
_DEFAULT = 8

# Those that every instance has: they lie with the installation, and little of the load goes to them.
_OF_THE_SYSTEM = frozenset(
    {
        *("IRISSYS", "IRISLIB", "IRISTEMP", "IRISLOCALDATA", "IRISAUDIT", "IRISMETRICS", "ENSLIB", "HSLIB", "HSSYS"),
        *("HSCUSTOM", "USER", "%SYS"),
    }
)
_MIRROR_QUOTA = (
    "The article's mirror kept both on one io2 volume for one reason: the account's quota counts the volumes of both "
    "members."
)


def _places_of(one: Iris, role: str) -> tuple[IrisPlace, ...]:
    """The directories of a role; of databases, those of applications."""
    return tuple(place for place in one.places if place.role == role and place.name.upper() not in _OF_THE_SYSTEM)


def _sharing_places(one: IrisPlace, others: Iterable[IrisPlace]) -> tuple[IrisPlace, ...]:
    """Those of the others that share a disk, or a device whose disks are not known."""
    return tuple(
        other
        for other in others
        if set(one.disks) & set(other.disks) or (one.device is not None and one.device == other.device)
    )


def _describe_place(place: IrisPlace) -> str:
    what = f"database {place.name}" if place.name else place.role
    where = ", ".join(place.disks) or place.device or "an unknown device"
    return f"{what}: {place.directory} on {place.mountpoint} ({where})"


@rule(
    id="iris.journal-shared",
    severity="advice",
    title="The journal shares its volume",
    what="The disks below the journal directory against those below the databases and the WIJ.",
    why="The journal is written in order and at each commit, databases and WIJ in bursts.",
    helps_when="Always where commits count; the article separates it in all of its three tests.",
    hurts_when="One more volume is to be paid for and watched. An instance for development needs none.",
    sources=(sources.IRIS_GP3, sources.IRIS_JOURNAL),
)
def journal_shared(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for one in facts.iris:
        for journal in _places_of(one, "journal"):
            databases, wij = (
                _sharing_places(journal, _places_of(one, "database")),
                _sharing_places(journal, _places_of(one, "wij")),
            )
            if databases or wij:
                yield journal_shared.found(
                    severity="advice" if databases else "info",
                    title=f"Journal of {label(one)} shares its volume with {'databases' if databases else 'the WIJ'}",
                    why="Each commit waits for the journal, and the journal then waits behind the bursts of the write "
                    "daemons. When the volume is lost, so is what the databases would be recovered from.",
                    evidence={
                        "instance": label(one),
                        "detail": tuple(map(_describe_place, (journal, *databases, *wij))),
                    },
                    remedy="give the journal a volume of its own ([Journal] CurrentDirectory in the cpf); the "
                    "article took a gp3 volume as it comes, with 3,000 IOPS and 125 MiB/s",
                )


@rule(
    id="iris.alternate-journal-shared",
    severity="advice",
    title="Both journal directories lie on one volume",
    what="The disks below CurrentDirectory and AlternateDirectory.",
    why="The second directory is there for a first one that is full or gone.",
    helps_when="The journal's volume fills up or fails.",
    hurts_when="A second volume is to be paid for.",
    sources=(sources.IRIS_JOURNAL,),
)
def alternate_shared(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for one in facts.iris:
        for second in _places_of(one, "alternate-journal"):
            first = _sharing_places(second, _places_of(one, "journal"))
            if first:
                yield alternate_shared.found(
                    why="IRIS goes over to the second directory when it cannot write to the first: on the same volume "
                    "it cannot write there either.",
                    evidence={"instance": label(one), "detail": tuple(map(_describe_place, (*first, second)))},
                    remedy="put AlternateDirectory on another volume",
                )


@rule(
    id="iris.wij-shared",
    severity="advice",
    title="The WIJ lies with the databases",
    what="The disks below wijdir against those below the databases.",
    why="A volume of its own keeps the WIJ's bursts from the reads.",
    helps_when="Writes come at a high rate and reads must stay even.",
    hurts_when="It costs a volume; the article's mirror kept both on one io2 volume because of the account's quota.",
    sources=(sources.IRIS_GP3,),
)
def wij_shared(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    wanted = workload is not None and _many_random_writes(workload)
    for one in facts.iris:
        for wij in _places_of(one, "wij"):
            databases = _sharing_places(wij, _places_of(one, "database"))
            if databases:
                yield wij_shared.found(
                    severity="advice" if wanted else "info",
                    title=f"The WIJ of {label(one)} lies with its databases",
                    why="In each cycle the write daemons send large writes to the WIJ, then random ones to the "
                    "databases: reads of the databases wait behind both."
                    + (" The declared workload writes at least half of the time." if wanted else "")
                    + (f" {_MIRROR_QUOTA}" if one.mirror else ""),
                    evidence={"instance": label(one), "detail": tuple(map(_describe_place, (wij, *databases)))},
                    remedy="set wijdir in the cpf to a volume of its own",
                    intent=not wanted,
                )


@rule(
    id="iris.parts-apart",
    severity="info",
    title="Databases, WIJ and journal lie on several volumes",
    what="The disks below the databases of applications, wijdir and the journal directory, where they differ.",
    why="The article's tests 1 and 2 give each a volume of its own, so that the bursts of the WIJ do not hold up the "
    "reads of the databases.",
    helps_when="Measuring and sizing: IOPS and MB/s are bought for each part by what it writes.",
    hurts_when="Nothing is wrong with it; each volume is paid for and watched.",
    sources=(sources.IRIS_GP3,),
)
def parts_apart(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for one in facts.iris:
        parts = tuple(
            place for role in ("database", "wij", "journal") for place in _places_of(one, role) if place.disks
        )
        volumes = tuple(dict.fromkeys(place.mountpoint for place in parts))
        if not any(set(first.disks).isdisjoint(second.disks) for first in parts for second in parts):
            continue
        yield parts_apart.found(
            title=f"Databases, WIJ, journal of {label(one)} lie on {len(volumes)} volumes",
            why="A cycle of the write daemons fills the volume of the WIJ with large writes, then that of the "
            "databases with small ones; each commit waits for that of the journal. A measurement in one directory is "
            "of one of them.",
            evidence={"instance": label(one), "detail": tuple(map(_describe_place, parts))},
            remedy=(
                "measure each part where it lies, longer than AWS takes to throttle; advisor limits --volumes FILE "
                "names what each volume carries",
                *(
                    RunShell(
                        f"advisor bench --seconds 60 --target {shlex.quote(place)}",
                        f"measure {place}",
                        f"what uses {place}: the measurement competes with it",
                    )
                    for place in volumes
                    if place
                ),
            ),
            intent=True,
        )


@rule(
    id="iris.file-system",
    severity="info",
    title="Data of IRIS lies on another file system than XFS",
    what="The file systems of journal, WIJ and application databases.",
    why="The article names one file system only; what it measured says nothing of others.",
    helps_when="The volume is created again anyway.",
    hurts_when="The data must be moved, which by itself no figure asks for.",
    sources=(sources.IRIS_GP3,),
)
def other_file_system(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        f"{label(one)}, {_describe_place(place)}: {place.kind}"
        for one in facts.iris
        for role in ("journal", "wij", "database")
        for place in _places_of(one, role)
        if place.device is not None and place.kind != "xfs"
    )
    if not found:
        return None
    return other_file_system.found(
        why="All volumes of the article's tests had XFS, so that its figures hold for nothing else.",
        evidence={"detail": found},
        remedy="make the volume with mkfs.xfs when it is next made",
        intent=True,
    )


@rule(
    id="iris.stripe-size",
    severity="info",
    title="Stripes below IRIS are not of 4 MB",
    what="The stripe size of LVM volumes that hold databases or the WIJ.",
    why="The article's volumes have stripes of 4 MB, over sixteen gp3 volumes for the databases and five for the WIJ.",
    helps_when="Its figures are to be met.",
    hurts_when="Nothing was measured with another size: a smaller one may do as well for databases.",
    sources=(sources.IRIS_GP3,),
)
def stripe_size(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    devices = {place.device for one in facts.iris for role in ("wij", "database") for place in _places_of(one, role)}
    found = tuple(
        array
        for array in facts.arrays
        if array.device in devices
        and (
            array.manager == "lvm"
            and array.level == "striped"
            and array.chunk_bytes is not None
            and array.chunk_bytes != ARTICLE_STRIPE_BYTES
        )
    )
    if not found:
        return None
    return stripe_size.found(
        why="With the 64 KiB that lvcreate takes by itself each large write of the WIJ is cut over many volumes.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "detail": tuple(f"{array.name}: stripes of {(array.chunk_bytes or 0) >> 10:,} KiB" for array in found),
        },
        remedy=tuple(
            Decide(f"make {array.name} with lvcreate -i {array.data_disks or 'VOLUMES'} -I 4m when it is next made")
            for array in found
        ),
        intent=True,
    )


@rule(
    id="iris.vm-settings",
    severity="info",
    title="Swapping and write-back are not set for IRIS",
    what="vm.swappiness, vm.dirty_background_ratio and vm.dirty_ratio on a host with an instance.",
    why="InterSystems' notes for Linux say 5, 5 and 10.",
    helps_when="The database has the host to itself, and journal or backups go through the page cache.",
    hurts_when="Other programs write in bursts that fit into memory: they then wait for the disk earlier.",
    sources=(sources.INTERSYSTEMS_LINUX, sources.VM),
    contradictions=("contradiction.dirty-ratios",),
)
def vm_settings(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if not facts.iris:
        return None
    over = {
        key: live[0]
        for key, most in vendor_values("iris").items()
        if len(live := sysctl_numbers(facts, key)) == 1 and live[0] > int(most.removeprefix("<="))
    }
    if not over:
        return None
    return vm_settings.found(
        why="A page of the database that is swapped out is read twice, and a large store of dirty pages is written at "
        "once when a limit is reached, while commits wait.",
        evidence={
            "instances": tuple(map(label, facts.iris)),
            "detail": tuple(f"{key} = {value}" for key, value in over.items()),
        },
        remedy=plan_profile(PROFILE),
        intent=True,
    )


def _many_random_writes(workload: DeclaredWorkload) -> bool:
    """The load of the article's tests: at least half writes, and not in sequence; write daemons write at random."""
    return workload.is_write_heavy and not workload.is_sequential


def write_volumes(facts: Facts, one: Iris) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The disks below the databases and the WIJ, and those of them that rotate, where more writes only queue."""
    places = (*_places_of(one, "database"), *_places_of(one, "wij"))
    names = tuple(dict.fromkeys(name for place in places for name in place.disks))
    turning = {disk.name for disk in facts.disks if disk.rotational}
    return names, tuple(name for name in names if name in turning)


def _volume_words(volumes: tuple[str, ...], slow: tuple[str, ...], workload: DeclaredWorkload | None) -> str:
    if slow:
        return (
            f"Here databases or WIJ lie on rotating disks ({', '.join(slow)}), where more writes in flight only queue."
        )
    where = f"Databases and WIJ lie on {len(volumes)} volumes here. " if len(volumes) > 1 else ""
    if workload is None:
        return f"{where}Whether this host writes that much is unknown without a declared workload."
    share = round(100 * (workload.write_share or 0))
    return f"{where}{workload.subject} is such a load: {share} % of it are writes, at random."


def _below_article(settings: Cpf) -> Iterator[str]:
    if (settings.asyncwij or _DEFAULT) < _ARTICLE_ASYNCWIJ:
        yield f"Asyncwij: {settings.asyncwij or f'{_DEFAULT} by itself'}"
    daemons = (settings.wdparm[0] if settings.wdparm else 0) or _DEFAULT
    if daemons < _ARTICLE_DAEMONS:
        yield f"wdparm: {','.join(map(str, settings.wdparm)) or f'{_DEFAULT} write daemons by itself'}"
    if settings.wduseasyncio == 0:
        yield "wduseasyncio: 0"


@rule(
    id="iris.write-daemons",
    severity="advice",
    title="IRIS has fewer write daemons than the article",
    what="Asyncwij, wdparm and wduseasyncio of each cpf.",
    why="More writes in flight fill volumes that carry hundreds of thousands of IOPS.",
    helps_when="A high rate of writes, and volumes and an instance that have IOPS to spare.",
    hurts_when="More writes in flight make reads wait longer; on small volumes they only queue. InterSystems' public "
    "reference does not describe these parameters: ask its support first.",
    sources=(sources.IRIS_GP3,),
)
def write_daemons(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    if workload is not None and not _many_random_writes(workload):
        return
    for one in facts.iris:
        below = () if one.settings is None else tuple(_below_article(one.settings))
        if not below:
            continue
        volumes, slow = write_volumes(facts, one)
        wanted = workload is not None and not slow
        yield write_daemons.found(
            severity="advice" if wanted else "info",
            why="The article's tests of high write rates ran with Asyncwij=16 (8 by itself), wdparm=16,32,512,128 (16 "
            "write daemons, 8 by itself; a device table of 32; at most 512 writes in flight, 128 for each daemon) and "
            "wduseasyncio=1. " + _volume_words(volumes, slow, workload),
            evidence={"instance": label(one), "cpf": one.cpf, "detail": below, "disks": volumes},
            remedy=plan_profile(WRITE_DAEMONS_PROFILE, cpfs=(one.cpf,)),
            intent=not wanted,
        )


@rule(
    id="iris.mirror-round-trip",
    severity="info",
    title="Mirrored commits wait for another zone",
    what="A declared round trip above 0.5 ms with synchronous replication, on a host with an instance.",
    why="The primary waits until the backup has the journal data.",
    helps_when="Sizing: the article's zones were 1.16 and 1.12 ms apart.",
    hurts_when="A member in the same zone is lost together with it.",
    sources=(sources.IRIS_GP3,),
)
def mirror_round_trip(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if not facts.iris or workload is None or workload.replication != "sync" or workload.rtt_seconds is None:
        return None
    rtt = workload.rtt_seconds
    if rtt <= LONG_ROUND_TRIP_SECONDS:
        return None
    return mirror_round_trip.found(
        why=f"Whoever waits for the mirror's answer waits {rtt * 1000:g} ms at least: one process that commits one "
        f"after the other does so at most {1 / rtt:,.0f} times a second, whatever the volumes carry.",
        evidence={
            "instances": tuple(map(label, facts.iris)),
            "rtt_ms": round(rtt * 1000, 3),
            "commits_per_second_at_most": int(1 / rtt),
            "detail": tuple(f"{label(one)}: mirror member ({one.mirror})" for one in facts.iris if one.mirror),
        },
        remedy="let several processes commit, or several updates share a commit; advisor probe PEER measures the "
        "way, and a member in the same zone shortens it",
    )
