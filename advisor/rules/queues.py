"""Block queues: scheduler, length and time limit, against what the device is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from advisor.facts.disks import Disk
from advisor.facts.site_settings import SiteSetting
from advisor.host.numbers import count_of
from advisor.rules import sources
from advisor.rules.queries import is_virtual_machine, leading_count
from advisor.rules.remedy import Decide, edit_file, plan_profile, set_queues
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

ORDER = 190

_EBS_MODEL = "Amazon Elastic Block Store"
_KERNEL_TIMEOUT_MS = 30_000
_LONG_QUEUE = 1024
_SHOWN = 12


@rule(
    id="disks.bfq-on-nvme",
    severity="advice",
    title="The bfq scheduler runs on NVMe drives",
    what="The scheduler of NVMe drives.",
    why="bfq orders requests for a slow medium; a drive with its own queues per CPU needs no order from the kernel.",
    helps_when="Many small requests at once.",
    hurts_when="Shares of bandwidth per control group (io.bfq.weight) are in use: only bfq gives them.",
    sources=(sources.BFQ,),
)
def bfq_on_nvme(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(disk for disk in facts.disks if disk.scheduler == "bfq" and disk.name.startswith("nvme"))
    if not found:
        return None
    return bfq_on_nvme.found(
        why="bfq takes one lock for every request, which holds a fast drive to a few hundred thousand IOPS.",
        evidence={"disks": tuple(disk.name for disk in found), "scheduler": "bfq"},
        remedy=set_queues(names_of(found), "scheduler", "none"),
    )


def _timeout_ms(disk: Disk) -> int | None:
    return count_of(disk.queue.get("io_timeout"))


@rule(
    id="disks.ebs-timeout",
    severity="advice",
    title="EBS volumes have the I/O timeout of a local drive",
    what="queue/io_timeout of NVMe devices whose model is Amazon Elastic Block Store.",
    why="Amazon advises the longest timeout, for a volume behind a network may pause and go on.",
    helps_when="The volume holds a file system that must not fail over a pause.",
    hurts_when="The cluster is to notice a dead volume quickly and fail over: a request may then hang for very long.",
    sources=(sources.AWS_EBS_NVME,),
)
def ebs_timeout(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    volumes = (disk for disk in facts.disks if disk.model is not None and disk.model.strip() == _EBS_MODEL)
    found = tuple(disk for disk in volumes if disk.name.startswith("nvme") and _timeout_ms(disk) == _KERNEL_TIMEOUT_MS)
    if not found:
        return None
    return ebs_timeout.found(
        why="When EBS stalls for longer than 30 seconds the kernel fails the request, and the file system may go "
        "read-only although the volume comes back.",
        evidence={"disks": tuple(disk.name for disk in found), "io_timeout_ms": _KERNEL_TIMEOUT_MS},
        remedy=(
            plan_profile("ebs-volumes"),
            "nvme_core.io_timeout on the kernel command line covers volumes that are attached later",
        ),
    )


def setting(disk: Disk, name: str) -> int | None:
    """The number in a queue attribute; None where it is absent or no number."""
    return leading_count(disk.queue.get(name))


def names_of(disks: Iterable[Disk]) -> tuple[str, ...]:
    return tuple(disk.name for disk in disks)


def is_spinning(facts: Facts, disk: Disk) -> bool:
    """Whether it is a rotating disk of the host itself: what a hypervisor or a SAN says about its own is doubtful."""
    is_own = disk.kind in ("scsi", "ide") and disk.detail.get("transport") not in ("iscsi", "fc")
    return disk.rotational is True and is_own and not is_virtual_machine(facts)


@rule(
    id="disks.rotating-unscheduled",
    severity="info",
    title="Rotating disks have no scheduler",
    what="The scheduler of disks that say that they rotate; not those of virtual machines, iSCSI and Fibre Channel.",
    why="mq-deadline sorts requests by place and lets no reader wait too long; a head that seeks less moves more.",
    helps_when="Disks of the host itself, several requests at once.",
    hurts_when="A RAID controller stands between, says rotating, and sorts by itself: then none is right.",
    sources=(sources.RED_HAT_SCHEDULER, sources.BEEGFS_STORAGE, sources.NETAPP_BEEGFS),
    contradictions=("contradiction.hard-disk-scheduler",),
)
def unscheduled(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(disk for disk in facts.disks if is_spinning(facts, disk) and disk.scheduler == "none")
    if not found:
        return None
    return unscheduled.found(
        why="Requests reach the disks in the order in which they come, and readers wait behind long writes.",
        evidence={"disks": names_of(found), "scheduler": "none"},
        remedy=set_queues(names_of(found), "scheduler", "mq-deadline"),
        intent=True,
    )


@rule(
    id="disks.rotation-doubtful",
    severity="info",
    title="Virtual disks say that they rotate",
    what="queue/rotational of disks of virtual machines.",
    why="The flag is the device's word; an emulated disk gives one without knowing what it stands for.",
    helps_when="The storage behind is flash.",
    hurts_when="It is rotating storage indeed (st1 and sc1 volumes are): then the flag is right.",
    sources=(sources.BLOCK_SYSFS, sources.MEASURED_ROTATION),
)
def doubtful_rotation(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if not is_virtual_machine(facts):
        return None
    found = tuple(disk for disk in facts.disks if disk.rotational and disk.kind in ("virtio", "xen", "scsi"))
    if not found:
        return None
    return doubtful_rotation.found(
        why="A hypervisor often says rotating of any storage. The kernel then sorts requests and feeds its random "
        "numbers from them, and rules and profiles for hard disks seem to fit.",
        evidence={"disks": names_of(found), "rotational": 1, "virtualization": facts.host.virtualization},
        remedy=(
            Decide("ask who runs the storage; only if it is flash, set this", is_prerequisite=True),
            *set_queues(names_of(found), "rotational", 0),
        ),
        intent=True,
    )


@rule(
    id="disks.entropy-from-flash",
    severity="info",
    title="Flash disks feed the kernel's random numbers",
    what="queue/add_random of disks that do not rotate.",
    why="The kernel leaves it off for what it knows to be flash; a driver or a udev rule has switched it on.",
    helps_when="Very many requests per second.",
    hurts_when="A small system without any other source of random numbers.",
    sources=(sources.BLOCK_SYSFS,),
)
def entropy_from_flash(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(disk for disk in facts.disks if disk.rotational is False and setting(disk, "add_random") == 1)
    if not found:
        return None
    return entropy_from_flash.found(
        why="Each request of these disks is also mixed into the kernel's random numbers, which costs time for each and "
        "gains nothing: flash has no seek times.",
        evidence={"disks": names_of(found), "add_random": 1},
        remedy=set_queues(names_of(found), "add_random", 0),
    )


def _asked_lengths(facts: Facts) -> Iterator[tuple[SiteSetting, Disk, int, int]]:
    """Lines that ask for a longer queue than the device without a scheduler has: line, disk, asked, live."""
    for one in facts.site_settings:
        wanted = leading_count(one.value) if one.key == "queue/nr_requests" else None
        if wanted is None:
            continue
        kernel = re.search(r'KERNEL=="([^"]{1,80})"', one.scope)
        for disk in facts.disks:
            live = setting(disk, "nr_requests")
            is_meant = kernel is None or any(fnmatchcase(disk.name, pattern) for pattern in kernel[1].split("|"))
            if is_meant and disk.scheduler == "none" and live is not None and live < wanted:
                yield one, disk, wanted, live


@rule(
    id="disks.queue-asked-too-long",
    severity="advice",
    title="A udev rule sets a queue longer than the disk has",
    what="nr_requests in udev rules against its live value, for disks whose scheduler is none.",
    why="With a scheduler nr_requests is how many requests may wait to be sorted; without one it is the device's own "
    "tags.",
    helps_when="The line is believed to be active.",
    hurts_when="The rule also sets a scheduler and has not run since: then udevadm trigger is what is missing.",
    sources=(sources.BLOCK_SYSFS, sources.PRACTICE),
)
def asked_too_long(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_asked_lengths(facts))
    if not found:
        return None
    return asked_too_long.found(
        why="Without a scheduler the queue is as long as the device has tags, and the kernel refuses to make it "
        "longer.",
        evidence={
            "disks": tuple(dict.fromkeys(disk.name for _, disk, _, _ in found)),
            "detail": tuple(
                f"{one.path}:{one.line} asks for {wanted}, {disk.name} has {live}"
                for one, disk, wanted, live in found[:_SHOWN]
            ),
        },
        remedy=(
            "delete the line for these disks; a longer queue needs a scheduler, and flash needs neither",
            *dict.fromkeys(edit_file(one.path, one.line, "edit the rule") for one, *_ in found),
        ),
    )


@rule(
    id="disks.queue-long-for-random",
    severity="advice",
    title="Rotating disks: long queue for random access",
    what="nr_requests of 1024 and more of rotating disks, for a declared workload of random access.",
    why="The long queues of storage guides are for streams, which a scheduler can sort and merge.",
    helps_when="Latency matters.",
    hurts_when="Streams are served from the same disks: there a longer queue merges more.",
    sources=(sources.BEEGFS_STORAGE, sources.BEEGFS_METADATA, sources.BLOCK_SYSFS),
    contradictions=("contradiction.hard-disk-scheduler",),
)
def long_queue(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if workload is None or workload.access != "random":
        return None
    found = tuple(d for d in facts.disks if is_spinning(facts, d) and (setting(d, "nr_requests") or 0) >= _LONG_QUEUE)
    if not found:
        return None
    return long_queue.found(
        why="A rotating disk serves one or two hundred random requests in a second: a thousand that wait are seconds "
        "for each.",
        evidence={"disks": names_of(found), "nr_requests": tuple(str(setting(disk, "nr_requests")) for disk in found)},
        remedy=set_queues(names_of(found), "nr_requests", 256, "at-most"),
    )
