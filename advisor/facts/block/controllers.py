"""RAID controllers: what their vendors' tools report of volumes, write cache and its battery.

The kernel sees a controller's volume as one disk. Only the maker's tool knows what is behind it, needs root, and is
asked where it is installed: storcli or perccli and their second generation (Broadcom, Dell), tw_cli (3ware), ssacli
(HPE), arcconf (Adaptec, Microchip). Nothing but ``show`` is ever asked for; ``nolog`` keeps storcli from writing its
log file. A controller of which no tool tells is a record without a tool, with the one to install.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from advisor.facts.block.block import Array, clean
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, Missing

if TYPE_CHECKING:
    from advisor.facts.block.controller import Controller, ControllerDrive, ControllerVolume
    from advisor.facts.block.disks import Disk

# By name on the search path, then where the makers' packages put them.
STORCLI = (
    *("storcli64", "/opt/MegaRAID/storcli/storcli64", "storcli"),
    *("perccli64", "/opt/MegaRAID/perccli/perccli64", "perccli"),
)
STORCLI2 = (*("storcli2", "/opt/MegaRAID/storcli2/storcli2"), *("perccli2", "/opt/MegaRAID/perccli2/perccli2"))
SHOW = ("/call", "show", "all", "J", "nolog")
SHOW_VOLUMES = ("/call/vall", "show", "all", "J", "nolog")
SHOW_DRIVES = ("/call/eall/sall", "show", "all", "J", "nolog")
SSACLI = ("ssacli", "ctrl", "all", "show", "config", "detail")
ARCCONF_LIST = ("arcconf", "list", "nologs")
ARCCONF = ("arcconf", "getconfig")
_PCI = "/sys/bus/pci/devices"
_HOSTS = "/sys/class/scsi_host"
_RAID_CLASS = "0x0104"
_TOOLS_BY_DRIVER = {
    **{"megaraid_sas": "storcli or perccli", "mpi3mr": "storcli2 or perccli2"},
    **{"aacraid": "arcconf", "arcmsr": "areca's cli64", "hpsa": "ssacli", "smartpqi": "ssacli or arcconf"},
    **dict.fromkeys(("3w-9xxx", "3w-sas", "3w-xxxx"), "tw_cli"),
    **{"hptiop": "hptraidconf", "stex": "Promise's cliib", "mvumi": "Marvell's mvcli", "esas2r": "ATTO's atraidcli"},
}
"""Drivers of RAID controllers, by the kernel's names, and the tools that tell of them."""
_BY_SYSTEM = {**dict.fromkeys(("0x103c", "0x1590", "HP", "HPE"), "ssacli"), "0x9005": "arcconf"}
"""Of smartpqi: whose board it is, by the vendor of the PCI subsystem (HP, HPE, Adaptec), else by the host's maker."""
_NO_CONTROLLER = frozenset({"vmd", "ahci", "nvme", "mpt3sas", "mpt2sas", "mptsas", "isci", "ata_piix", "pata_marvell"})
"""Drivers of class RAID whose drives the kernel sees each by itself."""
_DEADLINE_SECONDS = 20.0
_PREFIX = {"storcli": "c", "storcli2": "c", "tw_cli": "tw", "ssacli": "slot", "arcconf": "ctrl"}


def read_controllers(host: Host, unknown: Unknowns) -> tuple[Controller, ...]:
    """Controllers by tool and number, then those that the kernel has and no tool tells of. Why one could not be asked
    is noted."""
    found = (
        *_read_storcli(host, "storcli", STORCLI, unknown),
        *_read_storcli(host, "storcli2", STORCLI2, unknown),
        *_read_tw_cli(host, unknown),
        *_read_arcconf(host, unknown),
    )
    text = _run_tool(host, SSACLI, unknown)
    if text:
        from advisor.facts.block.smart_raid import parse_ssacli

        found = (*found, *parse_ssacli(text))
    return (*found, *_find_unasked(host, {one.tool for one in found}, unknown))


