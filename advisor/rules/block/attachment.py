"""How storage is attached: Fibre Channel, paths of multipath, queues of NVMe over a network, RDMA adapters."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from advisor.facts.block.disks import Disk
from advisor.facts.processors.cpulist import parse_list
from advisor.facts.remote.network_storage import RemotePort
from advisor.host.numbers import count_of, is_count
from advisor.rules import sources
from advisor.rules.queries import is_up
from advisor.rules.remote.multipath import FOR_EVER, fault_finder
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 120

_PORT_COMMANDS = 2048
_PATH_MEMORY = 600
"""Seconds: the kernel's own ctrl_loss_tmo."""
_USUAL_QUEUE = 128
_GOOD = "Online"


@rule(
    id="fc.port-down",
    severity="warning",
    title="A Fibre Channel port that had storage is down",
    what="port_state of each fc_host that still has remote ports.",
    why="The paths through it are lost or about to be: what is left carries all of the load.",
    helps_when="Always: a cable, an SFP, a switch port or the zoning.",
    hurts_when="The fabric is down for work that is known.",
    sources=(sources.FC_TRANSPORT, sources.PROCFS_FC),
    seen_live=False,
)
def fc_port_down(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for port in facts.fibre_channel:
        targets = [one.name for one in port.remote_ports if one.is_target]
        if port.state and port.state != _GOOD and targets:
            yield fc_port_down.found(
                title=f"Fibre Channel port {port.name} is {port.state}",
                why="The kernel still remembers the target ports that were reached through it.",
                evidence={"device": port.name, "state": port.state, "targets": tuple(targets)},
                remedy=(
                    RunShell(f"journalctl -k --grep {shlex.quote(port.name)}", "see when it went down"),
                    "check cable, SFP, switch port and zoning, in this order",
                ),
            )


@rule(
    id="fc.port-slow",
    severity="advice",
    title="A Fibre Channel port runs below its best speed",
    what="speed of each fc_host that is online, against the best of its supported_speeds.",
    why="Both ends agree on the fastest speed that both have: a slower SFP or switch port, or errors at the better "
    "one.",
    helps_when="Adapter and switch are of one generation: cable and SFP first.",
    hurts_when="The switch has no faster ports: then it is what was bought.",
    sources=(sources.FC_TRANSPORT, sources.PROCFS_FC),
    seen_live=False,
)
def fc_port_slow(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    slow = {
        port.name: f"{port.name}: {port.speed_gbps} of {port.best_speed_gbps} Gbit/s"
        for port in facts.fibre_channel
        if port.state == _GOOD and 0 < port.speed_gbps < port.best_speed_gbps
    }
    if not slow:
        return None
    return fc_port_slow.found(
        why="The adapter could do more than the link does.",
        evidence={"devices": tuple(slow), "detail": tuple(slow.values())},
        remedy="check SFP, cable and the speed of the switch port",
    )


@rule(
    id="fc.queue-depth",
    severity="advice",
    title="LUNs may ask more than their target port takes",
    what="The sum of queue_depth of the disks behind each Fibre Channel target port, against 2,048.",
    why="A port that has no room answers QUEUE FULL: the driver backs off for all LUNs. NetApp's formula is: depth × "
    "LUNs × hosts at most the commands of the port.",
    helps_when="Several hosts and many LUNs share the port. With more than one host the limit is lower still.",
    hurts_when="The array takes more commands (its documentation says), or most LUNs are idle.",
    sources=(sources.NETAPP_QUEUE,),
    seen_live=False,
)
def fc_queue_depth(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    sums: dict[str, list[int]] = {}
    for disk in facts.disks:
        depth, port = disk.detail.get("queue_depth", ""), disk.detail.get("remote_port")
        if port and is_count(depth) and len(depth) < 6:
            sums.setdefault(port, []).append(int(depth))
    over = {port: depths for port, depths in sums.items() if sum(depths) > _PORT_COMMANDS}
    if not over:
        return None
    return fc_queue_depth.found(
        why="This host alone may fill the port.",
        evidence={
            "targets": tuple(over),
            "detail": tuple(f"{port}: {len(depths)} LUNs, {sum(depths)} commands" for port, depths in over.items()),
            "commands_of_a_port": _PORT_COMMANDS,
        },
        remedy="set lun_queue_depth of the driver (lpfc_lun_queue_depth, ql2xmaxqdepth) to 2,048 / (LUNs × hosts), or "
        "what the array's documentation says",
    )


@rule(
    id="multipath.alua-groups",
    severity="advice",
    title="A multipath group mixes ALUA access states",
    what="access_state of the paths of each map (ALUA), its path groups, and whether scsi_dh_alua is attached.",
    why="Requests over a path that is not optimized cross the array's inner link, and may move the LUN to and fro.",
    helps_when="The array reports groups of target ports (TPGS): group_by_prio, prio alua.",
    hurts_when="The array answers alike on all ports (symmetric): then one group is right.",
    sources=(sources.HPE_CSI, sources.ALUA, sources.MULTIPATH_CONF),
    seen_live=False,
)
def alua_groups(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    disks = {disk.name: disk for disk in facts.disks}
    for array in facts.arrays:
        if array.manager != "dm-multipath":
            continue
        paths = [disks[name] for name in array.members if name in disks]
        mixed = [
            states
            for group in array.path_groups
            if len(states := {disks[one].detail.get("access_state") for one in group.paths if one in disks} - {None})
            > 1
        ]
        bare = [
            one.name
            for one in paths
            if one.detail.get("handler") == "detached" and one.detail.get("tpgs", "none") != "none"
        ]
        if not mixed and not bare:
            continue
        yield alua_groups.found(
            title=f"{array.name} mixes optimized paths with others"
            if mixed
            else f"{array.name}: no ALUA handler for the groups of ports",
            why="All paths of a group get requests in turn, the slower ones too."
            if mixed
            else "Without the handler the kernel neither knows nor activates the optimized paths.",
            evidence={
                "arrays": (array.name,),
                "detail": tuple(
                    f"{one.name}: {one.detail.get('access_state') or one.detail.get('handler') or 'unknown'}"
                    for one in paths
                ),
            },
            remedy=(
                RunShell("multipath -ll", "see groups, priorities and states"),
                "in /etc/multipath.conf, for this array: path_grouping_policy group_by_prio, prio alua, "
                'hardware_handler "1 alua", failback immediate; then multipathd reconfigure',
            ),
        )


@rule(
    id="multipath.fc-timeouts",
    severity="warning",
    title="FC paths fail over late, or single ones early",
    what="The shorter of fast_io_fail_tmo and dev_loss_tmo of each remote port that has disks: above 10 s where a map "
    "has another path, below 30 s where nothing has and no map queues.",
    why="When a port is lost, its requests wait for this time before multipath may send them over another path; "
    "without another path they fail then.",
    helps_when="There is another path: 5 s let a switch recover, and no longer. There is none: off waits for "
    "dev_loss_tmo.",
    hurts_when="A cluster fences the host, or a layer above mirrors: then a single path should fail soon.",
    sources=(sources.HPE_CSI, sources.PURE_OPENSTACK, sources.MULTIPATH_CONF),
    contradictions=("contradiction.multipath-fc-timeouts",),
    seen_live=False,
)
def fc_timeouts(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    fault_of = fault_finder(facts)
    behind: dict[str | None, list[str]] = {}
    for disk in facts.disks:
        behind.setdefault(disk.detail.get("remote_port"), []).append(disk.name)
    faults: dict[str | None, dict[str, str]] = {}
    for remote in (one for port in facts.fibre_channel for one in port.remote_ports):
        if (seconds := _seconds_of(remote)) is not None:
            fault = fault_of("fc", behind.get(remote.name, ()), seconds)
            faults.setdefault(fault, {})[remote.name] = (
                f"{remote.name}: fast_io_fail_tmo {remote.fast_io_fail or 'unknown'}, "
                f"dev_loss_tmo {'unknown' if remote.dev_loss_seconds is None else remote.dev_loss_seconds}"
            )
    early, late = faults.get("early"), faults.get("late")
    if early:
        yield fc_timeouts.found(
            severity="warning",
            title="FC disks without another path fail early",
            why="Nothing stands behind these paths: when the fabric is away for longer, the file system gets I/O "
            "errors and goes read-only.",
            evidence={"targets": tuple(early), "detail": tuple(early.values())},
            remedy="set fast_io_fail_tmo of these remote ports to off and dev_loss_tmo to at least 60, or give their "
            "disks a second path and multipath",
        )
    if not late:
        return
    yield fc_timeouts.found(
        severity="advice",
        title="Requests wait long before FC paths fail over",
        why="Programs stand still for that long, although another path works.",
        evidence={"targets": tuple(late), "detail": tuple(late.values())},
        remedy="set fast_io_fail_tmo 5 in /etc/multipath.conf (defaults, or the array's section), then multipathd "
        "reconfigure; dev_loss_tmo and no_path_retry as the array's vendor says",
    )


def _seconds_of(remote: RemotePort) -> int | None:
    """After how long requests fail: at fast_io_fail_tmo, without one when the kernel gives the port up."""
    fast = FOR_EVER if remote.fast_io_fail == "off" else count_of(remote.fast_io_fail)
    lost = FOR_EVER if remote.dev_loss_seconds is None else remote.dev_loss_seconds
    return None if fast is None else min(fast, lost)


def _seconds(disk: Disk, name: str) -> int | None:
    """A timeout of NVMe over a network; the largest number for ``off``, None where it is unknown."""
    text = disk.detail.get(name, "")
    return FOR_EVER if text in ("off", "-1") else count_of(text)


def _loss_faults(facts: Facts) -> Iterator[tuple[str, Disk]]:
    fault_of = fault_finder(facts)
    for disk in facts.disks:
        loss, fast = (_seconds(disk, name) for name in ("ctrl_loss_tmo", "fast_io_fail_tmo"))
        if disk.kind != "nvme" or loss is None:
            continue
        if len(disk.paths) > 1:
            if loss < _PATH_MEMORY:
                yield "forgotten", disk
        elif fault := fault_of("nvme", (disk.name,), min(loss, FOR_EVER if fast is None else fast)):
            yield fault, disk


_LOSS_WORDS = {
    "late": (
        "NVMe paths hold I/O long before they fail over",
        "dm-multipath learns of a lost controller only when its requests fail: after fast_io_fail_tmo, or when the "
        "controller is given up.",
        "reconnect with nvme connect --fast_io_fail_tmo=5, and a long --ctrl-loss-tmo",
    ),
    "forgotten": (
        "NVMe paths that are lost do not come back",
        "The kernel sends requests over another path at once, but removes a controller for good after ctrl_loss_tmo: "
        "a path that returns later is not used again, and the next loss is the last.",
        "reconnect with nvme connect --ctrl-loss-tmo=-1 (for ever), path by path",
    ),
    "early": (
        "NVMe disks without a second path fail early",
        "Nothing stands behind the connection: when it is away for longer, requests fail and the file system goes "
        "read-only.",
        "reconnect with nvme connect --ctrl-loss-tmo=600 or more, and without --fast_io_fail_tmo",
    ),
}


@rule(
    id="disks.fabric-loss",
    severity="warning",
    title="The loss timeout of NVMe does not fit its paths",
    what="ctrl_loss_tmo and fast_io_fail_tmo of controllers over TCP, RDMA and Fibre Channel: below 600 s with native "
    "multipath and several paths, both above 30 s below dm-multipath, one below 60 s without multipath.",
    why="It is for NVMe over a network as the replacement timeout is for iSCSI: with another path requests should move "
    "soon, without one they should wait.",
    helps_when="A link, switch or storage controller fails or restarts.",
    hurts_when="Something above mirrors the disk, or a cluster fails over: then it should hear of a loss soon.",
    sources=(sources.NVME_LOSS,),
    seen_live=False,
)
def fabric_loss(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    found = tuple(_loss_faults(facts))
    for fault, (title, why, remedy) in _LOSS_WORDS.items():
        those = tuple(disk for word, disk in found if word == fault)
        if those:
            yield fabric_loss.found(
                severity="warning" if fault == "early" else "advice",
                title=title,
                why=why,
                evidence={
                    "disks": tuple(disk.name for disk in those),
                    "detail": tuple(
                        f"{disk.name}: ctrl_loss_tmo {disk.detail['ctrl_loss_tmo']}, fast_io_fail_tmo "
                        f"{disk.detail.get('fast_io_fail_tmo', 'unknown')}"
                        for disk in those
                    ),
                },
                remedy=remedy,
            )


@rule(
    id="disks.fabric-queues",
    severity="info",
    title="NVMe over a network has few or short queues",
    what="queue_count and sqsize of controllers of nvme-tcp and nvme-rdma, against CPUs and nvme's own 128 entries.",
    why="Each CPU has a queue of its own where there are enough: others share one, and its lock. A short queue holds "
    "requests back although the target has room.",
    helps_when="Many threads do small I/O.",
    hurts_when="The target gives no more queues, or limits them on purpose: then reconnecting changes nothing.",
    sources=(sources.NVME_CONNECT,),
)
def fabric_queues(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    try:
        cpus = len(parse_list(facts.cpu.online or ""))
    except ValueError:
        return None
    few: dict[str, str] = {}
    for disk in facts.disks:
        count, entries = (disk.detail.get(name, "") for name in ("queue_count", "sqsize"))
        if disk.detail.get("transport") not in ("tcp", "rdma") or not is_count(count) or len(count) > 5:
            continue
        queues, length = int(count) - 1, int(entries) + 1 if is_count(entries) and len(entries) < 6 else _USUAL_QUEUE
        if 0 < queues < cpus or length < _USUAL_QUEUE:
            few[disk.name] = f"{disk.name}: {queues} queues of {length} entries"
    if not few:
        return None
    return fabric_queues.found(
        why=f"The host has {cpus} CPUs.",
        evidence={"disks": tuple(few), "detail": tuple(few.values()), "cpus": cpus},
        remedy=f"reconnect with nvme connect --nr-io-queues={cpus} --queue-size={_USUAL_QUEUE}, if the target has as "
        f"many; "
        "with several links, one connection by each (--host-iface)",
        intent=True,
    )


@rule(
    id="links.ipoib-connected",
    severity="info",
    title="IPoIB runs in connected mode",
    what="mode of InfiniBand links that are up.",
    why="Connected mode has an MTU of up to 65,520 bytes, but no multiple queues and no offloads of the adapter.",
    helps_when="The driver offers the accelerated datagram mode (mlx5): several queues, checksums and segmentation.",
    hurts_when="A single stream over an old adapter (mlx4), where the large MTU counts more.",
    sources=(sources.WEKA_RDMA, sources.IPOIB),
    seen_live=False,
)
def ipoib_connected(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        one.name
        for one in facts.links
        if one.kind == "infiniband" and is_up(one) and one.detail.get("mode") == "connected"
    )
    if not found:
        return None
    return ipoib_connected.found(
        why="One queue and one CPU carry what the link receives.",
        evidence={"links": found},
        remedy="set the mode to datagram where the link is configured (nmcli: infiniband.transport-mode datagram), "
        "with an "
        "MTU of at most 4092",
        intent=True,
    )


@rule(
    id="rdma.write-ordering",
    severity="info",
    title="RDMA adapters write in order over PCIe",
    what="PCI_WR_ORDERING by mlxconfig, where it is installed, along with the health of drives.",
    why="Relaxed ordering lets writes pass each other on PCIe, which some hosts need to reach the speed of the link.",
    helps_when="A link of 100 Gbit/s and more stays below its speed on an AMD host, or in a virtual machine.",
    hurts_when="Software relies on the order: regions ask for relaxed ordering by themselves where they can bear it. "
    "A new "
    "value needs a reboot.",
    sources=(sources.WEKA_MLX, sources.ORDERING_DEFAULT),
    contradictions=("contradiction.pci-write-ordering",),
    seen_live=False,
)
def write_ordering(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(one.name for one in facts.links if one.detail.get("pci_write_ordering", "").endswith("(0)"))
    if not found:
        return None
    return write_ordering.found(
        why="It is the firmware's default, and sources differ.",
        evidence={"links": found},
        remedy="measure with ib_write_bw before and after mlxconfig set PCI_WR_ORDERING=1 and a reboot",
        intent=True,
    )
