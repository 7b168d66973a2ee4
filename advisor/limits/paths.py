"""Facts, context and what the user declares → all paths of a host with their ceilings, and what binds each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from advisor.facts.block.block import BESIDE
from advisor.facts.block.block_graph import FILE_LEVEL, BlockGraph, BlockNode
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.system.identity import BurstingVolume, PurchasedFigures
from advisor.limits.declared import Declared
from advisor.limits.figures import QUANTITIES, Quantity, usable_bytes
from advisor.limits.links import PciAndNetwork, pcie_ceiling, physical_below, wire_ceiling
from advisor.limits.machines import Given, Machine
from advisor.limits.media import Hired, Media, flow_notes, hired_machine, network_ceiling
from advisor.limits.notes import (
    bound_notes,
    bucket_notes,
    degraded_notes,
    iris_words,
    quota_notes,
    quota_use,
    segment_notes,
    size_notes,
    stripe_notes,
    unused_notes,
)
from advisor.limits.records import (
    Bought,
    Bound,
    Capacity,
    Limits,
    NotKnown,
    PathCeiling,
    Rate,
    StoragePath,
    account_notes,
    account_quotas,
    unknown_quota,
)
from advisor.limits.stages import StorageStages
from advisor.rules.queries import by_name, is_physical, is_up
from advisor.rules.remote.ebs_purchase import unusable

NOT_KNOWN = (
    NotKnown("processor", "what the file system, checksums and the network stack cost depends on the load: measure it"),
    NotKnown("memory and cross-node traffic", "the kernel reports neither the memory channels nor their speed"),
)


def limits_of(
    facts: Facts, context: PciAndNetwork | None = None, declared: Declared | None = None, given: Given | None = None
) -> Limits:
    """All paths of a host: storage by mount point or device, then links.

    ``given`` are the machines of a user's own file.
    """
    declared = declared or Declared()
    devices = BlockGraph(facts)
    hired = hired_machine(facts, declared, given)
    media = Media(facts, declared, hired.local)
    stages = StorageStages(facts, context or PciAndNetwork(), declared, media, hired.name, hired.machine)
    quota, account = quota_use(declared), account_quotas(declared)
    storage = tuple(_storage_path(top, facts, stages) for top in devices.tops())
    return Limits(
        hostname=facts.host.hostname,
        instance_type=hired.name,
        paths=(*storage, *_link_paths(facts, hired)),
        bought=tuple(_bought_against(facts, media, hired.machine)) if hired.machine else (),
        unknown=(*_unread_facts(facts), *_account_unknown(facts, declared), *NOT_KNOWN),
        notes=(*unused_notes(media.unused), *quota_notes(quota), *account_notes(account)),
        quota=quota,
        account_quotas=account,
    )


def _account_unknown(facts: Facts, declared: Declared) -> Iterator[NotKnown]:
    if why := unknown_quota(facts, declared):
        yield NotKnown("quota of the AWS account", why)


def _unread_facts(facts: Facts) -> Iterator[NotKnown]:
    """What a scan could not read and paths are made of: where disks are not shown, no path is no answer."""
    for one in facts.unknown:
        if one.fact in ("disks", "links", "arrays.vxvm") or one.fact.startswith("arrays.device-mapper"):
            yield NotKnown(one.fact, one.why)


def _storage_path(
    top: tuple[BlockNode, tuple[str, ...], tuple[str, ...]], facts: Facts, stages: StorageStages
) -> StoragePath:
    node, places, kinds = top
    serving = stages.at_a_time(node)
    ceilings = tuple(stages.of(serving))
    # What all segments reach together, and what the slowest one does where that is less.
    segments: tuple[Rate | None, Rate | None]
    sustained = bounds(ceilings)
    if set(serving.disks()) == set(node.disks()):
        segments = None, None
    else:
        slowest = _rate_of(bounds(tuple(stages.of(stages.at_a_time(node, slowest=True)))))
        segments = _rate_of(bounds(tuple(stages.of(node)))), slowest if slowest != _rate_of(sustained) else None
    spread, floor = segments
    return StoragePath(
        kind="storage",
        name=", ".join(places) or node.name,
        device=node.device,
        layers=(*(_describe_layer(array) for array in node.arrays()), *_controller_layers(node, facts)),
        disks=tuple(dict.fromkeys(node.disks())),
        ceilings=ceilings,
        sustained=bounds(ceilings),
        burst=burst_bounds(ceilings),
        file_system=", ".join(kinds) or None,
        capacity=_find_capacity(node, facts),
        spread=spread,
        floor=floor,
        notes=(*segment_notes(node, spread, floor), *_make_notes(node, facts, stages.media, ceilings)),
        holds=tuple(iris_words(node.device, places, facts)),
    )


def _rate_of(found: Sequence[Bound]) -> Rate:
    return Rate(**{one.quantity: one.value for one in found})


def _describe_layer(array: BlockNode) -> str:
    if array.level == FILE_LEVEL:
        return f"{array.name}: a file on {', '.join(member.name for member in array.members)}"
    names: dict[str, list[str]] = {}
    for member in array.members:
        names.setdefault(member.relation if member.relation in BESIDE else "", []).append(member.name)
    words = [f"{relation} {', '.join(those)}" for relation, those in names.items() if relation]
    return "; ".join((f"{array.name}: {array.level or 'level unknown'} of {', '.join(names.get('', ()))}", *words))


def _controller_layers(node: BlockNode, facts: Facts) -> Iterator[str]:
    """What the disks below are to the controller that makes them."""
    disks = set(node.disks())
    for array in facts.arrays:
        if array.manager == "controller" and disks.intersection(array.disks):
            drives = f" of {array.detail['drives']} drives" if "drives" in array.detail else ""
            chunk = f", {array.chunk_bytes >> 10} KiB chunks" if array.chunk_bytes else ""
            where = f" ({', '.join(array.disks)})" if node.members else ""
            yield f"{array.name}{where}: {array.level or 'level unknown'}{drives}, behind its controller{chunk}"


def _make_notes(node: BlockNode, facts: Facts, media: Media, ceilings: Sequence[PathCeiling]) -> Iterator[str]:
    yield from degraded_notes(node)
    yield from bound_notes(node)
    for array in node.arrays():
        if array.level == FILE_LEVEL and array.family is None:
            names = ", ".join(member.name for member in array.members)
            yield f"{array.name}: how its file is spread over {names} is not known; the sum of these stands"
        elif array.family is None:
            words = (
                f"{array.name}: no arithmetic for {array.level or 'an unknown level'}; the sum of its members stands"
            )
            yield words if array.level else f"{words}, and a linear volume has that of one member for a stream"
    yield from size_notes(node, media)
    yield from stripe_notes(node, facts)
    yield from bucket_notes(node, media)
    # The order in which a path over iSCSI is tuned: what the links lose hides what the disks could do.
    if any(one.stage == "network" and one.what.startswith("iSCSI") for one in ceilings):
        yield (
            "iSCSI: tune the links first, with a file below the storage's memory, until near their ceiling; only then "
            "the disks, with a file of twice that memory (advisor explain iscsi.order)"
        )


def _find_capacity(node: BlockNode, facts: Facts) -> Capacity | None:
    if not node.members or any(array.level == FILE_LEVEL for array in node.arrays()):
        return None
    sizes = {disk.name: disk.size_bytes for disk in facts.disks}
    size = ({array.device: array.size_bytes for array in facts.arrays} | sizes).get(node.device)
    raw = [sizes.get(name) for name in dict.fromkeys(node.disks(holding=True))]
    known = [one for one in raw if one is not None]
    if size is None or len(known) != len(raw) or any(array.level == "multipath" for array in node.arrays()):
        return None
    return Capacity(sum(known), usable_bytes(size))


def _link_paths(facts: Facts, hired: Hired) -> Iterator[StoragePath]:
    """Each physical link that is up, and each bond in place of its members."""
    links = by_name(facts)
    tops = [link for link in facts.links if is_up(link) and (link.kind in ("bond", "team") or is_physical(link))]
    inside = {one for link in tops for one in link.lower}
    for link in tops:
        if link.name in inside or not physical_below(link.name, links):
            continue
        found = (network_ceiling(hired), wire_ceiling("wire", (link.name,), facts), pcie_ceiling((link.name,), facts))
        ceilings = tuple(one for one in found if one is not None)
        members = (
            f"{link.name}: {link.detail.get('mode', link.kind)} of {', '.join(link.lower)}" if link.lower else None
        )
        yield StoragePath(
            kind="network",
            name=link.name,
            device=link.name,
            layers=(members,) if members else (),
            disks=(),
            ceilings=ceilings,
            sustained=bounds(ceilings),
            burst=(),
            notes=(*_connection_notes(link), *flow_notes(hired)),
        )


def _connection_notes(link: Link) -> tuple[str, ...]:
    """What one connection gets of a bond's members."""
    if not link.lower:
        return ()
    if link.detail.get("mode") == "balance-rr":
        return ("one connection uses all members in turn, and its segments arrive out of order",)
    return ("one connection uses one member only",)


