"""How drives and their paths are set up: paths of NVMe multipath, block sizes, discard, a cloud's agent."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator

from advisor.facts.block.block import node_path
from advisor.facts.block.disks import Disk
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import kernel_version
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 119

_BALANCED_SINCE = (6, 11)
"""The first kernel with the I/O policy queue-depth (nvme_core)."""
# A trim of theirs waits for nothing, or gathers by itself.
_GATHERS = frozenset({"btrfs", "bcachefs", "f2fs", "zfs"})


def _path_states(disk: Disk) -> list[tuple[str, str, str]]:
    """Name, state of the controller and ANA state of each path of an NVMe multipath head; empty where unknown."""
    parts = (text.split(maxsplit=2) for text in disk.detail.get("path_states", "").split(", ") if text)
    return [(words[0], *(*words[1:], "", "")[:2]) for words in parts]  # type: ignore[misc]


@rule(
    id="disks.path-lost",
    severity="critical",
    title="A path of an NVMe multipath device is lost",
    what="State of the controllers behind each namespace that has several (native multipath of NVMe).",
    why="I/O goes on over the other paths. The next failure stops it.",
    helps_when="Always: a cable, a port, a switch or the controller has failed.",
    hurts_when="The path is down for work that is known; it comes back by itself (reconnecting).",
    sources=(sources.SCSI_STATES, sources.NVME_MULTIPATH),
    seen_live=False,
)
def path_lost(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for disk in facts.disks:
        paths = _path_states(disk)
        lost = tuple(f"{name}: {state}" for name, state, _ in paths if state and state != "live")
        if lost and len(paths) > 1:
            yield path_lost.found(
                title=f"{disk.name}: {len(lost)} of {count_noun(len(paths), 'path')} failed",
                why="The rest carry all of its load, and there is less left to fail over to.",
                evidence={"disks": (disk.name,), "paths": lost},
                remedy=(
                    RunShell("nvme list-subsys", "see the controllers of each subsystem and their states"),
                    RunShell("journalctl -k --grep nvme", "see when it was lost, and why"),
                    "repair the path; a controller that was removed is connected again with nvme connect",
                ),
            )


@rule(
    id="disks.paths-unused",
    severity="info",
    title="NVMe multipath uses only one of its good paths",
    what="I/O policy numa of namespaces with several live, optimized paths.",
    why="The policy numa, the default, sends all requests of a node over one path, the nearest.",
    helps_when="One link is narrower than the drive or array behind it, and requests are many.",
    hurts_when="The paths share a port or differ in latency: round-robin then waits for the slower one half of the "
    "time. queue-depth does not, and costs a counter shared by all CPUs.",
    sources=(sources.NVME_MULTIPATH,),
    seen_live=False,
)
def paths_unused(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = {
        disk.name: good
        for disk in facts.disks
        if disk.detail.get("iopolicy") == "numa"
        and (good := sum(1 for _, state, ana in _path_states(disk) if state == "live" and ana == "optimized")) > 1
    }
    if not found:
        return None
    version = kernel_version(facts)
    policy = "queue-depth" if version is not None and version >= _BALANCED_SINCE else "round-robin"
    return paths_unused.found(
        why="The other paths wait for a failure. Prove the change under the load of this host.",
        evidence={
            "disks": tuple(found),
            "detail": tuple(f"{name}: {count} live, optimized paths, iopolicy numa" for name, count in found.items()),
        },
        remedy=[
            RunShell(
                f"echo {policy} > /sys/block/{shlex.quote(name)}/device/iopolicy",
                f"spread the requests of {name} by {policy} until the next boot",
            )
            for name in found
        ],
        intent=True,
    )


@rule(
    id="disks.block-sizes-differ",
    severity="advice",
    title="Drives of one model have different block sizes",
    what="logical_block_size of drives of the same model on this host.",
    why="Most NVMe drives are faster, and wear less, with blocks of 4,096 bytes than with 512; an array of both has "
    "the limits of each.",
    helps_when="The drives are formatted again anyway.",
    hurts_when="Formatting destroys all data of the drive. Some programs and boot loaders need 512.",
    sources=(sources.NVME_LBA_FORMAT,),
    seen_live=False,
)
def block_sizes_differ(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    by_model: dict[str, dict[str, list[str]]] = {}
    for disk in facts.disks:
        size = disk.queue.get("logical_block_size")
        if disk.kind == "nvme" and disk.model and size:
            by_model.setdefault(disk.model, {}).setdefault(size, []).append(disk.name)
    odd = {model: sizes for model, sizes in by_model.items() if len(sizes) > 1}
    if not odd:
        return None
    few = [name for sizes in odd.values() for name in min(sizes.values(), key=len)]
    return block_sizes_differ.found(
        why="Equal drives do not behave alike: the slowest member decides how fast an array is.",
        evidence={
            "disks": tuple(few),
            "detail": tuple(
                f"{model}: {', '.join(f'{len(names)} × {size} bytes' for size, names in sorted(sizes.items()))}"
                for model, sizes in odd.items()
            ),
        },
        remedy=(
            *(
                RunShell(f"nvme id-ns -H {shlex.quote(node_path(name))}", f"see the formats of {name}, the one in use")
                for name in few[:4]
            ),
            "format them alike with nvme format when the array is next made: it destroys what is on them",
        ),
    )


@rule(
    id="filesystems.online-discard",
    severity="info",
    title="A file system discards at each deletion",
    what="The mount option discard; not of file systems that gather their discards.",
    why="Each freed extent becomes a command to the drive at once, between reads and writes; many drives answer it "
    "slowly. fstrim once a week does the same in one go.",
    helps_when="Files are deleted while latency counts.",
    hurts_when="A thin volume must release space at once, or the drive is nearly full.",
    sources=(sources.PERFSPECT, sources.DISCARD),
)
def online_discard(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = [
        one for one in facts.filesystems if one.kind not in _GATHERS and "discard" in (one.options or "").split(",")
    ]
    if not found:
        return None
    return online_discard.found(
        why="Deleting many files slows reads and writes down meanwhile.",
        evidence={
            "devices": tuple(one.device for one in found),
            "detail": tuple(f"{', '.join(one.mountpoints) or one.device}: {one.kind}, discard" for one in found),
        },
        remedy=(
            *(
                RunShell(f"mount -o remount,nodiscard {shlex.quote(one.mountpoints[0])}", "stop discarding online")
                for one in found
                if one.mountpoints
            ),
            *_keep_nodiscard(facts, [place for one in found for place in one.mountpoints]),
            RunShell("systemctl enable --now fstrim.timer", "discard once a week instead")
            if facts.systemd is not None and facts.systemd.is_running
            else Decide("run fstrim --all once a week instead, as from cron"),
        ),
        intent=True,
    )


def _keep_nodiscard(facts: Facts, mountpoints: Collection[str]) -> Iterator[Decide]:
    """What keeps the option away at the next mount: the lines of /etc/fstab that have it, if any does."""
    for one in facts.site_settings:
        if one.path == "/etc/fstab" and one.key == "discard" and one.scope.rpartition(" (")[0] in mountpoints:
            yield Decide(f"remove discard from line {one.line} of /etc/fstab")


@rule(
    id="irqs.cloud-agent",
    severity="info",
    title="Google's guest agent sets queues and interrupts",
    what="google_set_multiqueue, unless set_multiqueue is false in /etc/default/instance_configs.cfg.",
    why="At each boot, and when the agent starts, it sets channels, interrupt affinity and XPS of every link: what "
    "is set otherwise is overwritten.",
    helps_when="You set these yourself: configure the agent not to.",
    hurts_when="Nobody else does: without it all interrupts may run on few CPUs.",
    sources=(sources.GOOGLE_MULTIQUEUE,),
    seen_live=False,
)
def cloud_agent(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if not facts.owners.cloud_multiqueue:
        return None
    return cloud_agent.found(
        why="Two owners of one value: the last to write it wins, at every boot again.",
        evidence={"agent": "google_set_multiqueue"},
        remedy="write set_multiqueue = false into /etc/default/instance_configs.cfg before you set channels, affinity "
        "or XPS, or leave them to the agent",
        intent=True,
    )
