"""Agents and packages of cloud providers that write what profiles write, by their files on the host.

Each is named with what its source writes: WALinuxAgent (ga/env.py, osutil/default.py), azure-vm-utils
(80-azure-disk.rules), GoogleCloudPlatform guest-configs (65-gce-disk-naming.rules, google_optimize_local_ssd) and
guest-agent (instance_setup.go), amazon-ec2-net-utils (80-ec2.network), ec2-net-utils of Amazon Linux 2 (EC2 user guide,
elastic network interfaces), oci-utils (ocid(8), network_interface.py, oci-kvm-config.sh), Oracle Cloud Agent (Compute,
transitioning to the HPC plugin). What they write to /etc/sysctl.d is judged with every other file there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from advisor.facts.link_claim import is_stopped
from advisor.host import Host, Missing, is_count
from advisor.host.patterns import lazy_regex
from advisor.importers.other_writer import OtherWriter
from advisor.planning.records import Change

_NAMED: Final = 4
_RULE_DIRECTORIES: Final = ("/etc/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d")
_RULES: Final[Mapping[str, tuple[str, str]]] = {
    "80-azure-disk.rules": ("azure-vm-utils", "MSFT NVMe Accelerator v1.0"),
    "65-gce-disk-naming.rules": ("Google's guest environment", "nvme_card-pd"),
}
"""Rule files that set the time of requests: whose they are, and the model of the disks that they mean. They are read
before advisor's own rules, which therefore win where a plan writes one."""
_NO_TIMEOUT: Final = 2147483640
"""From this number on a request is never given up: the kernel turns it into its longest time."""
_WAAGENT: Final = "/etc/waagent.conf"
_GOOGLE_CONFIG: Final = "/etc/default/instance_configs.cfg"
_LOCAL_SSD: Final = ("scheduler", "add_random", "nr_requests", "rotational", "rq_affinity", "nomerges")
_EC2_NETWORK: Final = "/usr/lib/systemd/network/80-ec2.network"
_OCI_CONFIG: Final = "/etc/oci-utils.conf.d"
_RDMA_AGENTS: Final = ("/run/oci-hpc/oci-rdma-authentication.json", "/opt/oci-hpc/oci-cn-auth")
_OFF: Final = ("false", "no", "off", "0")
_MTU: Final = lazy_regex(r"link:([^:]+):mtu")
_TIMEOUT: Final = lazy_regex(r"block:([^:]+):io_timeout")
_QUEUE: Final = lazy_regex(r"block:([^:]+):(\w+)")
_LINE: Final = lazy_regex(r"(?m)^[ \t]*([\w.]+)[ \t]*[=:][ \t]*([^\s#;]+)")


def find_cloud_writers(
    host: Host, changes: Sequence[Change], files: Mapping[str, bytes], interrupts: Sequence[str]
) -> Iterator[OtherWriter]:
    """Those that write what ``changes`` write, or ``files``; ``interrupts`` are the numbers of those that move."""
    yield from _azure_agent(host, changes)
    yield from _vendor_rules(host, changes)
    yield from _google_agent(host, changes, interrupts)
    yield from _amazon_networks(host, changes, files)
    yield from _oracle_agents(host, changes)


def _azure_agent(host: Host, changes: Sequence[Change]) -> Iterator[OtherWriter]:
    """waagent writes /sys/block/sd*/device/timeout, the same number as queue/io_timeout, every 30 seconds."""
    text = host.read(_WAAGENT)
    if isinstance(text, Missing) or _are_stopped(host, "walinuxagent.service", "waagent.service"):
        return
    seconds = dict(_LINE.findall(text)).get("OS.RootDeviceScsiTimeout", "")
    if not is_count(seconds):
        return
    wanted = {
        one.tunable: f"{seconds}000"
        for one in changes
        if (found := _TIMEOUT.fullmatch(one.tunable)) and found[1].startswith("sd") and one.after != f"{seconds}000"
    }
    if wanted:
        yield OtherWriter(
            "waagent",
            (
                f"Azure's agent sets {_list_values(wanted)} again every 30 s: set OS.RootDeviceScsiTimeout in "
                f"{_WAAGENT} to that many seconds, or comment it out, and restart the agent"
            ),
            wanted,
        )


