"""Who the host is: distributions, hypervisors, clouds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.identity import Cloud, Identity, read_identity
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, NoCommands, RecordedCommands
from tests.trees import host_of, make_command, make_tree

DMI = "/sys/class/dmi/id"
X86 = "flags\t\t: fpu cx8 lm sse\n"
X86_GUEST = "flags\t\t: fpu cx8 lm sse hypervisor\n"
OVERLAY_ROOT = "22 1 0:3 /x /proc rw - proc proc rw\n1 2 0:3 / / rw - overlay overlay rw\n"
DISK_ROOT = "1 2 8:1 / / rw - ext4 /dev/sda1 rw\n3 1 0:9 / /m rw - overlay overlay rw\n"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"


def look(files: Mapping[str, str], commands: RecordedCommands | None = None) -> tuple[Identity, set[str]]:
    unknown = Unknowns()
    contents = {path: text.encode() for path, text in files.items()}
    identity = read_identity(Host(MemoryFiles(contents), commands or NoCommands()), unknown)
    return identity, {entry.fact for entry in unknown.listed()}


def dmi(vendor: str = "", product: str = "", **more: str) -> dict[str, str]:
    strings = {"sys_vendor": vendor, "product_name": product, **more}
    return {f"{DMI}/{name}": f"{text}\n" for name, text in strings.items() if text}


def test_a_host_that_tells_all(tmp_path: Path) -> None:
    files = {
        "/proc/sys/kernel/hostname": "node1\n",
        "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "/proc/sys/kernel/random/boot_id": "b-1\n",
        "/proc/cpuinfo": X86,
        "/proc/meminfo": "MemTotal:       1024 kB\n",
        "/etc/machine-id": "m-1\n",
        "/usr/lib/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    } | dmi("Dell Inc.", "PowerEdge R750")
    unknown = Unknowns()
    make_command(tmp_path / "bin", "uname", "exit 1")
    identity = read_identity(host_of(make_tree(tmp_path / "root", files), tmp_path / "bin"), unknown)
    assert identity == Identity(
        hostname="node1",
        kernel="6.1.0-18-amd64",
        os="Debian GNU/Linux 12 (bookworm)",
        architecture="x86_64",
        virtualization="none",
        vendor="Dell Inc.",
        product="PowerEdge R750",
        memory_bytes=1 << 20,
        machine_id="m-1",
        boot_id="b-1",
        cloud=None,
    )
    assert not unknown.listed()


def test_an_empty_tree_is_unknown() -> None:
    identity, unknown = look({})
    assert identity == Identity(None, None, None, None, None, None, None, None, None, None, None)
    assert unknown == {
        f"host.{name}"
        for name in (
            *("hostname", "kernel", "os", "architecture", "virtualization", "memory_bytes", "machine_id", "boot_id"),
        )
    }


def test_why_a_file_cannot_be_read_is_said() -> None:
    unknown = Unknowns()
    files = MemoryFiles({}, unreadable={"/etc/machine-id": "Permission denied"})
    assert read_identity(Host(files, NoCommands()), unknown).machine_id is None
    noted = {entry.fact: entry.why for entry in unknown.listed()}
    assert noted["host.machine_id"] == "/etc/machine-id: Permission denied"
    assert noted["host.kernel"] == "/proc/sys/kernel/osrelease: does not exist"


def test_kernel_from_the_version_text() -> None:
    assert look({"/proc/version": "Linux version 5.15.0-rc1 (build@host) (gcc) #1 SMP\n"})[0].kernel == "5.15.0-rc1"


@pytest.mark.parametrize(
    ("files", "uname", "architecture"),
    [
        ({"/proc/sys/kernel/arch": "riscv64\n"}, "x86_64", "riscv64"),
        ({"/proc/sys/kernel/osrelease": "4.18.0-305.el8.ppc64le"}, "", "ppc64le"),
        ({"/proc/sys/kernel/osrelease": "5.10.0-8-arm64"}, "", "aarch64"),
        ({"/proc/sys/kernel/osrelease": "5.15.0-91-generic", "/proc/cpuinfo": X86}, "ppc64le", "ppc64le"),
        ({"/proc/cpuinfo": X86}, "", "x86_64"),
        ({"/proc/cpuinfo": X86.replace("lm", "")}, "", "i686"),
        ({"/proc/cpuinfo": "vendor_id       : IBM/S390\n"}, "", "s390x"),
        ({"/proc/cpuinfo": "processor : 0\narch       : IA-64\n"}, "", "ia64"),
        ({"/proc/cpuinfo": "CPU architecture: 8\n"}, "", "aarch64"),
        ({"/proc/cpuinfo": "cpu : POWER9\n"}, "", None),
    ],
)
def test_architecture(files: dict[str, str], uname: str, architecture: str | None) -> None:
    commands = RecordedCommands({("uname", "-m"): Completed(0, f"{uname}\n", "")} if uname else {})
    assert look(files, commands)[0].architecture == architecture


QEMU = dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/cpuinfo": X86}, "none"),
        ({"/proc/cpuinfo": X86_GUEST}, "vm-other"),
        ({"/proc/cpuinfo": X86_GUEST, CLOCKS: "tsc kvm-clock acpi_pm \n"}, "kvm"),
        ({"/proc/cpuinfo": X86_GUEST, CLOCKS: "hyperv_clocksource_tsc_page\n"}, "microsoft"),
        ({"/proc/cpuinfo": X86_GUEST, CLOCKS: "tsc kvm-clock\n"} | QEMU, "kvm"),
        ({"/proc/cpuinfo": X86_GUEST, CLOCKS: "tsc\n"} | QEMU, "qemu"),
        (dmi("Red Hat", "KVM"), "kvm"),
        (dmi("VMware, Inc.", "VMware7,1"), "vmware"),
        (dmi("Microsoft Corporation", "Virtual Machine"), "microsoft"),
        (dmi("Microsoft Corporation", "Surface Book") | {"/proc/cpuinfo": X86}, "none"),
        (dmi("innotek GmbH", "VirtualBox"), "oracle"),
        (dmi("Amazon EC2", "m5.large"), "amazon"),
        (dmi("Amazon EC2", "c5.metal"), "none"),
        (dmi("Amazon EC2", "u-6tb1.metal-48xl"), "none"),
        (dmi("Google", "Google Compute Engine"), "google"),
        (dmi("Xen", "HVM domU"), "xen"),
        ({"/sys/hypervisor/type": "xen\n"}, "xen"),
        ({"/sys/hypervisor/type": "xen\n", "/proc/xen/capabilities": "control_d\n"}, "none"),
        ({"/proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "kvm"),
        ({"/proc/device-tree/hypervisor/compatible": "acme,hv\0"}, "vm-other"),
        ({"/proc/device-tree/ibm,partition-name": "lpar1\0"}, "powervm"),
        ({"/proc/device-tree/ibm,partition-name": "g\0", "/proc/device-tree/chosen/qemu,graphic-width": "x"}, "kvm"),
        ({"/proc/sysinfo": "Manufacturer: IBM\nVM00 Control Program: z/VM    6.4.0\n"}, "zvm"),
        ({"/proc/sysinfo": "VM00 Control Program: KVM/Linux\n"}, "kvm"),
        ({"/proc/sysinfo": "Manufacturer: IBM\nLPAR Number: 1\n"}, "none"),
        (dmi("Huawei", "TaiShan 200") | {"/proc/cpuinfo": "CPU part\t: 0xd01\n"}, "none"),
        ({"/proc/cpuinfo": "CPU part\t: 0xd01\n"}, None),
        ({"/run/systemd/container": "lxc\n", "/proc/cpuinfo": X86_GUEST}, "lxc"),
        ({"/.dockerenv": "", "/proc/cpuinfo": X86, "/proc/self/mountinfo": OVERLAY_ROOT}, "docker"),
        ({"/.dockerenv": "", "/proc/cpuinfo": X86, "/proc/self/mountinfo": DISK_ROOT}, "none"),
    ],
)
def test_virtualization(files: dict[str, str], expected: str | None) -> None:
    identity, unknown = look(files)
    assert identity.virtualization == expected
    assert ("host.virtualization" in unknown) == (expected is None)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (dmi("Amazon EC2", "r5b.24xlarge"), Cloud("aws", "r5b.24xlarge")),
        (dmi("Xen", "HVM domU", bios_version="4.11.amazon"), Cloud("aws", None)),
        (dmi("Xen", "HVM domU", product_uuid="45E12AEC-DCD1-B213-94ED-012345ABCDEF"), Cloud("aws", None)),
        ({"/sys/hypervisor/uuid": "ec2e1916-9099-7caf-fd21-012345abcdef\n"}, Cloud("aws", None)),
        (dmi("Xen", "HVM domU", product_uuid="12345678-9099-7caf-fd21-012345abcdef"), None),
        (
            dmi("Microsoft Corporation", "Virtual Machine", chassis_asset_tag="7783-7084-3265-9085-8269-3286-77"),
            Cloud("azure", None),
        ),
        (dmi("Microsoft Corporation", "Virtual Machine"), None),
        (dmi("Google", "Google Compute Engine"), Cloud("gcp", None)),
        (dmi("QEMU", "Standard PC (i440FX + PIIX, 1996)", chassis_asset_tag="OracleCloud.com"), Cloud("oci", None)),
        (dmi("Oracle Corporation", "ORACLE SERVER E5-2c", chassis_asset_tag="OracleCloud.com"), Cloud("oci", None)),
        (dmi("Oracle Corporation", "ORACLE SERVER X7-2", chassis_asset_tag="7332144001"), None),
        (dmi("Dell Inc.", "PowerEdge R750"), None),
    ],
)
def test_cloud(files: dict[str, str], expected: Cloud | None) -> None:
    identity, unknown = look(files)
    assert identity.cloud == expected
    is_type_unknown = expected is not None and expected.instance_type is None
    assert ("host.cloud.instance_type" in unknown) == is_type_unknown


def test_firmware_strings_where_only_the_device_itself_was_captured() -> None:
    files = {
        path.replace("/sys/class", "/sys/devices/virtual"): text for path, text in dmi("Dell Inc.", "R750").items()
    }
    identity, _ = look(files)
    assert (identity.vendor, identity.product) == ("Dell Inc.", "R750")


def test_blank_firmware_strings_are_none() -> None:
    identity, _ = look({f"{DMI}/sys_vendor": " \n", "/proc/device-tree/model": "IBM,8231-E2D\0"})
    assert (identity.vendor, identity.product) == (None, "IBM,8231-E2D")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PRETTY_NAME='Rocky Linux 8.9 (Green Obsidian)'\n", "Rocky Linux 8.9 (Green Obsidian)"),
        ('PRETTY_NAME="A \\"quoted\\" \\$name"\n', 'A "quoted" $name'),
        ("PRETTY_NAME=Arch\n", "Arch"),
        ('# PRETTY_NAME="no"\nPRETTY_NAME=""\nNAME=Slackware\n', "Slackware"),
    ],
)
def test_os_release(text: str, expected: str) -> None:
    assert look({"/etc/os-release": text})[0].os == expected


def test_distribution_before_os_release() -> None:
    text = "Red Hat Enterprise Linux Server release 6.10 (Santiago)"
    assert look({"/etc/redhat-release": f"{text}\n"})[0].os == text
