"""Who the host is: name, kernel, distribution, virtualisation, vendor, cloud."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.facts.container import read_container
from advisor.facts.cpuinfo import parse_flags
from advisor.facts.memory import parse_meminfo
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

# The first is a link to the second; captures may lack it.
_DMI_PLACES = ("/sys/class/dmi/id", "/sys/devices/virtual/dmi/id")
_DMI_NAMES = ("sys_vendor", "product_name", "board_vendor", "bios_vendor", "bios_version", "chassis_asset_tag")
# What the firmware tables of a virtual machine begin with, in the words of systemd-detect-virt(1).
_DMI_HYPERVISORS = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Apple Virtualization", "apple"),
)
_AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
# Of virtual machines and of bare metal (cloud-init, ds-identify).
_ORACLE_ASSET_TAG = "OracleCloud.com"
# What every host has, and the file that is read for it first.
_NEEDED = {
    "hostname": "/proc/sys/kernel/hostname",
    "kernel": "/proc/sys/kernel/osrelease",
    "os": "/etc/os-release",
    "architecture": "/proc/sys/kernel/arch",
    "virtualization": "/proc/cpuinfo",
    "memory_bytes": "/proc/meminfo",
    "machine_id": "/etc/machine-id",
    "boot_id": "/proc/sys/kernel/random/boot_id",
}


class Cloud(msgspec.Struct, frozen=True):
    """``provider`` is aws, azure, gcp or oci; ``instance_type`` None where the firmware does not report it."""

    provider: str
    instance_type: str | None


class Identity(msgspec.Struct, frozen=True):
    """``memory_bytes`` is MemTotal; ``machine_id`` ties a rollback script to its host.

    ``virtualization`` is in the words of systemd-detect-virt(1), ``none`` for bare metal.
    """

    hostname: str | None
    kernel: str | None
    os: str | None
    architecture: str | None
    virtualization: str | None
    vendor: str | None
    product: str | None
    memory_bytes: int | None
    machine_id: str | None
    boot_id: str | None
    cloud: Cloud | None


def read_identity(host: Host, unknown: Unknowns) -> Identity:
    """Who the host is. What every host has (a name, a kernel, memory …) is noted where it cannot be had."""
    place = _dmi_place(host)
    found = ((name, host.read_text(f"{place}/{name}")) for name in _DMI_NAMES)
    dmi = {name: text for name, text in found if text}
    kernel = _read_kernel(host)
    cpuinfo = host.read_text("/proc/cpuinfo") or ""
    identity = Identity(
        hostname=host.read_text("/proc/sys/kernel/hostname") or host.read_text("/etc/hostname"),
        kernel=kernel,
        os=_read_os(host),
        architecture=_read_architecture(host, kernel, cpuinfo),
        virtualization=_name_container(host) or _detect_virtualization(host, dmi, cpuinfo),
        vendor=dmi.get("sys_vendor"),
        product=dmi.get("product_name") or host.read_text("/proc/device-tree/model"),
        memory_bytes=parse_meminfo(host.read_text("/proc/meminfo") or "").get("MemTotal"),
        machine_id=host.read_text("/etc/machine-id"),
        boot_id=host.read_text("/proc/sys/kernel/random/boot_id"),
        cloud=_detect_cloud(host, dmi),
    )
    for name, path in _NEEDED.items():
        if getattr(identity, name) is None:
            text = host.read(path)
            unknown.note(f"host.{name}", f"{path}: {text.why if isinstance(text, Missing) else 'not in it'}")
    if identity.cloud and identity.cloud.instance_type is None:
        unknown.note("host.cloud.instance_type", f"the firmware of {identity.cloud.provider} does not report it")
    return identity


def parse_os_release(text: str) -> dict[str, str]:
    """Names and values of os-release(5), unquoted."""
    values: dict[str, str] = {}
    for name, value in re.findall(r"^[ \t]*(\w+)=(.*)$", text, re.MULTILINE | re.ASCII):
        bare = value.strip()
        if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
            bare = bare[1:-1]
            bare = re.sub(r"\\([\"$\\`'])", r"\1", bare) if "\\" in bare else bare
        values[name] = bare
    return values


def is_ec2_uuid(uuid: str) -> bool:
    """Whether a Xen guest's UUID is Amazon's: it begins ``ec2``, or would if its first group were byte-swapped."""
    first = uuid.strip().lower().partition("-")[0]
    swapped = "".join(re.findall("..", first)[::-1])
    return len(first) == 8 and (first.startswith("ec2") or swapped.startswith("ec2"))


def _dmi_place(host: Host) -> str:
    return next((place for place in _DMI_PLACES if host.is_dir(place)), _DMI_PLACES[0])


def _read_kernel(host: Host) -> str | None:
    release = host.read_text("/proc/sys/kernel/osrelease")
    if release is None and (found := re.match(r"Linux version (\S+)", host.read_text("/proc/version") or "")):
        return found[1]
    return release


def _read_os(host: Host) -> str | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        values = parse_os_release(host.read_text(path) or "")
        if name := values.get("PRETTY_NAME") or values.get("NAME"):
            return name
    # RHEL 6 and its kin.
    return host.read_text("/etc/redhat-release")


def _read_architecture(host: Host, kernel: str | None, cpuinfo: str) -> str | None:
    """As ``uname -m`` says: from the kernel (6.1), its release, the command, or the processor's features."""
    if architecture := host.read_text("/proc/sys/kernel/arch"):
        return architecture
    if found := re.search(r"[.-](x86_64|aarch64|ppc64le|ppc64|s390x|amd64|arm64)$", kernel or ""):
        return {"amd64": "x86_64", "arm64": "aarch64"}.get(found[1], found[1])
    done = host.run(["uname", "-m"])
    if not isinstance(done, Missing) and done.ok and done.stdout.strip():
        return done.stdout.strip()
    flags = parse_flags(cpuinfo[:16384])
    if {"fpu", "cx8"} <= flags:
        return "x86_64" if "lm" in flags else "i686"
    if re.search(r"^vendor_id\s*: IBM/S390", cpuinfo, re.MULTILINE):
        return "s390x"
    if re.search(r"^arch\s*: IA-64", cpuinfo, re.MULTILINE):
        return "ia64"
    found = re.search(r"^CPU architecture\s*: (7|8|AArch64)", cpuinfo, re.MULTILINE)
    return None if not found else "armv7l" if found[1] == "7" else "aarch64"


