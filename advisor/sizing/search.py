"""The search: every choice that carries a demand, ranked; or what falls short."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.limits.cloud_disks import GOOGLE_DISKS
from advisor.limits.declared import Declared
from advisor.limits.machines import Given, Machine, all_machines
from advisor.sizing import cloud as in_cloud
from advisor.sizing import metal
from advisor.sizing.cloud import Prices, with_price
from advisor.sizing.records import (
    BY_NAME,
    KINDS,
    MOST_ASKED,
    Choice,
    Cloud,
    Demand,
    Excluded,
    Short,
    Sizing,
    VolumeKind,
    VolumePurchase,
    declared_purchases,
    purchases,
)

CLOUDS: tuple[Cloud, ...] = ("aws", "azure", "metal")
Layouts = tuple[tuple[str, int | None], ...]

_MEASURED_LATENCY = (
    "S002 measured gp3 below 0.8 ms for reads and about 1 ms for writes on one host; that is no promise of AWS"
)


class SizeQuestion(msgspec.Struct, frozen=True):
    """What is searched: the demand, the clouds, only these machines and layouts, and the user's own files."""

    demand: Demand
    clouds: tuple[Cloud, ...] = CLOUDS
    instances: tuple[str, ...] = ()
    layouts: Layouts = ()
    given: Given | None = None
    declared: Declared = Declared()
    prices: Prices | None = None
    prices_where: str = ""
    limit: int = 10


