"""Hosts that serve what the general profiles are for: units that run, as systemd shows them; and virtual machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.host import Host
from tests.whole_hosts import DISTRIBUTIONS, WholeHost

UNITS = {
    "postgresql": "postgresql@16-main.service",
    "mysql": "mariadb.service",
    "redis": "redis-server.service",
    "nfs-server": "nfs-server.service",
    "ceph-osd": "ceph-osd@3.service",
    "minio": "minio.service",
    "kafka": "kafka.service",
    "kvm-host": "libvirtd.service",
    "web-server": "nginx.service",
}
"""A unit by the profile that is for it."""
GENERAL = frozenset({*UNITS, "nfs-client", "low-latency", "virtual-guest", "cloud-guest"})
"""Profiles whose kinds of values others set as well: tests that are dear for each profile leave them to those."""
MORE_SYSCTLS = {
    "kernel.pid_max": "32768",
    "net.ipv4.ip_local_port_range": "32768\t60999",
    "net.ipv4.tcp_keepalive_intvl": "75",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_max_syn_backlog": "2048",
    "net.ipv4.tcp_syncookies": "0",
    "vm.stat_interval": "1",
}


def serving_host(
    units: Iterable[str], *, gib: int = 64, sysctl: Mapping[str, str] = {}, vendor: str = "Dell Inc.", model: str = ""
) -> Host:
    """A plain server with these units; nothing is tuned but ``sysctl``. ``model`` is its disk's."""
    made = WholeHost(DISTRIBUTIONS["debian-12"], gib=gib, cpus=8)
    made.sysctl({**MORE_SYSCTLS, **sysctl})
    made.firmware(vendor, "VMware Virtual Platform" if vendor.startswith("VMware") else "PowerEdge R640")
    made.link("eno1", "192.0.2.10/24", driver="ixgbe", speed=10_000, route=True)
    if model:
        made.scsi("sda", made.pci("0000:00:10.0", -1), model=model, vendor=vendor[:6])
        _give_timeout(made, "sda")
    else:
        made.plain_disk("sda", gib=960, at=("/boot", "/"))
    made.files["/proc/meminfo"] += "SwapTotal: 4194304 kB\n"
    policy = "/sys/devices/system/cpu/cpufreq/policy0"
    made.files |= {
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        f"{policy}/scaling_governor": "schedutil\n",
        f"{policy}/scaling_available_governors": "performance schedutil\n",
        f"{policy}/scaling_driver": "acpi-cpufreq\n",
        f"{policy}/affected_cpus": "0 1 2 3 4 5 6 7\n",
        f"{policy}/related_cpus": "0 1 2 3 4 5 6 7\n",
    }
    made.links |= {f"/run/systemd/units/invocation:{unit}": "0123456789abcdef0123456789abcdef" for unit in units}
    return made.host()


def _give_timeout(made: WholeHost, disk: str) -> None:
    queue = made.links[f"/sys/block/{disk}"].removeprefix("..")
    made.files[f"/sys{queue}/queue/io_timeout"] = "30000\n"


def cloud_host() -> Host:
    """An EC2 instance with an EBS volume, as installed."""
    made = WholeHost(DISTRIBUTIONS["debian-12"], gib=64, cpus=8)
    made.sysctl(MORE_SYSCTLS)
    made.ec2("r6i.2xlarge")
    made.link("ens5", "172.31.5.6/20", driver="ena", mtu=9001, speed=None, route=True)
    made.drive(0, "Amazon Elastic Block Store", gib=20, at=("/",), kind="xfs")
    _give_timeout(made, "nvme0n1")
    return made.host()
