"""Block queues: settings that are certain to be wrong for the device."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.facts.disks import Disk
from advisor.facts.whole import Facts
from advisor.rules import sources
from advisor.rules.finding import Finding
from advisor.rules.rule import Rule
from advisor.rules.workload import Workload

_EBS_MODEL = "Amazon Elastic Block Store"
_EBS_TIMEOUT_MS = 4_294_967_295
_KERNEL_TIMEOUT_MS = 30_000


def _for_all(disks: Iterable[Disk], setting: str) -> str:
    return "; ".join(
        f"echo {setting.partition('=')[2]} > /sys/block/{disk.name}/queue/{setting.partition('=')[0]}" for disk in disks
    )


def bfq_on_nvme(facts: Facts, workload: Workload | None) -> tuple[Finding, ...]:
    found = tuple(disk for disk in facts.disks if disk.scheduler == "bfq" and disk.name.startswith("nvme"))
    if not found:
        return ()
    return (
        BFQ_ON_NVME.found(
            "advice",
            why="bfq takes one lock for every request, which holds a fast drive to a few hundred thousand IOPS.",
            evidence={"disks": tuple(disk.name for disk in found), "scheduler": "bfq"},
            advice=_for_all(found, "scheduler=none") + "; the same in a udev rule",
        ),
    )


BFQ_ON_NVME = Rule(
    id="disks.bfq-on-nvme",
    title="The bfq scheduler runs on NVMe drives",
    what="The scheduler of NVMe drives.",
    why="bfq orders requests for a slow medium; a drive with its own queues per CPU needs no order from the kernel.",
    helps_when="Many small requests at once.",
    hurts_when="Shares of bandwidth per control group (io.bfq.weight) are in use: only bfq gives them.",
    sources=(sources.BFQ,),
    function=bfq_on_nvme,
)


def _timeout_ms(disk: Disk) -> int | None:
    text = disk.queue.get("io_timeout", "")
    return int(text) if text.isascii() and text.isdigit() else None


def ebs_timeout(facts: Facts, workload: Workload | None) -> tuple[Finding, ...]:
    volumes = (disk for disk in facts.disks if disk.model is not None and disk.model.strip() == _EBS_MODEL)
    found = tuple(disk for disk in volumes if disk.name.startswith("nvme") and _timeout_ms(disk) == _KERNEL_TIMEOUT_MS)
    if not found:
        return ()
    return (
        EBS_TIMEOUT.found(
            "advice",
            why="When EBS stalls for longer than 30 seconds the kernel fails the request, and the file system may go "
            "read-only although the volume comes back.",
            evidence={"disks": tuple(disk.name for disk in found), "io_timeout_ms": _KERNEL_TIMEOUT_MS},
            advice=_for_all(found, f"io_timeout={_EBS_TIMEOUT_MS}") + "; nvme_core.io_timeout on the kernel command "
            "line",
        ),
    )


EBS_TIMEOUT = Rule(
    id="disks.ebs-timeout",
    title="EBS volumes have the I/O timeout of a local drive",
    what="queue/io_timeout of NVMe devices whose model is Amazon Elastic Block Store.",
    why="Amazon advises the longest timeout, for a volume behind a network may pause and go on.",
    helps_when="The volume holds a file system that must not fail over a pause.",
    hurts_when="The cluster is to notice a dead volume quickly and fail over: a request may then hang for very long.",
    sources=(sources.AWS_EBS_NVME,),
    function=ebs_timeout,
)

RULES = (BFQ_ON_NVME, EBS_TIMEOUT)
