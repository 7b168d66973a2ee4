"""Who the host is: distributions, hypervisors, clouds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.system.identity import Cloud, Identity, read_identity
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, NoCommands, RecordedCommands
from tests.cases import read_cases
from tests.trees import host_of, make_command, make_tree

DMI = "/sys/class/dmi/id"
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


DATA = read_cases(__file__, Cloud, Identity, dmi, CLOCKS=CLOCKS, DISK_ROOT=DISK_ROOT, OVERLAY_ROOT=OVERLAY_ROOT)


def test_a_host_that_tells_all(tmp_path: Path) -> None:
    files = DATA["a_host_that_tells_all"] | dmi("Dell Inc.", "PowerEdge R750")
    unknown = Unknowns()
    make_command(tmp_path / "bin", "uname", "exit 1")
    identity = read_identity(host_of(make_tree(tmp_path / "root", files), tmp_path / "bin"), unknown)
    assert identity == DATA["a_host_that_tells_all_2"]
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


@pytest.mark.parametrize(("files", "uname", "architecture"), DATA["architecture"])
def test_architecture(files: dict[str, str], uname: str, architecture: str | None) -> None:
    commands = RecordedCommands({("uname", "-m"): Completed(0, f"{uname}\n", "")} if uname else {})
    assert look(files, commands)[0].architecture == architecture


QEMU = dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        *DATA["virtualization"],
        ({"/proc/cpuinfo": X86_GUEST, CLOCKS: "tsc kvm-clock acpi_pm \n"}, "kvm"),
        ({"/proc/cpuinfo": X86_GUEST, CLOCKS: "hyperv_clocksource_tsc_page\n"}, "microsoft"),
    ],
)
def test_virtualization(files: dict[str, str], expected: str | None) -> None:
    identity, unknown = look(files)
    assert identity.virtualization == expected
    assert ("host.virtualization" in unknown) == (expected is None)


@pytest.mark.parametrize(("files", "expected"), DATA["cloud"])
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


@pytest.mark.parametrize(("text", "expected"), DATA["os_release"])
def test_os_release(text: str, expected: str) -> None:
    assert look({"/etc/os-release": text})[0].os == expected


def test_distribution_before_os_release() -> None:
    text = "Red Hat Enterprise Linux Server release 6.10 (Santiago)"
    assert look({"/etc/redhat-release": f"{text}\n"})[0].os == text