def _vendor_rules(host: Host, changes: Sequence[Change]) -> Iterator[OtherWriter]:
    for name, (who, model) in _RULES.items():
        path = next((f"{place}/{name}" for place in _RULE_DIRECTORIES if host.exists(f"{place}/{name}")), None)
        found = re.search(r'ATTR\{queue/io_timeout\}="([0-9]+)"', "" if path is None else host.read_or_empty(path))
        if path is None or found is None:
            continue
        wanted = {
            one.tunable: found[1]
            for one in changes
            if one.persist is None
            and (disk := _TIMEOUT.fullmatch(one.tunable))
            and host.read_or_empty(f"/sys/block/{disk[1]}/device/model").strip() == model
            and not _is_same_time(one.after, found[1])
        }
        if wanted:
            yield OtherWriter(
                who,
                (
                    f"{path} sets {_list_values(wanted)} whenever udev sees the disk, at boot for instance, and "
                    "no file of advisor's is read after it: apply this without --runtime-only, or change the "
                    "rule"
                ),
                wanted,
            )


def _is_same_time(after: str, other: str) -> bool:
    return after == other or (is_count(after) and min(int(after), int(other)) >= _NO_TIMEOUT)


def _google_agent(host: Host, changes: Sequence[Change], interrupts: Sequence[str]) -> Iterator[OtherWriter]:
    if _are_stopped(host, "google-guest-agent.service", "google-guest-agent-manager.service"):
        return
    queues = [(one, found) for one in changes if (found := _QUEUE.fullmatch(one.tunable))]
    if host.exists("/usr/bin/google_guest_agent"):
        wanted = {one.tunable: "none" for one, found in queues if found[2] == "scheduler" and one.after != "none"}
        if wanted:
            yield OtherWriter(
                "google_guest_agent",
                (
                    f"Google's guest agent sets {_list_values(wanted)} when it starts (instance_setup.go of its "
                    "versions in Go): the last one to write counts"
                ),
                wanted,
            )
    if not host.exists("/usr/bin/google_optimize_local_ssd") or _is_off(host, "optimize_local_ssd"):
        return
    ssds = any(
        found[2] in _LOCAL_SSD and "EphemeralDisk" in host.read_or_empty(f"/sys/block/{found[1]}/device/model")
        for _, found in queues
    )
    if ssds or interrupts:
        yield OtherWriter(
            "google_optimize_local_ssd",
            (
                "Google's guest environment sets interrupts of NVMe drives and the queues of local SSDs "
                "whenever its agent starts: optimize_local_ssd = false in the section [InstanceSetup] of "
                f"{_GOOGLE_CONFIG} leaves these as they are set"
            ),
            None,
        )


def _is_off(host: Host, key: str) -> bool:
    values = [value for name, value in _LINE.findall(host.read_or_empty(_GOOGLE_CONFIG)) if name.lower() == key]
    return bool(values) and values[-1].lower() in _OFF