def _find_unasked(host: Host, tools: Collection[str], unknown: Unknowns) -> Iterator[Controller]:
    """RAID controllers of which no tool tells: their volumes, drives, cache and battery are unknown, not well. By PCI
    class and driver, else by the driver of a SCSI host."""
    from advisor.facts.block.controller import Controller

    drivers: dict[str, str] = {}
    for address in host.names(_PCI):
        driver = _driver_of(host, address)
        kind = host.read(f"{_PCI}/{address}/class")
        is_raid = isinstance(kind, str) and kind.startswith(_RAID_CLASS) and driver not in _NO_CONTROLLER
        if driver in _TOOLS_BY_DRIVER or (is_raid and driver):
            drivers[address] = driver
    for name in host.names(_HOSTS):
        said = host.read(f"{_HOSTS}/{name}/proc_name")
        if isinstance(said, str) and said in _TOOLS_BY_DRIVER and said not in drivers.values():
            drivers[name] = said
    for address, driver in drivers.items():
        tool = _TOOLS_BY_DRIVER.get(driver, "its maker's tool")
        if driver == "smartpqi":
            maker = host.read(f"{_PCI}/{address}/subsystem_vendor")
            maker = maker if isinstance(maker, str) else host.read("/sys/class/dmi/id/sys_vendor")
            tool = _BY_SYSTEM.get(maker, tool) if isinstance(maker, str) else tool
        # perccli is storcli under another name.
        if not {word.replace("perccli", "storcli") for word in tool.split(" or ")} & set(tools):
            why = f"level, write cache and battery behind {address} ({driver}) are not known; install {tool}"
            unknown.note("controllers", why)
            detail = {"driver": driver, "install": tool}
            yield Controller(address, "", None, None, (), None, None, detail)


def _driver_of(host: Host, address: str) -> str:
    link = host.readlink(f"{_PCI}/{address}/driver")
    return link.rpartition("/")[2] if isinstance(link, str) else ""


def controller_arrays(controllers: Iterable[Controller], disks: Iterable[Disk]) -> tuple[Array, ...]:
    """Their volumes as arrays, with the disks that each is to the kernel where that is known."""
    by_name = {disk.name: disk for disk in disks}
    return tuple(
        _make_array(one, volume, [by_name[name] for name in _device_names(volume) if name in by_name])
        for one in controllers
        for volume in one.volumes
    )


def _device_names(volume: ControllerVolume) -> tuple[str, ...]:
    return volume.devices or ((volume.device,) if volume.device else ())


def drive_name(controller: Controller, drive: ControllerDrive) -> str:
    """``c0/252:3``, ``slot1/1I:1:3``, ``tw0/p3``: controller and drive as their tool counts them."""
    return f"{_PREFIX.get(controller.tool, '')}{controller.name}/{drive.name}"


def array_name(controller: Controller, volume: ControllerVolume) -> str:
    """``c0/v1``, ``tw0/u0``, ``slot0/1``: controller and volume as their tool counts them."""
    own = f"v{volume.name.rpartition('/')[2]}" if controller.tool.startswith("storcli") else volume.name
    return f"{_PREFIX[controller.tool]}{controller.name}/{own}"


def _make_array(controller: Controller, volume: ControllerVolume, disks: Sequence[Disk]) -> Array:
    from advisor.facts.block.controller import data_disks

    name = array_name(controller, volume)
    texts = {"model": controller.model, "status": volume.status, "cache": volume.cache}
    texts |= {"write_policy": volume.write_policy, "drives": str(volume.drives) if volume.drives else None}
    texts |= {"serial": volume.serial}
    sizes = [disk.size_bytes for disk in disks]
    return Array(
        name=name,
        manager="controller",
        # Without a disk of its own in sight it goes by the only name that it has.
        device=disks[0].name if disks else name,
        level=volume.level,
        chunk_bytes=volume.chunk_bytes,
        data_disks=data_disks(volume.level, volume.drives),
        state=volume.state,
        missing=volume.missing,
        members=(),
        spares=(),
        failed=(),
        journal=(),
        numa_nodes=tuple(sorted({disk.numa_node for disk in disks if disk.numa_node is not None})),
        size_bytes=sum(size or 0 for size in sizes) if sizes and all(sizes) else volume.size_bytes,
        progress_percent=None,
        mountpoints=tuple(dict.fromkeys(place for disk in disks for place in disk.mountpoints)),
        detail={key: text for key, text in texts.items() if text},
        disks=tuple(disk.name for disk in disks),
        expected=volume.drives,
        survives=volume.survives,
    )