def parse_layouts(text: str) -> Layouts:
    """``gp3x16,io2,raid10x8``: kinds and levels, each with a number of volumes or without. Raises UsageError."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*?)(?:x([0-9]{1,3}))?", part.strip(), re.ASCII)
        name = next((one for one in (*BY_NAME, *metal.LEAST) if match and one.lower() == match[1].lower()), None)
        count = int(match[2]) if match and match[2] else None
        if name is None:
            names = ", ".join((*BY_NAME, *metal.LEAST))
            raise UsageError(f"--layout {part.strip()}: expected one of {names}, with xN for the number of volumes")
        most = metal.MOST_DRIVES if name in metal.LEAST else MOST_ASKED
        if count is not None and not 1 <= count <= most:
            raise UsageError(f"--layout {part.strip()}: expected 1 to {most} volumes, found {count}")
        found.append((name, count))
    return tuple(found)


def answer(question: SizeQuestion) -> Sizing:
    """The choices, best first. Raises UsageError for a machine that no table has, and for volumes of a cloud of which
    none is known."""
    demand = question.demand
    _check_layouts(question)
    of_google = next((one.type for one in question.declared.volume if one.type in GOOGLE_DISKS), None)
    if of_google is not None:
        raise UsageError(
            f"{question.declared.where}: no machine of Google Cloud is known for {of_google}",
            hint="advisor limits --volumes FILE says what a host of Google Cloud reaches with them",
        )
    found = []
    shown = []
    short: list[Short] = []
    excluded: dict[str, Excluded] = {}
    known = {one.name for cloud in question.clouds if cloud != "metal" for one in _asked_machines(cloud, question)}
    unknown = [name for name in question.instances if name not in known]
    if unknown:
        raise UsageError(
            f"--instance {unknown[0]}: it is in no table of {', '.join(question.clouds)}",
            hint="--instance-types FILE takes what aws ec2 describe-instance-types or az vm list-skus printed",
        )
    for cloud in _asked_clouds(question):
        kinds, left_out = _fitting_kinds(cloud, question)
        left_out = left_out or tuple(metal.excluded(demand, question.declared) if cloud == "metal" else ())
        excluded |= {one.kind: one for one in left_out}
        mine = list(_of_metal(question)) if cloud == "metal" else list(_of_cloud(cloud, kinds, question))
        found += mine
        shown += sorted(mine, key=_rank_by(question))[: question.limit]
        if not mine:
            short += _list_shortfalls(cloud, kinds, question)
    # Without prices the machines of one cloud are not set against those of another.
    choices = tuple(sorted(shown, key=_rank_by(question)) if question.prices else shown)
    return Sizing(
        demand=demand,
        choices=choices,
        found=len(found),
        undecided=sum(bool(one.unknown) for one in found),
        short=tuple(short),
        excluded=tuple(excluded.values()),
        notes=tuple(_make_notes(question, choices)),
        sources=tuple(dict.fromkeys(_list_sources(choices))),
        prices=None
        if question.prices is None
        else f"{question.prices_where} of {question.prices.date.isoformat()}, in {question.prices.currency}",
    )


def _asked_clouds(question: SizeQuestion) -> Iterator[Cloud]:
    """The clouds in which the machines, layouts and volumes that are asked for are."""
    bought = {_cloud_of(one) for one in declared_purchases(question.declared)}
    wanted = {BY_NAME[name].cloud if name in BY_NAME else "metal" for name, _ in question.layouts}
    for cloud in question.clouds:
        is_hired = cloud != "metal" and bool(_asked_machines(cloud, question))
        if (is_hired or not question.instances) and cloud in (bought or CLOUDS) and cloud in (wanted or CLOUDS):
            yield cloud


def _rank_by(question: SizeQuestion) -> in_cloud.Rank:
    """What is known for certain first. With prices by price, those without one last; else the least that cannot be
    used, the smallest machine, the fewest drives and volumes, the tightest fit."""
    priced = question.prices is not None

    def rank(one: Choice) -> tuple[object, ...]:
        price = one.price.amount if one.price else math.inf
        return (
            priced and one.price is None,
            bool(one.unknown),
            bool(one.price and one.price.per == "once"),
            price if priced else 0.0,
            round(one.unusable, 2),
            one.vcpus if one.vcpus is not None else 0 if one.instance is None else 10**9,
            one.memory_gib or 0.0,
            sum(each.count for each in one.volumes),
            round(max(part.headroom for part in one.parts), 4),
            one.instance or "",
            one.volumes[0].kind,
        )

    return rank


def _check_layouts(question: SizeQuestion) -> None:
    """That some layout is of a cloud that is asked for. Raises UsageError."""
    clouds = {name: BY_NAME[name].cloud if name in BY_NAME else "metal" for name, _ in question.layouts}
    if clouds and not set(clouds.values()) & set(question.clouds):
        name = next(iter(clouds))
        raise UsageError(
            f"--layout {name} contradicts --cloud {', '.join(question.clouds)}: {name} is of {clouds[name]}",
            hint=f"--cloud {clouds[name]}",
        )


def _asked_machines(cloud: Cloud, question: SizeQuestion) -> tuple[Machine, ...]:
    found = all_machines("azure" if cloud == "azure" else "aws", question.given)
    return tuple(one for one in found if not question.instances or one.name in question.instances)


def _fitting_kinds(cloud: Cloud, question: SizeQuestion) -> tuple[tuple[VolumeKind, ...], tuple[Excluded, ...]]:
    """The kinds of a cloud that fit the latency, and those that do not."""
    wanted = {name for name, _ in question.layouts}
    mine = [one for one in KINDS if one.cloud == cloud and (not question.layouts or one.name in wanted)]
    latency = question.demand.latency_ms
    fits = tuple(one for one in mine if latency is None or one.latency_ms <= latency)
    return fits, tuple(
        Excluded(one.name, _exclusion_reason(one, latency), one.source) for one in mine if one not in fits
    )


def _exclusion_reason(kind: VolumeKind, latency: float | None) -> str:
    measured = f". {_MEASURED_LATENCY}" if kind.name == "gp3" else ""
    return f"its documented latency is {kind.words}, and {latency:g} ms is asked for{measured}"


def _of_cloud(cloud: Cloud, kinds: Sequence[VolumeKind], question: SizeQuestion) -> Iterator[Choice]:
    layouts: list[tuple[VolumePurchase, ...]] = []
    for kind in kinds:
        counts = [count for name, count in question.layouts if name == kind.name] or [None]
        for count in counts:
            ways = list(purchases(kind.name, question.demand, count))
            # Without prices more volumes than are needed are no gain; tiers are as they are.
            few = ways[:1] if question.prices is None and len({one.kind for one in ways}) == 1 else ways
            layouts += [(one,) for one in few]
    mine = tuple(one for one in declared_purchases(question.declared) if _cloud_of(one) == cloud)
    if mine:
        layouts = [mine]
    found = in_cloud.choices(_asked_machines(cloud, question), layouts, question.demand)
    priced = (with_price(one, question.prices) for one in found) if question.prices else found
    yield from priced if question.layouts else in_cloud.cheapest(priced, _rank_by(question))


def _cloud_of(one: VolumePurchase) -> Cloud:
    return "azure" if "_" in one.kind else "aws"


def _of_metal(question: SizeQuestion) -> Iterator[Choice]:
    prices = question.prices
    found = metal.choices(question.demand, question.declared, question.layouts, all_links=prices is not None)
    if prices is None:
        yield from found
        return
    best: dict[tuple[VolumePurchase, ...], Choice] = {}
    rank = _rank_by(question)
    for one in (with_price(each, prices) for each in found):
        if one.volumes not in best or rank(one) < rank(best[one.volumes]):
            best[one.volumes] = one
    yield from best.values()


def _list_shortfalls(cloud: Cloud, kinds: Sequence[VolumeKind], question: SizeQuestion) -> Iterator[Short]:
    latency = question.demand.latency_ms
    if cloud == "metal":
        yield from metal.shortfalls(question.demand, question.declared)
        return
    if not kinds and latency is not None:
        best = min([one for one in KINDS if one.cloud == cloud], key=lambda one: one.latency_ms)
        if best.latency_ms > latency:
            of = f"{best.name} ({best.source})"
            yield Short(cloud, "latency_ms", latency, best.latency_ms, best.latency_ms - latency, of)
    yield from in_cloud.shortfalls(cloud, _asked_machines(cloud, question), question.demand)


def _make_notes(question: SizeQuestion, choices: Sequence[Choice]) -> Iterator[str]:
    clouds = {one.cloud for one in choices}
    if question.demand.capacity_bytes is None:
        yield "no capacity was asked for: --capacity SIZE counts it, and may take more volumes, drives or servers"
    if any(one.unknown for one in choices):
        yield (
            "choices with something unknown come last: --instance-types FILE takes the figures from "
            "aws ec2 describe-instance-types or az vm list-skus"
        )
    if clouds & {"aws", "azure"}:
        yield (
            "reads and writes count together on a volume and on a machine; what a machine carries for half an hour "
            "only is not counted"
        )
    if "azure" in clouds:
        yield "whether a region offers Premium SSD v2 or Ultra Disk for a VM size is not in the tables"
    if "metal" in clouds:
        yield "metal: PCI Express, controllers, processors and memory are not counted"
    if question.demand.iops and "metal" in clouds and question.demand.write_share == 1.0:
        yield "metal: all operations are counted as writes; give --read and --write for their shares"


def _list_sources(choices: Sequence[Choice]) -> Iterator[str]:
    for one in choices:
        yield from (part.source for part in one.parts if part.source)
        for each in one.volumes:
            kind = BY_NAME.get(each.kind.partition(" ")[0])
            if kind is not None:
                yield f"latency of {kind.name}: {kind.words} ({kind.source})"
