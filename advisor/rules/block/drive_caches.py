"""What lies between a request and the medium: write caches, encryption, the format of a drive's blocks."""

from __future__ import annotations

import shlex

from advisor.facts.block.block import node_path
from advisor.rules import sources
from advisor.rules.queries import kernel_version
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 122

_BYPASS_SINCE = (5, 9)
_LOCAL_SSD = "nvme_card"


@rule(
    id="disks.declustered-write-cache",
    severity="warning",
    title="Storage Scale RAID drives have write cache on",
    what="queue/write_cache of NVMe drives on hosts with mmvdisk (Erasure Code Edition).",
    why="Its RAID counts a write as done when the drive says so; a volatile cache may lose it with the power.",
    helps_when="Drives without protection against power loss.",
    hurts_when="The drive's cache is protected, and its vendor and IBM support it as it is.",
    sources=(sources.MOR, sources.NVME_IDENTIFY),
    seen_live=False,
)
def declustered_write_cache(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.software is None or not facts.software.declustered_raid:
        return None
    found = tuple(
        one.name for one in facts.disks if one.kind == "nvme" and one.queue.get("write_cache") == "write back"
    )
    if not found:
        return None
    return declustered_write_cache.found(
        why="A drive that reports write back must be flushed before its data are safe.",
        evidence={"disks": found},
        remedy=(
            *(
                RunShell(
                    f"nvme get-feature {shlex.quote(node_path(name))} --feature-id=6 --human-readable", "see its cache"
                )
                for name in found[:1]
            ),
            "ask the drive's vendor and IBM; where the product requires it, switch the cache off with nvme set-feature "
            "--feature-id=6 --value=0 --save",
        ),
    )


@rule(
    id="disks.gcp-write-cache",
    severity="info",
    title="Local SSDs of Google Cloud are flushed",
    what="queue/write_cache of the local SSDs (nvme_card) of an instance.",
    why="Each fsync sends a flush, which these drives answer slowly. Local SSDs lose their data with the instance "
    "anyway.",
    helps_when="A store that replicates over instances, as Redpanda does, and calls fsync often.",
    hurts_when="Elsewhere: a drive whose flushes are left out loses what was not flushed when the power fails.",
    sources=(sources.RPK_GCP, sources.BLOCK_SYSFS),
    seen_live=False,
)
def gcp_write_cache(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    cloud = facts.host.cloud
    if cloud is None or cloud.provider != "gcp":
        return None
    found = tuple(
        one.name
        for one in facts.disks
        if (one.model or "").startswith(_LOCAL_SSD)
        and not (one.model or "").startswith(f"{_LOCAL_SSD}-pd")
        and one.queue.get("write_cache") == "write back"
    )
    if not found:
        return None
    return gcp_write_cache.found(
        why="Only the owner knows whether the data on them may be lost with the instance.",
        evidence={"disks": found},
        remedy=tuple(
            RunShell(
                f"echo write through > /sys/block/{shlex.quote(name)}/queue/write_cache",
                "stop flushes until the next boot",
            )
            for name in found
        ),
        intent=True,
    )


@rule(
    id="disks.crypt-queues",
    severity="info",
    title="Encrypted flash uses the queues of dm-crypt",
    what="Options of dm-crypt's table (dmsetup table, as root) on drives that do not rotate; Linux 5.9 and later.",
    why="Each request waits for a worker thread to encrypt it. With the flags it is done where the request is made.",
    helps_when="Small requests to NVMe drives, with CPUs that have AES instructions.",
    hurts_when="Rotating drives, slow CPUs, or real-time tasks on the CPUs that make the requests. Prove it.",
    sources=(sources.DM_CRYPT,),
)
def crypt_queues(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    version = kernel_version(facts)
    if version is None or version < _BYPASS_SINCE:
        return None
    disks = {disk.name: disk for disk in facts.disks}
    of_partition = {part: disk for disk in facts.disks for part in disk.partitions}
    found = []
    for one in facts.encrypted:
        below = [disks.get(name) or of_partition.get(name) for name in one.below]
        if one.options is None or not below or not all(disk is not None and disk.rotational is False for disk in below):
            continue
        if any(option not in one.options for option in ("no_read_workqueue", "no_write_workqueue")):
            found.append(one.name)
    if not found:
        return None
    return crypt_queues.found(
        why="Latency of single requests is what it costs.",
        evidence={"devices": tuple(found)},
        remedy=(
            *(
                RunShell(
                    f"cryptsetup refresh --perf-no_read_workqueue --perf-no_write_workqueue {shlex.quote(name)}",
                    "without the queues until it is closed; --persistent keeps it in a LUKS2 header",
                )
                for name in found
            ),
            Decide("measure before and after: advisor bench"),
        ),
        intent=True,
    )


@rule(
    id="disks.slower-format",
    severity="info",
    title="A drive is formatted with its slower block size",
    what="The relative performance of the LBA format in use against the drive's others (Identify Namespace, as root).",
    why="The drive itself says that another size of blocks is better, most often 4,096 bytes instead of 512.",
    helps_when="At the next rebuild of the host: formatting destroys all data of the namespace.",
    hurts_when="Software that needs 512-byte blocks, or an array whose other members have them.",
    sources=(sources.NVME_LBA_FORMAT,),
    seen_live=False,
)
def slower_format(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = {
        one.name: f"{one.name}: {one.detail.get('lba_format')}, better {better}"
        for one in facts.disks
        if (better := one.detail.get("better_lba_format"))
    }
    if not found:
        return None
    return slower_format.found(
        why="It is of no use to change it on drives that hold data.",
        evidence={"disks": tuple(found), "detail": tuple(found.values())},
        remedy=(
            *(RunShell(f"nvme id-ns -H {shlex.quote(node_path(name))}", "see all formats") for name in list(found)[:1]),
            "when the drive is empty: nvme format --block-size=4096 (destroys all data)",
        ),
        intent=True,
    )