def _name_container(host: Host) -> str | None:
    container = read_container(host)
    return container.manager or "container-other" if container.is_inside else None


def _detect_virtualization(host: Host, dmi: Mapping[str, str], cpuinfo: str) -> str | None:
    """What it runs on; None where neither firmware nor processor says so, nor that it is bare metal."""
    if host.read_text("/sys/hypervisor/type") == "xen":
        return "none" if "control_d" in (host.read_text("/proc/xen/capabilities") or "") else "xen"
    if hypervisor := _dmi_hypervisor(host, dmi) or _firmware_hypervisor(host):
        return hypervisor
    flags = parse_flags(cpuinfo[:16384])
    if "hypervisor" in flags:
        return _detect_paravirtual(host, dmi)
    # x86 processors set the flag under every hypervisor; elsewhere firmware tables that name none must do.
    return "none" if {"fpu", "cx8"} <= flags or "sys_vendor" in dmi else None


def _dmi_hypervisor(host: Host, dmi: Mapping[str, str]) -> str | None:
    if dmi.get("sys_vendor") == "Amazon EC2" and dmi.get("product_name", "").partition(".")[2].startswith("metal"):
        return "none"
    # Microsoft sells bare metal too.
    if dmi.get("sys_vendor") == "Microsoft Corporation" and dmi.get("product_name") == "Virtual Machine":
        return "microsoft"
    for name in ("product_name", "sys_vendor", "board_vendor", "bios_vendor"):
        for start, hypervisor in _DMI_HYPERVISORS:
            if dmi.get(name, "").startswith(start):
                return _detect_paravirtual(host, dmi) if hypervisor == "qemu" else hypervisor
    return None


def _detect_paravirtual(host: Host, dmi: Mapping[str, str]) -> str:
    """By the clock that a hypervisor offers: QEMU with KVM has one on x86, QEMU alone does not."""
    clocks = host.read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    if "kvm-clock" in clocks.split():
        return "kvm"
    if "hyperv_clocksource" in clocks:
        return "microsoft"
    return "qemu" if any(text.startswith("QEMU") for text in dmi.values()) else "vm-other"


def _firmware_hypervisor(host: Host) -> str | None:
    """From the device tree of ARM and POWER, or s390's /proc/sysinfo."""
    compatible = host.read_text("/proc/device-tree/hypervisor/compatible")
    if compatible:
        return next((name for name in ("kvm", "xen", "vmware") if name in compatible), "vm-other")
    if host.exists("/proc/device-tree/ibm,partition-name"):
        return "kvm" if host.exists("/proc/device-tree/chosen/qemu,graphic-width") else "powervm"
    sysinfo = host.read_text("/proc/sysinfo")
    if sysinfo is None:
        return None
    found = re.search(r"^VM00 Control Program:\s*(\S+)", sysinfo, re.MULTILINE)
    return "none" if not found else "zvm" if found[1].startswith("z/VM") else "kvm"


def _detect_cloud(host: Host, dmi: Mapping[str, str]) -> Cloud | None:
    """From the firmware alone: nothing is asked over the network."""
    if dmi.get("sys_vendor") == "Amazon EC2":
        return Cloud("aws", dmi.get("product_name"))
    if dmi.get("chassis_asset_tag") == _AZURE_ASSET_TAG:
        return Cloud("azure", None)
    if dmi.get("product_name") == "Google Compute Engine":
        return Cloud("gcp", None)
    if dmi.get("chassis_asset_tag") == _ORACLE_ASSET_TAG:
        return Cloud("oci", None)
    if dmi.get("bios_version", "").lower().endswith("amazon"):
        is_ec2_xen = True
    else:
        uuid = host.read_text("/sys/hypervisor/uuid")
        if uuid is None and dmi.get("sys_vendor") == "Xen":
            # Root only.
            uuid = host.read_text(f"{_dmi_place(host)}/product_uuid")
        is_ec2_xen = is_ec2_uuid(uuid or "")
    return Cloud("aws", None) if is_ec2_xen else None