def _read_storcli(host: Host, tool: str, programs: Sequence[str], unknown: Unknowns) -> tuple[Controller, ...]:
    for program in programs:
        done = host.run((program, *SHOW), timeout=_DEADLINE_SECONDS)
        if isinstance(done, Missing) and done.is_absent:
            continue
        from advisor.facts.block.storcli import parse_storcli, parse_storcli_drives, parse_storcli_volumes, with_details

        controllers = () if isinstance(done, Missing) else parse_storcli(done.stdout)
        if not controllers:
            unknown.note("controllers", done if isinstance(done, Missing) else _describe_empty(program, done))
            continue
        more = host.run((program, *SHOW_VOLUMES), timeout=_DEADLINE_SECONDS)
        details = () if isinstance(more, Missing) else parse_storcli_volumes(more.stdout)
        each = host.run((program, *SHOW_DRIVES), timeout=_DEADLINE_SECONDS)
        drives = {} if isinstance(each, Missing) else parse_storcli_drives(each.stdout)
        if not drives and any(one.drives for one in controllers):
            unknown.note("controllers.drives", each if isinstance(each, Missing) else _describe_empty(program, each))
        named = (with_details(one, details, drives.get(one.name, ())) for one in controllers)
        return tuple(msgspec.structs.replace(one, tool=tool) for one in named)
    return ()


def _read_tw_cli(host: Host, unknown: Unknowns) -> tuple[Controller, ...]:
    text = _run_tool(host, ("tw_cli", "show"), unknown)
    if not text:
        return ()
    from advisor.facts.block.three_ware import (
        controller_of,
        parse_tw_cli_controllers,
        parse_tw_cli_drives,
        parse_tw_cli_units,
    )

    found = []
    for number, model in parse_tw_cli_controllers(text):
        units = _run_tool(host, ("tw_cli", f"/c{number}", "show"), unknown)
        one = controller_of(number, model, parse_tw_cli_units(units), parse_tw_cli_drives(units))
        found.append(msgspec.structs.replace(one, volumes=tuple(_with_serial(host, number, v) for v in one.volumes)))
    return tuple(found)


def _read_arcconf(host: Host, unknown: Unknowns) -> tuple[Controller, ...]:
    listed = _run_tool(host, ARCCONF_LIST, unknown)
    if not listed:
        return ()
    from advisor.facts.block.smart_raid import parse_arcconf, parse_arcconf_numbers

    # Before release 2.0 there was no list.
    numbers = parse_arcconf_numbers(listed) or ("1",)
    texts = {number: _run_tool(host, (*ARCCONF, number, "al", "nologs"), unknown) for number in numbers}
    return tuple(one for number, text in texts.items() if (one := parse_arcconf(number, text)))


def _with_serial(host: Host, controller: str, volume: ControllerVolume) -> ControllerVolume:
    """A unit with its serial number, by which its disk is known; old firmware shows none."""
    from advisor.facts.block.three_ware import parse_tw_cli_serial

    done = host.run(("tw_cli", f"/c{controller}/{volume.name}", "show", "all"), timeout=_DEADLINE_SECONDS)
    serial = None if isinstance(done, Missing) else parse_tw_cli_serial(done.stdout)
    return msgspec.structs.replace(volume, serial=serial)


def _run_tool(host: Host, argv: tuple[str, ...], unknown: Unknowns) -> str:
    """What a tool printed; nothing, noted unless the tool is not there, where it printed nothing of use."""
    done = host.run(argv, timeout=_DEADLINE_SECONDS)
    if isinstance(done, Missing):
        unknown.value("controllers", done)
        return ""
    if not done.ok:
        unknown.note("controllers", _describe_empty(argv[0], done))
    return done.stdout


def _describe_empty(program: str, done: Completed) -> str:
    words = clean(done.stderr)[:200] or clean(done.stdout)[:200] or "no message"
    return f"{program} returned {done.rc} and shows no controller: {words}"
