"""Machine × volumes × stripes: what carries a demand in a cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from advisor.limits.machines import AZURE_TABLE, EC2_TABLE, NEWER_KINDS, Machine
from advisor.sizing.records import Choice, Cloud, Demand, Short, VolumePurchase, size_part
from advisor.sizing.volumes import PREMIUM, carried

Rank = Callable[[Choice], tuple[object, ...]]


def choices(
    machines: Iterable[Machine], layouts: Sequence[tuple[VolumePurchase, ...]], demand: Demand
) -> Iterator[Choice]:
    """Every machine with every layout that carry the demand together, as far as the tables know them."""
    for machine in machines:
        # False where a known figure is too small; a machine of which nothing is known is no choice.
        carry = machine.volumes
        if carry is None:
            may_carry = False
        else:
            pairs = ((demand.mb_s, carry.mb_per_s, carry.newer_mb_per_s), (demand.iops, carry.iops, carry.newer_iops))
            may_carry = all(not asked or has is None or max(has, most or 0) >= asked for asked, has, most in pairs)
        if not may_carry:
            continue
        for volumes in layouts:
            if _takes_volumes(machine, volumes):
                found = _make_choice(machine, volumes, demand)
                if found is not None:
                    yield found


def _takes_volumes(machine: Machine, volumes: Sequence[VolumePurchase]) -> bool:
    """Whether the machine takes as many volumes of these kinds; io2 Block Express needs Nitro."""
    count = sum(one.count for one in volumes)
    kinds = {one.kind.partition(" ")[0] for one in volumes}
    if machine.most_disks is not None and count > machine.most_disks:
        return False
    if "io2" in kinds and not machine.is_nitro:
        return False
    return not (kinds & set(PREMIUM) and machine.provider == "azure" and machine.premium is False)


def _make_choice(machine: Machine, volumes: tuple[VolumePurchase, ...], demand: Demand) -> Choice | None:
    """None where the volumes do not carry the demand, or the machine does not carry it to these."""
    assert machine.volumes is not None
    kinds = {one.kind.partition(" ")[0] for one in volumes}
    limits = machine.volumes.for_kinds(kinds) if kinds <= NEWER_KINDS else machine.volumes
    if any(
        asked and has and has < asked for asked, has in ((demand.mb_s, limits.mb_per_s), (demand.iops, limits.iops))
    ):
        return None
    totals = [carried(one) for one in volumes]
    mb_s, iops = sum(one[0] for one in totals), sum(one[1] for one in totals)
    if mb_s < (demand.mb_s or 0) - 1e-6 or iops < (demand.iops or 0) - 1e-6:
        return None
    parts = (
        size_part(machine.name, limits.mb_per_s, limits.iops, demand, limits.source),
        size_part(words_of(volumes), mb_s, iops, demand, volumes[0].source),
    )
    most_mb, most_iops = min(mb_s, limits.mb_per_s or mb_s), min(iops, limits.iops or iops)
    # Of equals the outer one binds: it is what cannot be bought by the volume.
    binds = min(parts, key=lambda one: round(one.headroom, 6))
    lost = [1 - has / of for has, of in ((limits.mb_per_s, mb_s), (limits.iops, iops)) if has and of > has]
    share = (demand.read_mb_s or 0) / demand.mb_s if demand.mb_s else None
    return Choice(
        cloud="azure" if machine.provider == "azure" else "aws",
        instance=machine.name,
        vcpus=machine.vcpus,
        memory_gib=None if machine.memory_mib is None else round(machine.memory_mib / 1024, 1),
        volumes=volumes,
        links=(),
        read_mb_s=most_mb * share if share is not None else most_mb,
        write_mb_s=most_mb * (1 - share) if share is not None else most_mb,
        iops=most_iops,
        binds=binds.what,
        headroom=binds.headroom,
        unusable=max(lost, default=0.0),
        price=None,
        parts=parts,
        unknown=tuple(_list_unknown(machine, demand)),
    )


def _list_unknown(machine: Machine, demand: Demand) -> Iterator[str]:
    limits = machine.volumes
    if limits is None:
        return
    if limits.is_maximum:
        yield f"what {machine.name} carries for longer than its maximum"
    if demand.mb_s and limits.mb_per_s is None:
        yield f"MB/s of {machine.name}"
    if demand.iops and limits.iops is None:
        yield f"IOPS of {machine.name}"


def words_of(volumes: Sequence[VolumePurchase]) -> str:
    """``4 × gp3``."""
    return " + ".join(f"{one.count} × {one.kind}" for one in volumes)


def shortfalls(cloud: Cloud, machines: Sequence[Machine], demand: Demand) -> Iterator[Short]:
    """What is asked for and more than any machine is known to carry; where each figure is, but no machine has all of
    them, what the nearest one lacks."""
    source = AZURE_TABLE if cloud == "azure" else EC2_TABLE
    known = [one for one in machines if one.volumes is not None]
    if not known:
        return
    each = {
        "mb_s": max(known, key=lambda one: (one.volumes and one.volumes.mb_per_s) or 0),
        "iops": max(known, key=lambda one: (one.volumes and one.volumes.iops) or 0),
    }
    found = [one for quantity, best in each.items() for one in _list_short(cloud, quantity, best, demand, source)]
    if not found:
        nearest = max(known, key=lambda one: _demand_share(one, demand))
        found = [one for quantity in each for one in _list_short(cloud, quantity, nearest, demand, source)]
    yield from found


def _machine_figure(machine: Machine, quantity: str) -> float | None:
    if machine.volumes is None:
        return None
    return machine.volumes.mb_per_s if quantity == "mb_s" else machine.volumes.iops


def _demand_share(machine: Machine, demand: Demand) -> float:
    """The smaller fraction of the demand that a machine is known to carry."""
    pairs = ((demand.mb_s, "mb_s"), (demand.iops, "iops"))
    return min(((_machine_figure(machine, quantity) or 0) / asked for asked, quantity in pairs if asked), default=0.0)


def _list_short(cloud: Cloud, quantity: str, machine: Machine, demand: Demand, source: str) -> Iterator[Short]:
    asked = demand.mb_s if quantity == "mb_s" else demand.iops
    has = _machine_figure(machine, quantity) or 0
    if asked and has < asked:
        of = f"{machine.name} ({machine.volumes.source if machine.volumes else source})"
        yield Short(cloud, "mb_s" if quantity == "mb_s" else "iops", asked, has, asked - has, of)


def cheapest(found: Iterable[Choice], rank: Rank) -> tuple[Choice, ...]:
    """Of each machine and kind of volume the best one."""
    best: dict[tuple[object, ...], Choice] = {}
    for one in found:
        key = (one.cloud, one.instance, tuple(each.kind.partition(" ")[0] for each in one.volumes))
        if key not in best or rank(one) < rank(best[key]):
            best[key] = one
    return tuple(best.values())
