"""``--prices FILE``: what the user pays, as TOML or JSON with a date. The package has no prices.

A price that is missing for any part of a choice leaves the choice without a price: nothing is estimated.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from advisor.limits.input_file import FieldError, decoding, is_json, read_input, toml_document
from advisor.sizing.records import Choice, Links, Price, VolumePurchase

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
