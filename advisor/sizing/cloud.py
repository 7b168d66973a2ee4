"""Machine × volumes × stripes: what carries a demand in a cloud."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from advisor.limits.machine_file import FieldError, decoding, is_json, read_input, toml_document
from advisor.limits.machines import AZURE_TABLE, EC2_TABLE, NEWER_KINDS, Machine
from advisor.sizing.records import (
    PREMIUM,
    Choice,
    Cloud,
    Demand,
    Links,
    Price,
    Short,
    VolumePurchase,
    carried,
    size_part,
)

# ``--prices FILE``: what the user pays, as TOML or JSON with a date. The package has no prices.

HOURS_PER_MONTH = 730
_HINT = "docs/size.md describes the file"
Per = Literal["hour", "month", "once"]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Count = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A price that holds up to an amount; ``up_to`` None in the last one."""

    price: Amount
    up_to: Count | None = None


Rate = Amount | tuple[Step, ...]


class VolumePrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Of one volume: ``each`` for it as a whole, or for its GiB, IOPS and MiB/s (or MB/s) beyond what is included."""

    each: Amount | None = None
    gib: Amount | None = None
    iops: Rate | None = None
    mib_per_s: Amount | None = None
    mb_per_s: Amount | None = None
    included_iops: Count = 0
    included_mib_per_s: Count = 0
    included_mb_per_s: Count = 0
    per: Per | None = None


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``per`` holds for every price that has none of its own; instances are hired by the hour, volumes by the month,
    and links bought once, unless it says otherwise."""

    date: datetime.date
    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=16)]
    per: Per | None = None
    source: str = ""
    instances_per: Per | None = None
    instances: Mapping[str, Amount] = {}
    volumes: Mapping[str, VolumePrice] = {}
    drives: Mapping[str, VolumePrice] = {}
    links_per: Per | None = None
    links: Mapping[str, Amount] = {}


def read_prices(path: Path) -> Prices:
    """The file. Raises InvalidInputError that names it and the field, PermissionDeniedError."""
    return parse_prices(read_input(path), str(path))


def parse_prices(data: bytes, where: str) -> Prices:
    """As `read_prices`, from the bytes: JSON where the first character is a brace, else TOML."""
    as_json = is_json(data)
    with decoding(where, "JSON" if as_json else "TOML", _HINT):
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")) if as_json else toml_document(data)
        found = msgspec.convert(document, Prices)
        for table, some in (("volumes", found.volumes), ("drives", found.drives)):
            for name, one in some.items():
                place = f"{table}.{name}"
                parts = (one.gib, one.iops, one.mib_per_s, one.mb_per_s)
                if one.each is None and all(part is None for part in parts):
                    raise FieldError(place, "neither each nor gib, iops, mib-per-s or mb-per-s is there")
                if one.each is not None and any(part is not None for part in parts):
                    raise FieldError(
                        f"{place}.each", "it is the whole price; leave out gib, iops, mib-per-s and mb-per-s"
                    )
                if isinstance(one.iops, tuple):
                    ends = [step.up_to for step in one.iops]
                    if not ends or ends[-1] is not None or None in ends[:-1] or sorted(filter(None, ends)) != ends[:-1]:
                        raise FieldError(f"{place}.iops", "expected steps with rising up-to, and none in the last")
    return found


def with_price(choice: Choice, prices: Prices) -> Choice:
    """The choice with what it costs; without a price, and with what the file lacks, where any part has none."""
    costs = []
    lacks = []
    for name, found in _list_costs(choice, prices):
        if found is None:
            lacks.append(name)
        else:
            costs.append(found)
    units = {"once" if per == "once" else "month" for _, per in costs}
    if len(units) > 1:
        lacks.append("one unit: some prices are once, others by time")
    if lacks or not costs:
        return msgspec.structs.replace(choice, price=None, price_lacks=tuple(dict.fromkeys(lacks)))
    amount = sum(value * (HOURS_PER_MONTH if per == "hour" else 1) for value, per in costs)
    per: Per = "once" if units == {"once"} else "month"
    return msgspec.structs.replace(choice, price=Price(round(amount, 2), prices.currency, per))


def _list_costs(choice: Choice, prices: Prices) -> Iterator[tuple[str, tuple[float, Per] | None]]:
    if choice.instance is not None:
        amount = prices.instances.get(choice.instance)
        per = prices.instances_per or prices.per or "hour"
        yield choice.instance, None if amount is None else (amount, per)
    for one in choice.volumes:
        table = prices.drives if choice.cloud == "metal" else prices.volumes
        yield one.kind, _of_purchase(one, table, prices, "once" if choice.cloud == "metal" else "month")
    for link in choice.links:
        yield link.kind, _of_links(link, prices)


def _of_links(one: Links, prices: Prices) -> tuple[float, Per] | None:
    amount = prices.links.get(one.kind)
    return None if amount is None else (one.count * amount, prices.links_per or prices.per or "once")


def _of_purchase(
    one: VolumePurchase, table: Mapping[str, VolumePrice], prices: Prices, usual: Per
) -> tuple[float, Per] | None:
    """A tier by its own name ("P30") or with its type ("Premium_LRS P30")."""
    found = table.get(one.kind) or table.get(one.kind.rpartition(" ")[2])
    if found is None:
        return None
    each = found.each if found.each is not None else _by_figures(one, found)
    return None if each is None else (one.count * each, found.per or prices.per or usual)


def _by_figures(one: VolumePurchase, found: VolumePrice) -> float | None:
    """None where a price is by a figure that is not known of the volume."""
    mib = one.mib_s if one.mib_s is not None else None if one.mb_s is None else one.mb_s * 1e6 / 2**20
    amounts = (
        (found.gib, one.gib, 0.0),
        (found.mib_per_s, mib, found.included_mib_per_s),
        (found.mb_per_s, one.mb_s, found.included_mb_per_s),
    )
    total = 0.0
    for price, has, included in amounts:
        if price is not None:
            if has is None:
                return None
            total += price * max(0.0, has - included)
    if found.iops is None:
        return total
    return None if one.iops is None else total + _stepped_price(found.iops, one.iops, found.included_iops)


def _stepped_price(rate: Rate, iops: float, included: float) -> float:
    """Each step's price for the operations that lie in it."""
    if not isinstance(rate, tuple):
        return rate * max(0.0, iops - included)
    total, below = 0.0, included
    for step in rate:
        end = min(iops, step.up_to) if step.up_to is not None else iops
        total += step.price * max(0.0, end - below)
        below = max(below, end)
    return total


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
