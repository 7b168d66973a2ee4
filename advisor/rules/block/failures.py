"""Parts that fail: drives that the kernel has given up, memory that returned wrong data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from advisor.rules import sources
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 118


@rule(
    id="disks.offline",
    severity="critical",
    title="The kernel has taken a drive offline",
    what="The state of SCSI and NVMe devices: offline, transport-offline, dead.",
    why="A device that no longer answers its commands, nor the resets after them, is taken offline: all I/O fails.",
    helps_when="Always: a drive, its cable, its slot or the storage behind it has failed.",
    hurts_when="The storage was taken away on purpose, or a path of a multipath map is down for work on a switch.",
    sources=(sources.SCSI_STATES,),
)
def offline(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for disk in facts.disks:
        state = disk.detail.get("state")
        if state in {"offline", "transport-offline", "dead"}:
            yield offline.found(
                title=f"{disk.name} is {state}: all I/O to it fails",
                why="The kernel has given the device up after commands and resets that were not answered.",
                evidence={"disks": (disk.name,), "state": state, "model": disk.model, "serial": disk.serial},
                remedy=(
                    RunShell(f"journalctl -k --grep {shlex.quote(disk.name)}", "see why it was given up"),
                    RunShell(f"smartctl -a /dev/{shlex.quote(disk.name)}", "ask the drive, if it answers again"),
                    "replace the drive, or its cable, where it is the one that failed",
                ),
            )


@rule(
    id="memory.uncorrected-errors",
    severity="critical",
    title="Memory returned data that could not be corrected",
    what="ue_count of all memory controllers (EDAC) since the driver was loaded.",
    why="ECC corrects one wrong bit of a word; an uncorrected error is data that was lost, on its way to a drive too.",
    helps_when="Always: the module is failing, or not seated well.",
    hurts_when="The count is of an injected error, as tests of EDAC make.",
    sources=(sources.EDAC,),
    seen_live=False,
)
def uncorrected(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    count = facts.memory.uncorrected_errors
    if not count:
        return None
    times = "time" if count == 1 else "times"
    return uncorrected.found(
        title=f"Memory returned data that could not be corrected {count:,} {times}",
        why="Each such error is a word of memory whose content was lost. What used it may have written wrong data.",
        evidence={"uncorrected_errors": count},
        remedy=(
            RunShell("grep . /sys/devices/system/edac/mc/mc*/ue_count", "see which memory controller counts"),
            RunShell("journalctl -k --grep edac", "see which module it is"),
            "replace that module, then check the file systems and the data that was written since",
        ),
    )
