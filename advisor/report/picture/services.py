"""Services as blocks of the picture: where each runs, and on which node the devices are that it uses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from advisor.facts.cpulist import format_list
from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.report.format import natural
from advisor.report.picture.arrays import Stacking
from advisor.report.picture.drives import groups_of
from advisor.report.picture.links import bound_blocks, link_key
from advisor.report.picture.places import PictureFacts, home_place, known_nodes, order_places
from advisor.report.picture.records import UNKNOWN_KEY, Crossing, End, PictureBlock, Place, Words
from advisor.report.picture.wording import cpu_words, first_names, node_words
from advisor.rules.queries import links_below, split_ids

MAX_BLOCKS: Final = 16
_MAX_NAMED: Final = 4


def service_key(unit: str) -> str:
    return f"service:{unit}"


def short_name(unit: str) -> str:
    return unit.removesuffix(".service")


def all_services(facts: Facts, services: Iterable[Service]) -> tuple[Service, ...]:
    """The services given and those that the facts name, by unit; each with every device that either names."""
    found: dict[str, Service] = {one.unit: one for one in services}
    for one in facts.beegfs.servers if facts.beegfs else ():
        if one.service is None:
            continue
        places = (target.mountpoint or target.path for target in one.targets)
        before = found.get(one.service.unit, one.service)
        used = dict.fromkeys([*before.devices, *places, *(one.interfaces or ())])
        found[before.unit] = msgspec.structs.replace(before, devices=tuple(used))
    return tuple(_sort_services(found.values()))


def seat_services(around: PictureFacts, stack: Stacking, places: Iterable[Place]) -> Mapping[str, tuple[End, ...]]:
    """Where links, drives, arrays and mount points are drawn, by every name that a service may know them by."""
    found: dict[str, tuple[End, ...]] = {}
    for link in around.facts.links:
        own = home_place(around.link_places(link))
        roots = links_below(link.name, around.links) if own is None else ()
        ends = (
            End(place, link_key(root.name))
            for root in roots
            for place in around.link_places(root)[:1]
            if home_place(around.link_places(root)) is not None
        )
        found[link.name] = tuple(dict.fromkeys(ends)) if own is None else (End(own, link_key(link.name)),)
    on_drive = {
        name: End(place, group.key)
        for place in places
        for group in groups_of(around, stack, place)
        for name in group.names
    }
    for disk in around.facts.disks:
        for name in (disk.name, *disk.partitions, *disk.mountpoints):
            found[name] = (on_drive[disk.name],)
    for array in around.facts.arrays:
        ends = (on_drive[name] for name in array.disks if name in on_drive)
        known_ends = tuple(dict.fromkeys(ends))
        found |= dict.fromkeys((array.name, array.device, *array.mountpoints), known_ends)
    return found


def run_nodes(around: PictureFacts, service: Service) -> tuple[int, ...]:
    """The nodes on whose CPUs its main process may run; none where that is unknown."""
    if service.cpus_allowed is None:
        return ()
    if around.only is not None:
        return (around.only,)
    allowed = split_ids(service.cpus_allowed)
    return tuple(node for node, cpus in around.cpus.items() if allowed & cpus)


def service_place(around: PictureFacts, service: Service) -> Place | None:
    """The panel on which a service is drawn; None for one that may run on several nodes."""
    nodes = run_nodes(around, service)
    if len(nodes) > 1:
        return None
    return nodes[0] if nodes else UNKNOWN_KEY if around.only is None else around.only


def service_blocks(
    around: PictureFacts, services: Sequence[Service], seated: Mapping[str, tuple[End, ...]], place: Place
) -> tuple[PictureBlock, ...]:
    own = [one for one in _sort_services(services) if service_place(around, one) == place]
    blocks = [_service_block(around, one, seated) for one in own]
    return bound_blocks(around, blocks, MAX_BLOCKS, "service")


def _sort_services(services: Iterable[Service]) -> list[Service]:
    return sorted(services, key=lambda one: (natural(one.unit), one.unit))


def _service_block(around: PictureFacts, service: Service, seated: Mapping[str, tuple[End, ...]]) -> PictureBlock:
    far = _far_words(around, service, seated)
    names = (service.unit, short_name(service.unit))
    if service.main_pid is None:
        bound_words = "not running"
    else:
        policy = service.numa_policy
        bound_words = f"memory {policy}" if policy and policy != "default" else ""
    return PictureBlock(
        key=service_key(service.unit),
        title=short_name(service.unit),
        names=names,
        aside=bound_words,
        lines=tuple(line for line in _service_lines(around, service, seated, far) if line.pieces),
        look="warn" if far else "",
        marks=around.marked(names),
    )


def _service_lines(
    around: PictureFacts, service: Service, seated: Mapping[str, tuple[End, ...]], far: Sequence[str]
) -> Iterator[Words]:
    runs_on = "CPUs unknown" if service.cpus_allowed is None else f"CPUs {_cpu_words(around, service)}"
    # Where memory may come from is worth a word where it is bound at all.
    mems = service.mems_allowed
    is_bound = mems is not None and around.only is None and split_ids(mems) < around.nodes
    yield Words((runs_on, *([f"memory of {node_words(split_ids(mems))}"] if is_bound else [])))
    devices = [one for one in service.devices if one not in far]
    if devices:
        yield Words(_using_words(first_names(devices, _MAX_NAMED)), "quiet")
    if far:
        where = known_nodes(order_places({end.place for name in far for end in seated.get(name, ())}))
        yield Words((f"crosses to {node_words(where)}: {', '.join(first_names(far, _MAX_NAMED))}",), "warn")


def _cpu_words(around: PictureFacts, service: Service) -> str:
    allowed = split_ids(service.cpus_allowed)
    online = frozenset[int]().union(*around.cpus.values())
    return cpu_words(format_list(allowed & online if online else allowed)) or "none"


def _far_words(around: PictureFacts, service: Service, seated: Mapping[str, tuple[End, ...]]) -> tuple[str, ...]:
    """The devices that it uses and that are, at least in part, on nodes on which it does not run."""
    runs_on = frozenset(run_nodes(around, service))
    if not runs_on:
        return ()
    return tuple(
        name
        for name in service.devices
        if any(isinstance(end.place, int) and end.place not in runs_on for end in seated.get(name, ()))
    )


def _using_words(devices: Sequence[str]) -> tuple[str, ...]:
    return (f"uses {devices[0]}", *devices[1:]) if devices else ()


def service_crossings(
    around: PictureFacts, services: Sequence[Service], seated: Mapping[str, tuple[End, ...]]
) -> Iterator[Crossing]:
    """Services that use devices of another node, and those that may run on several nodes; alike ones together."""
    groups: dict[Hashable, list[Service]] = {}
    for service in _sort_services(services):
        ends = _service_ends(around, service, seated)
        if len({end.place for end in ends}) > 1:
            is_placed = service_place(around, service) is not None
            groups.setdefault(service.unit if is_placed else ends, []).append(service)
    for group in groups.values():
        yield _make_crossing(around, group, seated)


def _service_ends(around: PictureFacts, service: Service, seated: Mapping[str, tuple[End, ...]]) -> tuple[End, ...]:
    nodes = run_nodes(around, service)
    if not nodes:
        return ()
    far = _far_words(around, service, seated)
    there = (end for name in far for end in seated.get(name, ()) if end.place not in nodes)
    here = [End(node, None) for node in nodes] if len(nodes) > 1 else [End(nodes[0], service_key(service.unit))]
    return tuple(dict.fromkeys([*here, *there]))


def _make_crossing(around: PictureFacts, group: Sequence[Service], seated: Mapping[str, tuple[End, ...]]) -> Crossing:
    first = group[0]
    names = tuple(name for one in group for name in (one.unit, short_name(one.unit)))
    shown = [short_name(one.unit) for one in group]
    ends = _service_ends(around, first, seated)
    runs_on, nodes = run_nodes(around, first), known_nodes(order_places({end.place for end in ends}))
    title = shown[0] if len(shown) == 1 else f"{len(shown)} services"
    listed = first_names(shown, 8) if len(shown) > 1 else ()
    if len(runs_on) > 1:
        title += f" may run on {node_words(runs_on)}"
        uses = dict.fromkeys(device for one in group for device in one.devices)
        words = (*listed, f"CPUs {_cpu_words(around, first)}", *_using_words(first_names([*uses], _MAX_NAMED)))
    else:
        far = _far_words(around, first, seated)
        title += f" crosses {node_words(nodes)}"
        words = (*listed, f"runs on node {runs_on[0]}", *_using_words(first_names(far, _MAX_NAMED)))
    return Crossing("service", title, words, names, nodes, ends, around.marked(names))
