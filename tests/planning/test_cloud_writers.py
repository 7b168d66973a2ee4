"""Agents and packages of clouds are named where they write what a plan writes, with the value; elsewhere they are not.

The files are as their sources ship them: WALinuxAgent, azure-vm-utils, GoogleCloudPlatform guest-configs and
guest-agent, amazon-ec2-net-utils, oci-utils.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor.host import Host, MemoryFiles, NoCommands, ReadFile
from advisor.importers.conflicts import writers_beside
from advisor.importers.other_writer import OtherWriter
from advisor.planning.records import Change

INVOCATION = "/run/systemd/units/invocation:"
WAAGENT = {
    "/etc/waagent.conf": "# Root device timeout in seconds.\nOS.RootDeviceScsiTimeout=300\n\n"
    "# How often (in seconds) to set the root device timeout.\nOS.RootDeviceScsiTimeoutPeriod=30\n"
}
AZURE_RULE = {
    "/usr/lib/udev/rules.d/80-azure-disk.rules": 'ACTION!="add|change", GOTO="azure_disk_end"\n'
    'ENV{DEVTYPE}=="disk", ATTRS{nsid}=="?*", ATTR{queue/io_timeout}="240000"\n',
    "/sys/block/nvme0n1/device/model": "MSFT NVMe Accelerator v1.0              \n",
    "/sys/block/nvme1n1/device/model": "Microsoft NVMe Direct Disk v2           \n",
}
GOOGLE_RULE = {
    "/lib/udev/rules.d/65-gce-disk-naming.rules": 'KERNEL=="nvme*n*", ENV{DEVTYPE}=="disk", '
    'ATTRS{model}=="nvme_card-pd", ATTR{queue/io_timeout}="4294967295"\n',
    "/sys/block/nvme0n1/device/model": "nvme_card-pd\n",
}
GOOGLE_AGENT = {"/usr/bin/google_guest_agent": ""}
LOCAL_SSD = {"/usr/bin/google_optimize_local_ssd": "", "/sys/block/sdb/device/model": "EphemeralDisk   \n"}
EC2 = {"/usr/lib/systemd/network/80-ec2.network": "[Match]\nDriver=ena ixgbevf vif\n\n[Link]\nMTUBytes=9001\n"}
OCID = {"/usr/libexec/ocid": ""}
OCI_CONFIG, OTHERS_OFF = "/etc/oci-utils.conf.d/00.conf", "[iscsi]\nenabled=false\n[vnic]\nenabled=true\n"
KVM = {"/usr/libexec/oci-kvm-config.sh": ""}
RDMA = {"/run/oci-hpc/oci-rdma-authentication.json": "{}", "/sys/class/net/rdma0/device/infiniband/mlx5_0/x": ""}


def change(identity: str, after: str, persist: str | None = None) -> Change:
    return Change(identity, "1", after, persist, None, "none", "now", "W.", "H.", ("S",), "p", ReadFile("/x"), (), ())


def writers(
    files: Mapping[str, str], *changes: Change, running: str | None = None, paths: tuple[str, ...] = ()
) -> dict[str, OtherWriter]:
    links = {} if running is None else {INVOCATION + running: "0123"}
    content = {path: text.encode() for path, text in files.items()}
    host = Host(MemoryFiles(content, links, frozenset()), NoCommands(), is_root=True)
    return {one.who: one for one in writers_beside(host, changes, paths)}


@pytest.mark.parametrize(
    ("files", "concerned", "who", "otherwise", "named"),
    [
        (WAAGENT, change("block:sda:io_timeout", "60000"), "waagent", "300000", "again every 30 s"),
        (AZURE_RULE, change("block:nvme0n1:io_timeout", "60000"), "azure-vm-utils", "240000", "--runtime-only"),
        (
            GOOGLE_RULE,
            change("block:nvme0n1:io_timeout", "60000"),
            "Google's guest environment",
            "4294967295",
            "65-gce-disk-naming.rules sets",
        ),
        (GOOGLE_AGENT, change("block:sda:scheduler", "mq-deadline"), "google_guest_agent", "none", "when it starts"),
        (LOCAL_SSD, change("block:sdb:nr_requests", "64"), "google_optimize_local_ssd", None, "optimize_local_ssd ="),
        (LOCAL_SSD, change("irq:40:affinity", "3"), "google_optimize_local_ssd", None, "interrupts of NVMe drives"),
        (EC2, change("link:ens5:mtu", "1500"), "amazon-ec2-net-utils", "9001", "80-ec2.network"),
        (OCID, change("link:ens5:mtu", "1500"), "ocid", None, "enabled = false in the section [vnic]"),
        ({**OCID, OCI_CONFIG: OTHERS_OFF}, change("link:ens5:mtu", "1500"), "ocid", None, "enabled = false in"),
        (KVM, change("link:ens5v0:mtu", "1500"), "oci-kvm-config", None, "virtual function"),
        (RDMA, change("link:rdma0:mtu", "9000"), "oracle-cloud-agent", None, "Compute HPC RDMA Authentication"),
    ],
)
def test_each_is_named_where_it_writes_such_a_value(
    files: Mapping[str, str], concerned: Change, who: str, otherwise: str | None, named: str
) -> None:
    found = writers(files, concerned)[who]
    assert named in found.note
    assert found.otherwise == (None if otherwise is None else {concerned.tunable: otherwise})
    assert not writers(files, change("sysctl:vm.swappiness", "1"))
    assert not writers({}, concerned)


@pytest.mark.parametrize(
    ("files", "concerned"),
    [
        (WAAGENT, change("block:sda:io_timeout", "300000")),  # the same value
        (WAAGENT, change("block:nvme0n1:io_timeout", "60000")),  # it writes sd* alone
        ({"/etc/waagent.conf": "# OS.RootDeviceScsiTimeout=300\n"}, change("block:sda:io_timeout", "60000")),
        (AZURE_RULE, change("block:nvme0n1:io_timeout", "60000", "/etc/udev/rules.d/90-advisor-block.rules")),
        (AZURE_RULE, change("block:nvme1n1:io_timeout", "60000")),  # a local disk, which the rule leaves alone
        (GOOGLE_RULE, change("block:nvme0n1:io_timeout", "2147483640")),  # as long as it can be, both
        (GOOGLE_AGENT, change("block:sda:scheduler", "none")),
        (LOCAL_SSD, change("block:sda:nr_requests", "64")),
        (
            {**LOCAL_SSD, "/etc/default/instance_configs.cfg": "[InstanceSetup]\noptimize_local_ssd = false\n"},
            change("block:sdb:nr_requests", "64"),
        ),
        (EC2, change("link:ens5:mtu", "9001")),
        (EC2, change("link:ens5:mtu", "1500", "/etc/systemd/network/70-ens5.network.d/50-advisor-mtu.conf")),
        (OCID, change("link:ens5:mtu", "9000")),
        ({**OCID, OCI_CONFIG: "[vnic]\nenabled=false\n"}, change("link:ens5:mtu", "1500")),
        ({**OCID, OCI_CONFIG: "[vnic]\nvf_net=true\n"}, change("link:ens5:mtu", "1500")),
        (RDMA, change("link:ens5:mtu", "1500")),
    ],
)
def test_who_sets_no_other_value_is_not_named(files: Mapping[str, str], concerned: Change) -> None:
    assert not writers(files, concerned)


@pytest.mark.parametrize(
    ("files", "concerned", "unit"),
    [
        (WAAGENT, change("block:sda:io_timeout", "60000"), "walinuxagent.service"),
        (WAAGENT, change("block:sda:io_timeout", "60000"), "waagent.service"),
        (GOOGLE_AGENT, change("block:sda:scheduler", "mq-deadline"), "google-guest-agent.service"),
        (OCID, change("link:ens5:mtu", "1500"), "ocid.service"),
        (KVM, change("link:ens5v0:mtu", "1500"), "oci-kvm-config.service"),
    ],
)
def test_an_agent_that_does_not_run_is_not_named(files: Mapping[str, str], concerned: Change, unit: str) -> None:
    assert writers(files, concerned, running=unit)
    assert not writers(files, concerned, running="ssh.service")


def test_the_links_of_other_drivers_are_left_alone_by_amazons_file() -> None:
    files = {path: text.encode() for path, text in EC2.items()}
    links = {"/sys/class/net/eth9/device/driver": "/sys/bus/pci/drivers/mlx5_core"}
    host = Host(MemoryFiles(files, links, frozenset()), NoCommands(), is_root=True)
    assert writers_beside(host, (change("link:eth9:mtu", "1500"),), ()) == ()


def test_a_file_that_ec2_net_utils_writes() -> None:
    path = "/etc/sysconfig/network-scripts/ifcfg-eth1"
    files = {path: "DEVICE=eth1\nBOOTPROTO=dhcp\nEC2SYNC=yes\n"}
    found = writers(files, change("link:eth1:mtu", "1500", path), paths=(path,))["ec2-net-utils"]
    assert found.files == (path,)
    assert "EC2SYNC=no" in found.note
    quiet = {path: "DEVICE=eth1\nEC2SYNC=no\n"}
    assert not writers(quiet, change("link:eth1:mtu", "1500", path), paths=(path,))