def bounds(ceilings: Sequence[PathCeiling]) -> tuple[Bound, ...]:
    """For each quantity of which a ceiling is known the smallest, the outermost of equals."""
    return tuple(_smallest_bounds(ceilings, lambda one: one.sustained))


def burst_bounds(ceilings: Sequence[PathCeiling]) -> tuple[Bound, ...]:
    """The same from full credits: only what is higher than sustained."""
    sustained = {one.quantity: one.value for one in bounds(ceilings)}
    found = _smallest_bounds(ceilings, lambda one: one.burst or one.sustained)
    return tuple(one for one in found if one.value > sustained.get(one.quantity, math.inf))


def _smallest_bounds(ceilings: Sequence[PathCeiling], rate: Callable[[PathCeiling], Rate]) -> Iterator[Bound]:
    for quantity in QUANTITIES:
        known = [(value, at) for at, one in enumerate(ceilings) if (value := getattr(rate(one), quantity)) is not None]
        if known:
            value, at = min(known)
            yield Bound(quantity, value, at, ceilings[at].stage, ceilings[at].what)


def _bought_against(facts: Facts, media: Media, machine: Machine) -> Iterator[Bought]:
    """Declared volumes of this host against its machine; nothing where one of its volumes is not declared."""
    mine = [disk for disk in facts.disks if media.is_volume(disk.name)]
    found = [media.figures(disk.name) for disk in mine]
    if not mine or any(one is None for one in found):
        return
    carries = machine.volumes
    figures: tuple[tuple[Quantity, float | None], ...] = (
        ("read_mb_per_s", carries.mb_per_s if carries else None),
        ("read_iops", carries.iops if carries else None),
    )
    for quantity, ours in figures:
        volumes = sum(one.sustained.of(quantity) for one in found if one is not None)
        if ours is not None and math.isfinite(volumes):
            yield Bought(quantity, volumes, ours, max(0.0, 1 - ours / volumes))


