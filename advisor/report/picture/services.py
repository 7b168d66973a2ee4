"""Services as blocks of the picture: where each runs, and on which node the devices are that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from advisor.facts.cpulist import format_list
from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.report.format import natural
from advisor.report.picture.drives import groups_of
from advisor.report.picture.records import Crossing, End, PictureBlock, Place
from advisor.report.picture.scene import (
    Scene,
    bound_blocks,
    by_key,
    cpu_words,
    first_names,
    home_place,
    known_nodes,
    node_words,
    order_places,
    say,
)
from advisor.rules.queries import links_below, split_ids

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
