"""Agents and packages of cloud providers, and other programs that come back to values of devices.

Each by its files, with what its source writes: WALinuxAgent (ga/env.py, osutil/default.py), azure-vm-utils
(80-azure-disk.rules), GoogleCloudPlatform guest-configs (65-gce-disk-naming.rules, google_set_multiqueue,
google_optimize_local_ssd) and guest-agent (instance_setup.go), amazon-ec2-net-utils (80-ec2.network), oci-utils
(ocid(8), network_interface.py, oci-kvm-config.sh), Oracle Cloud Agent (Compute, transitioning to the HPC plugin).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from advisor.facts.ini_text import parse_settings
from advisor.facts.link_claim import is_stopped
from advisor.facts.owners import GOOGLE_CONFIG, OFF, is_switched_off
from advisor.facts.writers.commands import NO_TIMEOUT
from advisor.facts.writers.devices import RULES
from advisor.facts.writers.record import Place, Writer
from advisor.host import Host, Missing

_EC2_NETWORK = "/usr/lib/systemd/network/80-ec2.network"
_OCI_CONFIG = "/etc/oci-utils.conf.d"
_RDMA_AGENTS = ("/run/oci-hpc/oci-rdma-authentication.json", "/opt/oci-hpc/oci-cn-auth")
_LOCAL_SSD = ("scheduler", "add_random", "nr_requests", "rotational", "rq_affinity", "nomerges")
_NET = "/sys/class/net"


def _disk_rules(name: str, model: str, host: Host) -> Iterator[Place]:
    """The time of requests that a package's rule gives the disks of one model."""
    path = next((f"{place}/{name}" for place in RULES if host.exists(f"{place}/{name}")), None)
    found = re.search(r'ATTR\{queue/io_timeout\}="([0-9]+)"', host.read_or_empty(path) if path else "")
    for disk in host.names("/sys/block") if found else ():
        if host.read_or_empty(f"/sys/block/{disk}/device/model").strip() == model and found:
            yield Place(f"block:{disk}:io_timeout", str(min(int(found[1]), NO_TIMEOUT)), path)


def _local_ssds(host: Host) -> Iterator[Place]:
    if host.exists("/usr/bin/google_optimize_local_ssd") and not is_switched_off(host, "optimize_local_ssd"):
        yield Place("irq:*:affinity", None)
        for disk in host.names("/sys/block"):
            if "EphemeralDisk" in host.read_or_empty(f"/sys/block/{disk}/device/model"):
                yield from (Place(f"block:{disk}:{name}", None) for name in _LOCAL_SSD)


def _ec2_links(host: Host) -> Iterator[Place]:
    found = re.search(r"(?m)^MTUBytes=([0-9]+)", host.read_or_empty(_EC2_NETWORK))
    for link in host.names(_NET) if found else ():
        place = host.readlink(f"{_NET}/{link}/device/driver")
        if isinstance(place, Missing) or place.rpartition("/")[2] in ("ena", "ixgbevf", "vif"):
            yield Place(f"link:{link}:mtu", found[1] if found else None, _EC2_NETWORK)


def _oracle_vnics(host: Host) -> Iterator[Place]:
    """Unless ``enabled`` of [vnic] is off, or ``vf_net`` on; of several files the order is not defined, so that one
    that says so counts."""
    texts = (host.read_or_empty(f"{_OCI_CONFIG}/{name}") for name in host.names(_OCI_CONFIG))
    said = [one for text in texts for one in parse_settings(text.replace(":", "="), continued=False)]
    is_off = any(
        (value.lower() in OFF) is (key == "enabled")
        for section, key, value in said
        if section == "vnic" and key in ("enabled", "vf_net")
    )
    if host.exists("/usr/libexec/ocid") and not is_stopped(host, "ocid.service") and not is_off:
        yield Place("link:*:mtu", "9000")


def _oracle_rdma(host: Host) -> Iterator[Place]:
    if any(map(host.exists, _RDMA_AGENTS)):
        for link in host.names(_NET):
            if host.exists(f"{_NET}/{link}/device/infiniband"):
                yield Place(f"link:{link}:mtu", None)


_LEAVES = f"= false in the section [InstanceSetup] of {GOOGLE_CONFIG} leaves these as they are set"
_RUNTIME = "no file of advisor's is read after it: apply this without --runtime-only, or change the rule"
BEFORE_UDEV = (
    Writer(
        "azure-vm-utils",
        "whenever udev sees the disk, at boot for instance",
        partial(_disk_rules, "80-azure-disk.rules", "MSFT NVMe Accelerator v1.0"),
        _RUNTIME,
        True,
    ),
    Writer(
        "Google's guest environment",
        "whenever udev sees the disk, at boot for instance",
        partial(_disk_rules, "65-gce-disk-naming.rules", "nvme_card-pd"),
        _RUNTIME,
        True,
    ),
    Writer(
        "amazon-ec2-net-utils",
        "when systemd-networkd configures the link",
        _ec2_links,
        "a file NAME.network.d/50-mtu.conf for the link's own .network file overrides that",
        True,
    ),
)
"""Packages whose files are read before those that advisor writes."""
AGENTS = (
    Writer("google_optimize_local_ssd", "when its agent starts", _local_ssds, f"optimize_local_ssd {_LEAVES}", True),
    Writer(
        "ocid",
        "for secondary VNICs, after each boot for instance",
        _oracle_vnics,
        f"enabled = false in the section [vnic] of a file in {_OCI_CONFIG} leaves them alone",
        True,
    ),
    Writer(
        "oracle-cloud-agent",
        "by its plugin Compute HPC RDMA Authentication",
        _oracle_rdma,
        "leave these links to it, or disable the plugin in the instance's Oracle Cloud Agent tab",
        True,
    ),
)