def _amazon_networks(host: Host, changes: Sequence[Change], files: Mapping[str, bytes]) -> Iterator[OtherWriter]:
    found = re.search(r"(?m)^MTUBytes=([0-9]+)", host.read_or_empty(_EC2_NETWORK))
    if found is not None:
        # A drop-in of networkd's file for the link is read after it, and wins.
        wanted = {
            one.tunable: found[1]
            for one in changes
            if _MTU.fullmatch(one.tunable)
            and one.after != found[1]
            and not (one.persist or "").endswith(".conf")
            and _is_of_ec2(host, one.tunable)
        }
        if wanted:
            yield OtherWriter(
                "amazon-ec2-net-utils",
                (
                    f"{_EC2_NETWORK} of amazon-ec2-net-utils has systemd-networkd set {_list_values(wanted)} "
                    "when it configures the link: a file NAME.network.d/50-mtu.conf for the link's own .network "
                    "file overrides that"
                ),
                wanted,
            )
    for path, content in files.items():
        if "/network-scripts/ifcfg-" in path and re.search(rb"(?m)^EC2SYNC=[\"']?yes", content):
            yield OtherWriter(
                "ec2-net-utils",
                (
                    f"{path} says EC2SYNC=yes: ec2-net-utils writes this file when the interface is attached. "
                    "EC2SYNC=no in it leaves the file alone"
                ),
                None,
                files=(path,),
            )


def _is_of_ec2(host: Host, tunable: str) -> bool:
    """Whether a driver that the file's [Match] names runs the link; so also where that cannot be read."""
    place = host.readlink(f"/sys/class/net/{tunable.split(':')[1]}/device/driver")
    return isinstance(place, Missing) or place.rpartition("/")[2] in ("ena", "ixgbevf", "vif")


def _oracle_agents(host: Host, changes: Sequence[Change]) -> Iterator[OtherWriter]:
    links = {one.tunable: one for one in changes if _MTU.fullmatch(one.tunable)}
    wanted = {name: "9000" for name, one in links.items() if one.after != "9000"}
    if wanted and host.exists("/usr/libexec/ocid") and not is_stopped(host, "ocid.service") and _sets_vnics(host):
        yield OtherWriter(
            "ocid",
            (
                "ocid of oci-utils gives every secondary VNIC that it configures, after each boot for instance, "
                f"an MTU of 9000: enabled = false in the section [vnic] of a file in {_OCI_CONFIG} leaves them "
                "alone"
            ),
            None,
        )
    if wanted and host.exists("/usr/libexec/oci-kvm-config.sh") and not is_stopped(host, "oci-kvm-config.service"):
        yield OtherWriter(
            "oci-kvm-config",
            (
                "oci-kvm-config gives every virtual function of a port an MTU of 9000 at boot: systemctl disable "
                "oci-kvm-config leaves them alone"
            ),
            None,
        )
    rdma = [name for name in links if host.exists(f"/sys/class/net/{name.split(':')[1]}/device/infiniband")]
    if rdma and any(map(host.exists, _RDMA_AGENTS)):
        yield OtherWriter(
            "oracle-cloud-agent",
            (
                "The plugin Compute HPC RDMA Authentication of Oracle Cloud Agent sets the MTU of RDMA links "
                f"({', '.join(name.split(':')[1] for name in rdma[:_NAMED])}) and their quality of service: "
                "leave these to it, or disable the plugin in the instance's Oracle Cloud Agent tab"
            ),
            None,
        )


def _sets_vnics(host: Host) -> bool:
    """Unless ``enabled`` of [vnic] is off; of several files the order is not defined, so that one that says so
    counts."""
    for name in host.names(_OCI_CONFIG):
        section = ""
        for line in host.read_or_empty(f"{_OCI_CONFIG}/{name}").splitlines():
            section = line.strip() if line.startswith("[") else section
            found = re.match(r"[ \t]*(enabled|vf_net)[ \t]*[=:][ \t]*(\w+)", line)
            if section == "[vnic]" and found and (found[2].lower() in _OFF) is (found[1] == "enabled"):
                return False
    return True


def _are_stopped(host: Host, *units: str) -> bool:
    """Whether none of the units runs, as far as systemd knows."""
    return all(is_stopped(host, unit) for unit in units)


def _list_values(values: Mapping[str, str]) -> str:
    parts = [f"{name} = {value}" for name, value in values.items()]
    return ", ".join((*parts[:_NAMED], "…") if len(parts) > _NAMED else parts)
