"""RAID controllers: what their vendors' tools report of volumes, write cache and its battery.

The kernel sees a controller's volume as one disk. Only the maker's tool knows what is behind it, needs root, and is
asked where it is installed: storcli or perccli (Broadcom, Dell), tw_cli (3ware), ssacli (HPE). Nothing but ``show`` is
ever asked for; ``nolog`` keeps storcli from writing its log file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from advisor.facts.block import clean
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, Missing

if TYPE_CHECKING:
    from advisor.facts.array import Array
    from advisor.facts.controller import Controller, ControllerVolume
    from advisor.facts.disks import Disk

# By name on the search path, then where the makers' packages put them.
STORCLI = (
    *("storcli64", "/opt/MegaRAID/storcli/storcli64", "storcli"),
    *("perccli64", "/opt/MegaRAID/perccli/perccli64", "perccli"),
)
SHOW = ("/call", "show", "all", "J", "nolog")
SHOW_VOLUMES = ("/call/vall", "show", "all", "J", "nolog")
SSACLI = ("ssacli", "ctrl", "all", "show", "config", "detail")
_HOSTS = "/sys/class/scsi_host"
_TOOLS_BY_DRIVER = {
    **{"megaraid_sas": "storcli or perccli", "aacraid": "arcconf", "arcmsr": "areca's cli64"},
    **dict.fromkeys(("hpsa", "smartpqi"), "ssacli"),
    **dict.fromkeys(("3w-9xxx", "3w-sas", "3w-xxxx"), "tw_cli"),
}
"""Drivers of RAID controllers alone, by the kernel's names, and the tool that tells of them."""
_DEADLINE_SECONDS = 20.0
_PREFIX = {"storcli": "c", "tw_cli": "tw", "ssacli": "slot"}


def read_controllers(host: Host, unknown: Unknowns) -> tuple[Controller, ...]:
    """Controllers by tool and number; none where no tool is installed. Why one could not be asked is noted, also where
    the kernel has a controller and no tool answers."""
    found = (*_read_storcli(host, unknown), *_read_tw_cli(host, unknown))
    text = _run_tool(host, SSACLI, unknown)
    if text:
        from advisor.facts.ssacli import parse_ssacli

        found = (*found, *parse_ssacli(text))
    if not found:
        _note_unasked(host, unknown)
    return found


def _note_unasked(host: Host, unknown: Unknowns) -> None:
    """Note a RAID controller of which no tool tells: its volumes, drives, cache and battery are unknown, not well."""
    drivers = (host.read(f"{_HOSTS}/{name}/proc_name") for name in host.names(_HOSTS))
    known = sorted({one for one in drivers if isinstance(one, str) and one in _TOOLS_BY_DRIVER})
    for driver in known:
        unknown.note(
            "controllers", f"driver {driver} has a RAID controller, and {_TOOLS_BY_DRIVER[driver]} is not there"
        )


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


def array_name(controller: Controller, volume: ControllerVolume) -> str:
    """``c0/v1``, ``tw0/u0``, ``slot0/1``: controller and volume as their tool counts them."""
    own = f"v{volume.name.rpartition('/')[2]}" if controller.tool == "storcli" else volume.name
    return f"{_PREFIX[controller.tool]}{controller.name}/{own}"


def _make_array(controller: Controller, volume: ControllerVolume, disks: Sequence[Disk]) -> Array:
    from advisor.facts.array import Array
    from advisor.facts.controller import data_disks

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
        missing=None,
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
    )


def _read_storcli(host: Host, unknown: Unknowns) -> tuple[Controller, ...]:
    for program in STORCLI:
        done = host.run((program, *SHOW), timeout=_DEADLINE_SECONDS)
        if isinstance(done, Missing) and done.is_absent:
            continue
        from advisor.facts.storcli import parse_storcli, parse_storcli_volumes, with_details

        controllers = () if isinstance(done, Missing) else parse_storcli(done.stdout)
        if not controllers:
            unknown.note("controllers", done if isinstance(done, Missing) else _describe_empty(program, done))
            continue
        more = host.run((program, *SHOW_VOLUMES), timeout=_DEADLINE_SECONDS)
        details = () if isinstance(more, Missing) else parse_storcli_volumes(more.stdout)
        return tuple(with_details(one, details) for one in controllers)
    return ()


def _read_tw_cli(host: Host, unknown: Unknowns) -> tuple[Controller, ...]:
    text = _run_tool(host, ("tw_cli", "show"), unknown)
    if not text:
        return ()
    from advisor.facts.tw_cli import controller_of, parse_tw_cli_controllers, parse_tw_cli_units

    found = []
    for number, model in parse_tw_cli_controllers(text):
        units = _run_tool(host, ("tw_cli", f"/c{number}", "show"), unknown)
        one = controller_of(number, model, parse_tw_cli_units(units))
        found.append(msgspec.structs.replace(one, volumes=tuple(_with_serial(host, number, v) for v in one.volumes)))
    return tuple(found)


def _with_serial(host: Host, controller: str, volume: ControllerVolume) -> ControllerVolume:
    """A unit with its serial number, by which its disk is known; old firmware shows none."""
    from advisor.facts.tw_cli import parse_tw_cli_serial

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
