"""EBS volumes as the host shows them. Their type and what was bought of them it does not: see advisor.ceilings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.host.numbers import is_count
from advisor.rules import sources
from advisor.rules.queries import ebs_disks
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, rule, set_queues

if TYPE_CHECKING:
    from advisor.facts.block.block import Array

ORDER = 210

_STREAM_KB = 1024

# Types that the table of EBS-optimized instances lacks, among families from before Nitro: volumes and network share
# one link there. Of these families the larger types have a link of their own.
_SHARED_LINK = frozenset(
    {
        *("t1.micro", "t2.nano", "t2.micro", "t2.small", "t2.medium", "t2.large", "t2.xlarge", "t2.2xlarge"),
        *("m1.small", "m1.medium", "m3.medium", "m3.large", "c1.medium", "c3.large", "c3.8xlarge", "r3.large"),
        *("r3.8xlarge", "i2.8xlarge", "g2.8xlarge", "cc2.8xlarge", "cr1.8xlarge", "hs1.8xlarge"),
    }
)


def _arrays_on(facts: Facts, volumes: frozenset[str]) -> Iterator[Array]:
    yield from (array for array in facts.arrays if array.disks and volumes.issuperset(array.disks))


@rule(
    id="ebs.few-stripes",
    severity="advice",
    title="A volume has fewer stripes than EBS volumes",
    what="Stripes of LVM volumes against the EBS volumes that they lie on.",
    why="IOPS and MB/s of EBS volumes add up only where one stripe goes over all of them.",
    helps_when="The volumes were bought for their speed together, as the sixteen gp3 of the article.",
    hurts_when="It means to move the data: an EBS volume that is grown in size, IOPS or MB/s needs no move.",
    sources=(sources.IRIS_GP3, sources.AWS_EBS_RAID),
)
def few_stripes(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        array
        for array in _arrays_on(facts, ebs_disks(facts))
        if array.manager == "lvm"
        and array.level == "striped"
        and array.data_disks
        and array.data_disks < len(set(array.members))
    )
    if not found:
        return None
    return few_stripes.found(
        why="The volume was extended by volumes outside its stripes: each part of it is as fast as the stripes of that "
        "part, not as all volumes that were bought.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "detail": tuple(
                f"{array.name}: {array.data_disks} stripes over {len(set(array.members))} volumes "
                f"({', '.join(dict.fromkeys(array.members))})"
                for array in found
            ),
        },
        remedy=tuple(
            Decide(
                f"create {array.name} again with lvcreate -i {len(set(array.members))} -I 4m, or grow its volumes "
                "instead"
            )
            for array in found
        ),
    )


def _read_ahead(facts: Facts) -> Iterator[tuple[str, int]]:
    """Device and KiB of what file systems stand on: read-ahead is that of the uppermost device."""
    volumes = ebs_disks(facts)
    arrays = tuple(_arrays_on(facts, volumes))
    inside = {name for array in arrays for name in array.disks}
    tops = [(array.device, array.queue) for array in arrays]
    tops += [(disk.name, disk.queue) for disk in facts.disks if disk.name in volumes - inside]
    for name, queue in tops:
        text = queue.get("read_ahead_kb", "")
        if is_count(text) and len(text) < 10:
            yield name, int(text)


@rule(
    id="ebs.stream-read-ahead",
    severity="info",
    title="st1 or sc1 volumes want 1 MiB of read-ahead",
    what="read_ahead_kb of EBS volumes, or of the arrays on them, where sequential reads are declared.",
    why="Amazon advises to leave the default of 128 KiB but for streams from st1 and sc1, where 1 MiB fills an I/O.",
    helps_when="Large sequential reads from HDD volumes.",
    hurts_when="Random reads then read what nobody asked for, which takes from the volume's and the instance's MB/s.",
    sources=(sources.AWS_HDD,),
    contradictions=("contradiction.read-ahead",),
)
def stream_read_ahead(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if workload is None or not workload.is_sequential or workload.write_share is None or workload.write_share == 1:
        return None
    found = {name: kb for name, kb in _read_ahead(facts) if kb < _STREAM_KB}
    if not found:
        return None
    return stream_read_ahead.found(
        why="These types count an I/O of up to 1 MiB as one. Whether a volume is one of them cannot be seen from "
        "inside; the others gain nothing by it.",
        evidence={
            "devices": tuple(found),
            "detail": tuple(f"{name}: read_ahead_kb {kb}" for name, kb in found.items()),
        },
        remedy=("only where the volume is st1 or sc1", *set_queues(found, "read_ahead_kb", _STREAM_KB, "at-least")),
    )


@rule(
    id="ebs.scheduler",
    severity="info",
    title="Requests to EBS volumes are put in order",
    what="The scheduler of EBS volumes that are NVMe devices; bfq has a rule of its own.",
    why="none is what the kernel gives an NVMe device by itself.",
    helps_when="Many small requests at once.",
    hurts_when="Reads are to go before a burst of writes, which mq-deadline and kyber see to.",
    sources=(sources.BLK_MQ, sources.RED_HAT_SCHEDULER),
)
def ordered(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    volumes = ebs_disks(facts)
    found = tuple(
        disk
        for disk in facts.disks
        if disk.name in volumes and disk.name.startswith("nvme") and disk.scheduler in {"mq-deadline", "kyber"}
    )
    if not found:
        return None
    return ordered.found(
        why="Behind the volume is a network and many drives, whose order the kernel cannot know; it only spends "
        "processor time.",
        evidence={
            "disks": tuple(disk.name for disk in found),
            "detail": tuple(f"{disk.name}: {disk.scheduler}" for disk in found),
        },
        remedy=set_queues((disk.name for disk in found), "scheduler", "none"),
        intent=True,
    )


@rule(
    id="ebs.not-optimized",
    severity="info",
    title="The instance type is not EBS-optimized",
    what="EC2 instance types of early families that the list of EBS-optimized types does not have.",
    why="Only an EBS-optimized instance has bandwidth for its volumes that the network cannot take.",
    helps_when="Comparing volumes or cluster settings, as the InfoScale white paper did on a t2.large.",
    hurts_when="A larger type costs more, and a test system may not need it.",
    sources=(sources.AWS_EBS_OPTIMIZED, sources.WHITE_PAPER),
)
def shared_link(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    cloud = facts.host.cloud
    if cloud is None or cloud.provider != "aws" or cloud.instance_type not in _SHARED_LINK:
        return None
    return shared_link.found(
        why="The instance has one link for network and volumes: what a cluster mirrors, takes from its disks, and no "
        "bandwidth to EBS is promised.",
        evidence={"instance_type": cloud.instance_type},
        remedy="measure with the network traffic of real work, and take results from here for no other type; an "
        "EBS-optimized type has bandwidth of its own",
    )
