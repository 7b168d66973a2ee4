"""Block queues: scheduler, length and time limit, against what the device is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from advisor.facts.block.disks import Disk
from advisor.facts.settings.site_settings import SiteSetting
from advisor.host.numbers import count_of
from advisor.rules import sources
from advisor.rules.queries import is_virtual_machine, leading_count
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, edit_file, plan_profile, rule, set_queues

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


class _Bounds(NamedTuple):
    """How long requests of these disks may wait, by what they report of themselves, in milliseconds."""

    kind: str
    model: str
    """A pattern for the whole of vendor and model."""
    least: int
    most: int | None
    profile: str


_FOR_LOCAL = 600_000
"""A drive of the machine itself that has not answered for ten minutes will not."""
_BOUNDS = (
    _Bounds("nvme", _EBS_MODEL, _KERNEL_TIMEOUT_MS + 1, None, "ebs-volumes"),
    _Bounds("nvme", "Amazon EC2 NVMe Instance Storage", 0, _FOR_LOCAL, "ebs-volumes"),
    _Bounds("nvme", r"MSFT NVMe Accelerator.*", 240_000, None, "cloud-volumes"),
    _Bounds("nvme", r"Microsoft NVMe Direct Disk.*", 0, _FOR_LOCAL, ""),
    _Bounds("nvme", "nvme_card-pd|Alibaba Cloud Elastic Block Storage", _KERNEL_TIMEOUT_MS + 1, None, "cloud-volumes"),
    _Bounds("nvme", r"nvme_card\d*", 0, _FOR_LOCAL, ""),
    _Bounds("scsi", r"(?i:VMware.*Virtual disk.*)", 180_000, None, "cloud-volumes"),
)
"""Disks behind virtio-scsi and Hyper-V are left out: their drivers wait for the host whatever the timeout is."""


def _beyond_bounds(facts: Facts, *, of_ebs: bool) -> Iterator[tuple[Disk, _Bounds, int]]:
    """Disks whose timeout is out of bounds, with it: EBS volumes, or all others."""
    for disk in facts.disks:
        name = f"{disk.detail.get('vendor', '')} {disk.model or ''}".strip()
        row = next((one for one in _BOUNDS if one.kind == disk.kind and re.fullmatch(one.model, name)), None)
        now = _timeout_ms(disk)
        if row is None or now is None or (row.model == _EBS_MODEL) is not of_ebs:
            continue
        if now < row.least or (row.most is not None and now > row.most):
            yield disk, row, now


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
    found = tuple(_beyond_bounds(facts, of_ebs=True))
    if not found:
        return None
    return ebs_timeout.found(
        why="When EBS stalls for longer than 30 seconds the kernel fails the request, and the file system may go "
        "read-only although the volume comes back.",
        evidence={"disks": tuple(disk.name for disk, *_ in found), "io_timeout_ms": min(now for *_, now in found)},
        remedy=(
            plan_profile("ebs-volumes"),
            "nvme_core.io_timeout on the kernel command line covers volumes that are attached later, and the drives of "
            "the instance with them, which it should not",
        ),
    )


@rule(
    id="disks.cloud-timeout",
    severity="advice",
    title="The I/O timeout does not fit a cloud's disk",
    what="queue/io_timeout of remote disks of Azure (240 s), Google and Alibaba Cloud (above 30 s) and VMware (180 s), "
    "and of drives of an instance of EC2, Azure and Google (10 minutes at most). Not of SCSI disks of virtio and "
    "Hyper-V: their drivers wait for the host whatever the timeout is.",
    why="A remote disk may pause longer than 30 seconds and go on; a local drive that does not answer is dead.",
    helps_when="A file system must outlive a pause of its storage, or a dead drive be noticed.",
    hurts_when="The cluster is to notice a dead disk quickly and fail over.",
    sources=(sources.AZURE_NVME_TIMEOUT, sources.GCP_NVME_TIMEOUT, sources.EC2_UTILS, sources.VMWARE_TIMEOUT),
)
def cloud_timeout(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    found = tuple(_beyond_bounds(facts, of_ebs=False))
    for is_short in (True, False):
        those = [one for one in found if (one[2] < one[1].least) is is_short]
        if those:
            profiles = dict.fromkeys(row.profile for _, row, _ in those)
            yield cloud_timeout.found(
                title="Remote disks have the I/O timeout of a local drive"
                if is_short
                else "Local drives have the I/O timeout of a remote disk",
                why="When the storage stalls for longer, the kernel fails the request, and the file system may go "
                "read-only although the disk comes back."
                if is_short
                else "Whoever waits for a drive that has died waits for days: nothing resets it, nothing fails over.",
                evidence={
                    "disks": tuple(disk.name for disk, *_ in those),
                    "detail": tuple(
                        f"{disk.name} ({disk.model}): {now / 1000:,.0f} s, "
                        f"{'at least' if is_short else 'at most'} "
                        f"{(row.least if is_short else row.most or 0) / 1000:,.0f}"
                        for disk, row, now in those
                    ),
                },
                remedy=(
                    *(plan_profile(name) for name in profiles if name),
                    *(
                        remedy
                        for disk, row, _ in those
                        if not row.profile
                        for remedy in set_queues((disk.name,), "io_timeout", _KERNEL_TIMEOUT_MS)
                    ),
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
