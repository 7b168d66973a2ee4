"""Facts, findings and services → what there is to draw. Pure; the same facts give the same record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import format_list
from advisor.facts.system.services import Service
from advisor.limits.records import HostCeiling
from advisor.report.findings import counts_text, finding_text
from advisor.report.format import clean, natural
from advisor.report.host_ceiling import members_words, stage_words
from advisor.report.picture.devices import (
    accelerator_blocks,
    array_crossings,
    drive_blocks,
    groups_of,
    link_blocks,
    link_crossings,
    usual_words,
)
from advisor.report.picture.scene import (
    UNKNOWN_KEY,
    CeilingBar,
    CeilingPicture,
    Chip,
    Crossing,
    End,
    HostPicture,
    Panel,
    PictureBlock,
    PictureNote,
    PictureSection,
    Place,
    Scene,
    Words,
    bound_blocks,
    bound_crossings,
    by_key,
    cpu_ids,
    cpu_words,
    first_names,
    home_place,
    known_nodes,
    node_words,
    order_places,
    say,
)
from advisor.report.units import format_binary, times
from advisor.rules.judged import count_judged
from advisor.rules.queries import links_below, split_ids
from advisor.rules.rule import Finding

# Services as blocks of the picture: where each runs, and on which node the devices are that it uses.

_MAX_NAMED = 4


def short_name(unit: str) -> str:
    return unit.removesuffix(".service")


def all_services(facts: Facts, services: Iterable[Service]) -> list[Service]:
    """Return the services given and those that the facts name, by unit; each with every device that either names."""
    found = {service.unit: service for service in services}
    for server in facts.beegfs.servers if facts.beegfs else ():
        if server.service is not None:
            before = found.get(server.service.unit, server.service)
            places = [target.mountpoint or target.path for target in server.targets]
            devices = tuple(dict.fromkeys([*before.devices, *places, *(server.interfaces or ())]))
            found[before.unit] = msgspec.structs.replace(before, devices=devices)
    return sorted(found.values(), key=lambda service: (natural(service.unit), service.unit))


class Seats:
    """Where links, drives, arrays and mount points are drawn, by every name that a service may know them by."""

    def __init__(self, scene: Scene, services: Sequence[Service]) -> None:
        self.scene = scene
        self.services = services
        self.ends = dict(_device_ends(scene))

    def blocks(self, place: Place) -> tuple[PictureBlock, ...]:
        blocks = [self._block(service) for service in self.services if _service_place(self.scene, service) == place]
        return bound_blocks(self.scene, blocks, 16, "service")

    def _block(self, service: Service) -> PictureBlock:
        name, policy, far = short_name(service.unit), service.numa_policy, self._far(service)
        mems = None if service.mems_allowed is None else split_ids(service.mems_allowed)
        # Memory is worth a word only if it is bound.
        is_bound = mems is not None and self.scene.only is None and mems < self.scene.cpus.keys()
        near = [device for device in service.devices if device not in far]
        where = known_nodes(order_places(end.place for device in far for end in self.ends.get(device, ())))
        aside = f"memory {policy}" if policy and policy != "default" else ""
        return self.scene.block(
            f"service:{service.unit}",
            name,
            (service.unit, name),
            "not running" if service.main_pid is None else aside,
            (
                say(self._cpus(service), f"memory of {node_words(mems)}" if is_bound and mems is not None else ""),
                say(*_using_words(near), look="quiet"),
                say(
                    f"crosses to {node_words(where)}: {', '.join(first_names(far, _MAX_NAMED))}" if far else "",
                    look="warning",
                ),
            ),
            "warning" if far else "",
        )

    def _cpus(self, service: Service) -> str:
        if service.cpus_allowed is None:
            return "CPUs unknown"
        allowed, online = split_ids(service.cpus_allowed), frozenset[int]().union(*self.scene.cpus.values())
        return f"CPUs {cpu_words(format_list(allowed & online if online else allowed)) or 'none'}"

    def _far(self, service: Service) -> list[str]:
        """Return the devices that it uses and that are, at least in part, on nodes on which it does not run."""
        nodes = _run_nodes(self.scene, service)
        return [
            device
            for device in service.devices
            if nodes and any({*known_nodes([end.place])} - {*nodes} for end in self.ends.get(device, ()))
        ]

    def _service_ends(self, service: Service) -> tuple[End, ...]:
        nodes = _run_nodes(self.scene, service)
        there = (end for name in self._far(service) for end in self.ends[name] if end.place not in nodes)
        here = [End(node, None if len(nodes) > 1 else f"service:{service.unit}") for node in nodes]
        return tuple(dict.fromkeys([*here, *there]))

    def crossings(self) -> Iterator[Crossing]:
        """Return services that use devices of another node, and those that may run on several nodes; alike together."""
        ends = {service.unit: self._service_ends(service) for service in self.services}
        crossing = [service for service in self.services if len({end.place for end in ends[service.unit]}) > 1]
        for group in by_key(
            crossing, lambda one: ends[one.unit] if _service_place(self.scene, one) is None else one.unit
        ):
            first = group[0]
            shown = [short_name(service.unit) for service in group]
            names = tuple(name for service in group for name in (service.unit, short_name(service.unit)))
            runs_on = _run_nodes(self.scene, first)
            nodes = known_nodes(order_places(end.place for end in ends[first.unit]))
            title = shown[0] if len(shown) == 1 else f"{len(shown)} services"
            if len(runs_on) > 1:
                title += f" may run on {node_words(runs_on)}"
                uses = dict.fromkeys(device for service in group for device in service.devices)
                words = (self._cpus(first), *_using_words([*uses]))
            else:
                title += f" crosses {node_words(nodes)}"
                words = (f"runs on node {runs_on[0]}", *_using_words(self._far(first)))
            listed = first_names(shown, 8) if len(shown) > 1 else ()
            marks = self.scene.marked(names)
            yield Crossing("service", title, (*listed, *words), names, nodes, ends[first.unit], marks)


def _device_ends(scene: Scene) -> Iterator[tuple[str, tuple[End, ...]]]:
    for link in scene.facts.links:
        own = home_place(scene.link_places(link))
        roots = links_below(link.name, scene.links) if own is None else ()
        places = [(root.name, scene.link_places(root)) for root in roots]
        ends = (End(at[0], f"link:{name}") for name, at in places if home_place(at) is not None)
        yield link.name, tuple(dict.fromkeys(ends)) if own is None else (End(own, f"link:{link.name}"),)
    on_drive = {
        name: End(place, group.key)
        for place in scene.places
        for group in groups_of(scene, place)
        for name in group.names
    }
    for disk in scene.facts.disks:
        for name in (disk.name, *disk.partitions, *disk.mountpoints):
            yield name, (on_drive[disk.name],)
    for array in scene.facts.arrays:
        drives = tuple(dict.fromkeys(on_drive[name] for name in array.disks if name in on_drive))
        for name in (array.name, array.device, *array.mountpoints):
            yield name, drives


def _run_nodes(scene: Scene, service: Service) -> tuple[int, ...]:
    """Return the nodes on whose CPUs its main process may run; none if that is unknown."""
    if service.cpus_allowed is None:
        return ()
    allowed = split_ids(service.cpus_allowed)
    return tuple(node for node, cpus in scene.cpus.items() if allowed & cpus) if scene.only is None else (scene.only,)


def _service_place(scene: Scene, service: Service) -> Place | None:
    """Return the panel on which a service is drawn; None if it may run on several nodes."""
    nodes = _run_nodes(scene, service)
    return None if len(nodes) > 1 else nodes[0] if nodes else scene.nowhere


def _using_words(devices: Sequence[str]) -> tuple[str, ...]:
    names = first_names(devices, _MAX_NAMED)
    return (f"uses {names[0]}", *names[1:]) if names else ()


def host_picture(
    facts: Facts, findings: Sequence[Finding], services: Sequence[Service] = (), ceiling: HostCeiling | None = None
) -> HostPicture:
    """Return what there is to draw of a host. ``findings`` have the numbers of the scan page."""
    scene = Scene(facts, findings)
    every = all_services(facts, services)
    idle = [service.unit for service in every if service.main_pid is None]
    seats = Seats(scene, [service for service in every if service.main_pid is not None])
    panels = tuple(
        panel
        for place in scene.places
        if (panel := _make_panel(scene, seats, place)).place != UNKNOWN_KEY or panel.sections
    )
    # A line to a block that was folded away ends at its panel.
    blocks = {(panel.place, block.key) for panel in panels for block in panel.blocks}
    crossings = [
        msgspec.structs.replace(
            crossing,
            ends=tuple(
                dict.fromkeys(
                    end if (end.place, end.block) in blocks else End(end.place, None) for end in crossing.ends
                )
            ),
        )
        for crossing in (*link_crossings(scene), *array_crossings(scene), *seats.crossings())
    ]
    loose = [link.name for link in facts.links if not scene.link_places(link)]
    unseen = [one.tag for one in (facts.llt.links if facts.llt else ()) if one.link is None]
    idle_names = ", ".join(first_names([short_name(unit) for unit in idle], 12))
    lines = (
        (loose, f"{times(len(loose), 'link')} on no device:", ", ".join(first_names(sorted(loose, key=natural), 12))),
        (unseen, f"LLT {', '.join(first_names(unseen, 12))}:", "kernel link unknown"),
        (idle, f"{times(len(idle), 'service')} not running:", idle_names),
    )
    return HostPicture(
        facts.host.hostname or "host of unknown name",
        tuple(_about(facts)),
        counts_text(scene.numbered, count_judged(facts, findings)),
        panels,
        bound_crossings(crossings),
        tuple(Words((title, text), "quiet") for names, title, text in lines if names),
        (*loose, *idle),
        tuple(PictureNote(one.number, one.severity, finding_text(one)) for one in scene.numbered),
        ceiling_picture(ceiling) if ceiling and ceiling.stages else None,
    )


def _about(facts: Facts) -> Iterator[str]:
    """Return the lines below the name of the host."""
    host, cpu = facts.host, facts.cpu
    counts = ((cpu.packages, "package"), (cpu.cores, "core"), (cpu.threads, "thread"))
    yield from filter(
        None,
        (
            host.os,
            host.kernel,
            " ".join(filter(None, (host.vendor, host.product))),
            cpu.model,
            ", ".join(times(count, noun) for count, noun in counts if count is not None),
            "" if facts.memory.total_bytes is None else format_binary(facts.memory.total_bytes),
        ),
    )
    if facts.container.is_inside:
        yield f"{facts.container.words.removeprefix('a ')}: what is drawn is its host"
    elif host.virtualization not in (None, "", "none"):
        yield f"virtual machine ({host.virtualization}): its PCIe links are make-believe"


def _make_panel(scene: Scene, seats: Seats, place: Place) -> Panel:
    sections = (
        PictureSection("links", "Links", link_blocks(scene, place)),
        PictureSection("accelerators", "Accelerators", accelerator_blocks(scene, place)),
        PictureSection("drives", "Drives and arrays", drive_blocks(scene, place), usual_words(scene, place)),
        PictureSection("services", "Services", seats.blocks(place)),
    )
    return Panel(place, *_panel_head(scene, place), tuple(section for section in sections if section.blocks))


def _size(size: int | None, noun: str = "") -> str:
    return f"{format_binary(size)}{noun}" if size is not None else "" if noun else "unknown"


def _panel_head(scene: Scene, place: Place) -> tuple[str, str, tuple[Chip, ...]]:
    if place == UNKNOWN_KEY:
        return "Node unknown", "not reported by the host", ()
    node = next((node for node in scene.facts.numa.nodes if node.id == place), None)
    if node is None:
        cpu, memory = scene.facts.cpu, scene.facts.memory
        online = cpu_words(cpu.online) if cpu.online else "unknown"
        cpus = Chip("CPUs", online, times(cpu.threads, "CPU") if cpu.threads is not None else "")
        free = _size(memory.available_bytes, " available")
        return "Host", "the kernel shows no NUMA nodes", (cpus, Chip("Memory", _size(memory.total_bytes), free))
    distances = " ".join(map(str, node.distances))
    note = "the only node" if scene.only is not None else f"distances {distances}" if distances else ""
    cpus = Chip("CPUs", "unknown", "") if node.cpus is None else Chip("CPUs", "none", "memory only")
    if node.cpus:
        cpus = Chip("CPUs", cpu_words(node.cpus), times(len(cpu_ids(node.cpus)), "CPU"))
    own = Chip("Memory", _size(node.memory_bytes), "" if node.memory_bytes is None else _size(node.free_bytes, " free"))
    if node.memory_bytes == 0:
        own = Chip("Memory", "none", "taken from other nodes", "warning" if node.cpus else "")
    return f"Node {node.id}", note, (cpus, own)


# -- the ceiling -------------------------------------------------------------------------------------------------------


def ceiling_picture(ceiling: HostCeiling) -> CeilingPicture:
    """Return the stages with a known sum, as bars to one scale; the others by name."""
    read_binds = ceiling.binds if ceiling.read_mb_s is not None else None
    ways = (("reads", ceiling.read_mb_s, read_binds), ("writes", ceiling.write_mb_s, ceiling.write_binds))
    sums = {stage.stage: (stage.read_mb_s, stage.write_mb_s) for stage in ceiling.stages}
    most = max((value for both in sums.values() for value in both if value), default=0.0)
    titles: list[str] = []
    for way, value, binding in ways:
        words = "unknown"
        if value is not None and binding is not None:
            words = f"{value:,.0f} MB/s, bound by {stage_words(binding.stage, ceiling.machine)}"
            words += f" ({clean(members_words(binding.members, 3))})"
        titles.append(f"{way} {words}")
    bars: list[CeilingBar] = []
    silent: list[str] = []
    for stage in ceiling.stages:
        title = stage_words(stage.stage, ceiling.machine)
        found = [
            CeilingBar(
                f"{title}, {way}",
                f"{value:,.0f} MB/s",
                value / most if most else 0.0,
                binding is not None and binding.stage == stage.stage,
            )
            for (way, _, binding), value in zip(ways, sums[stage.stage], strict=True)
            if value is not None
        ]
        # A single bar if reads and writes are alike and bound alike.
        if len({(bar.value, bar.is_binding) for bar in found}) < len(found):
            found = [msgspec.structs.replace(found[0], title=title)]
        bars += found
        silent += [title] if not found and stage.known in ("unknown", "partly") else []
    note = f"Unknown, and perhaps lower: {', '.join(silent)}." if silent else ""
    return CeilingPicture(f"Ceiling of the host: {'; '.join(titles)}", tuple(bars), note)


# -- use over a span ---------------------------------------------------------------------------------------------------

LEVELS = (0.1, 0.4, 0.7, 0.9)
"""The shares from which a device has the next colour."""


def load_level(share: float | None) -> int:
    """Return 0 for a share that is small or not known, up to 4."""
    return 0 if share is None else sum(share >= least for least in LEVELS)


def add_loads(picture: HostPicture, devices: Mapping[str, float], cpus: Mapping[Place, float]) -> HostPicture:
    """Return the picture with the use of its devices, by name, and of the CPUs of each panel: shares from 0 to 1."""
    replace = msgspec.structs.replace

    def loaded(block: PictureBlock) -> PictureBlock:
        # Tiles have their own share each; a block has that of its busiest device, and says which of several it is.
        tiles = tuple(
            tile
            if (share := devices.get(tile.name)) is None
            else replace(tile, state=tile.state or f"{share * 100:.0f} %", load=load_level(share))
            for tile in block.tiles
        )
        known = [name for name in block.names if name in devices]
        if not known:
            return replace(block, tiles=tiles)
        busiest = max(known, key=lambda name: devices[name])
        named = f" ({busiest})" if len({*known}) > 1 else ""
        words = Words((f"{devices[busiest] * 100:.0f} % used{named}",))
        return replace(
            block, tiles=tiles, lines=(*block.lines, words), load=0 if tiles else load_level(devices[busiest])
        )

    panels = []
    for panel in picture.panels:
        sections = tuple(replace(part, blocks=tuple(map(loaded, part.blocks))) for part in panel.sections)
        busy, chips = cpus.get(panel.place), panel.chips
        if chips and busy is not None:
            note = " · ".join(filter(None, (chips[0].note, f"{busy * 100:.0f} % busy")))
            chips = (replace(chips[0], note=note, load=load_level(busy)), *chips[1:])
        panels.append(replace(panel, sections=sections, chips=chips))
    return replace(picture, panels=tuple(panels))