# Declared volumes against the machine, as facts for the rules, and the findings of ``advisor limits``.


def with_purchases(facts: Facts, declared: Declared, given: Given | None = None) -> Facts:
    """The facts with what the user declares of volumes set against the machine."""
    return _with_purchases(facts, limits_of(facts, None, declared, given), declared)


def with_findings(limits: Limits, facts: Facts, declared: Declared) -> Limits:
    """The limits with what is wrong with the purchase."""
    return msgspec.structs.replace(limits, findings=unusable(_with_purchases(facts, limits, declared), None))


def _with_purchases(facts: Facts, limits: Limits, declared: Declared) -> Facts:
    media = Media(facts, declared)
    devices = tuple(disk.name for disk in facts.disks if media.is_volume(disk.name))
    return msgspec.structs.replace(
        facts,
        bursting=tuple(_bursting(media, devices)),
        purchases=tuple(
            PurchasedFigures(
                unit="IOPS" if one.quantity.endswith("iops") else "MB/s",
                volumes=one.volumes,
                machine=one.instance,
                machine_type=limits.instance_type or "",
                unusable=one.unusable,
                devices=devices,
            )
            for one in limits.bought
        ),
    )


def _bursting(media: Media, devices: Iterable[str]) -> Iterator[BurstingVolume]:
    """gp2 by its IOPS, st1 and sc1, of which 1 MiB counts as one, by their MB/s."""
    for name in devices:
        medium = media.figures(name)
        if medium is None or medium.burst is None or medium.burst_seconds is None:
            continue
        now, always = medium.burst, medium.sustained
        declared = media.declared(name)
        if declared is not None and declared.type in ("st1", "sc1"):
            yield BurstingVolume(name, "MB/s", now.read_mb_per_s, always.read_mb_per_s, medium.burst_seconds)
        else:
            yield BurstingVolume(name, "IOPS", now.read_iops, always.read_iops, medium.burst_seconds)
