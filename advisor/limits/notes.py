"""Notes on the figures of a path: sizes that do not agree, how buckets fill, stripes that are few, quotas,
what a database keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from advisor.facts.block.block import LEVELS, MIRRORS
from advisor.facts.block.block_graph import BlockGraph, BlockNode
from advisor.facts.clusters.iris import Role
from advisor.facts.host_facts import Facts
from advisor.host.numbers import count_noun
from advisor.limits.cloud_disks import PROVISIONED, fills_seconds, lasts_seconds
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.figures import MIB
from advisor.limits.media import Media, bucket_of
from advisor.limits.records import Limits, Measure, ObservedShare, PathCeiling, QuotaUse, Rate, StoragePath

_MOST_NAMES = 5
_SIZE_SHARE = 0.05
"""Sizes that differ by more do not agree: an EBS volume has whole GiB, and GB taken for GiB differ by 7 %."""
_WORDS: dict[Role, str] = {"journal": "journal", "alternate-journal": "second journal", "wij": "WIJ"}


def unused_notes(volumes: Sequence[DeclaredVolume]) -> Iterator[str]:
    """Which declared volumes are not here, by what they were looked for."""
    if volumes:
        what = "1 declared volume is" if len(volumes) == 1 else f"{len(volumes)} declared volumes are"
        names = [one.volume_id or one.device or "" for one in volumes]
        yield f"{what} no disk of this host and left out: {_join_few(names)}"


def size_notes(node: BlockNode, media: Media) -> Iterator[str]:
    """The disks below a device that the kernel reads another size of than is declared."""
    disks = tuple(dict.fromkeys(node.disks()))
    names: dict[str, list[str]] = {}
    for name in disks:
        volume, size = media.declared(name), media.size_bytes(name)
        if volume is None or not volume.gib or not size:
            continue
        here = size / (1 << 30)
        if abs(here - volume.gib) > _SIZE_SHARE * volume.gib:
            words = f"{volume.gib:,} GiB are declared, but the kernel reads {_format_gib(here)} GiB"
            names.setdefault(words, []).append(name)
    for words, those in names.items():
        whose = f"{_join_few(those)}: " if len(disks) > 1 else ""
        yield f"{whose}{words}: the figures are of the declared size, if it is this volume at all"


def _format_gib(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _join_few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def degraded_notes(node: BlockNode) -> Iterator[str]:
    """Arrays that are not whole. A multipath map has nothing to rebuild: it goes on with the paths that are left."""
    for array in node.arrays():
        if not array.missing and array.state not in ("degraded", "recovering", "failed"):
            continue
        if array.family == "multipath":
            yield f"{array.name}: {_paths_words(array.missing, len(array.members))}"
        elif array.family in MIRRORS:
            rebuilt = "these ceilings do not count a member that is being rebuilt, which may serve reads already"
            words = rebuilt if array.state == "recovering" else "the members that are left carry the load"
            yield f"{array.name} is {array.state or 'not whole'}: {words}"
        else:
            words = "these ceilings are bounds that do not count reconstruction"
            yield f"{array.name} is {array.state or 'not whole'}: {words}"


def bound_notes(node: BlockNode) -> Iterator[str]:
    """Name the work that the figures of an array leave out."""
    for array in node.arrays():
        level = LEVELS[array.family] if array.family else None
        if level and level.uncounted:
            yield f"{array.name}: a bound that does not count {level.uncounted}"
        if any(member.relation == "journal" for member in array.members):
            yield f"{array.name}: a bound that does not count the wait for its journal before each write"


def _paths_words(missing: int, left: int) -> str:
    lost = f"{missing} of {missing + left} paths {'is' if missing == 1 else 'are'} missing"
    rest = "the other one carries" if left == 1 else f"the other {left} carry"
    return f"{lost if missing else 'a path is missing'}; {rest if missing else 'the rest carries'} the load"


def bucket_notes(node: BlockNode, media: Media) -> Iterator[str]:
    """How long the emptied buckets below a device take to fill."""
    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(node.disks()):
        volume = media.declared(name)
        bucket = bucket_of(volume) if volume else None
        if bucket is not None:
            names.setdefault(_format_duration(fills_seconds(bucket)), []).append(name)
    for duration, those in names.items():
        whose = f" of {', '.join(those)}" if len(names) > 1 else ""
        yield f"an emptied bucket of credits{whose} takes {duration} without I/O to fill"


def _format_duration(seconds: float) -> str:
    return count_noun(seconds / 60, "minute") if seconds < 2 * 3600 else count_noun(seconds / 3600, "hour")


def segment_notes(node: BlockNode, spread: Rate | None, floor: Rate | None) -> Iterator[str]:
    """What lies one behind the other: a stream is in one part at a time, and only load that is spread over all of it
    reaches them together."""
    if spread is None:
        return
    for array in node.arrays():
        if array.family == "linear" and len(set(array.disks())) > 1:
            yield _segment_words(array)
    if reached := _rate_words(spread):
        yield f"load that is spread over all of it at once (many files, random I/O) reaches at most {reached}"
    if floor is not None and (reached := _rate_words(floor)):
        yield f"in its slowest part a stream gets at most {reached}"


def _segment_words(array: BlockNode) -> str:
    counts = [len(set(member.disks())) for member in array.members]
    if set(counts) == {1}:
        return (
            f"{array.name} is linear over {len(counts)} disks, one behind the other: a stream is on one of them at a "
            "time, and the figures are those of one"
        )
    return (
        f"{array.name} has {len(counts)} segments one behind the other, of {_join_counted(counts)} disks: a stream is "
        "in one segment at a time, and the figures are those of one"
    )


def _join_counted(counts: Sequence[int]) -> str:
    texts = [f"{number}" for number in counts[:_MOST_NAMES]]
    return f"{', '.join(texts)} and more" if len(counts) > _MOST_NAMES else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _rate_words(rate: Rate) -> str:
    pairs = ((rate.read_mb_per_s, rate.write_mb_per_s, "MB/s"), (rate.read_iops, rate.write_iops, "IOPS"))
    return " and ".join(f"{_join_either(read, write)} {unit}" for read, write, unit in pairs if read or write)


def _join_either(read: float | None, write: float | None) -> str:
    texts = ["?" if one is None else f"{one:,.0f}" if one >= 100 else f"{one:.3g}" for one in (read, write)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} reading, {texts[1]} writing"


def stripe_notes(node: BlockNode, facts: Facts) -> Iterator[str]:
    """Logical volumes whose stripes do not go over all of their devices, where their segments are not known."""
    inside = {array.device for array in node.arrays()}
    for array in facts.arrays:
        count = len(set(array.members))
        if array.device not in inside or array.level != "striped" or array.structure is not None:
            continue
        if 0 < (array.data_disks or 0) < count:
            few = array.data_disks
            stripes = "1 stripe" if few == 1 else f"{few} stripes"
            words = f"{array.name}: {stripes} over {count} devices: one file lies on {few} of them at a time"
            yield f"{words}; which ones is not known, and the figures are those of {few}"


def quota_use(declared: Declared) -> QuotaUse | None:
    """The declared io1 and io2 volumes, of this host and of others in the file, against the quota."""
    quota = declared.quota
    if quota is None or quota.iops is None:
        return None
    bought = sum(one.iops or 0 for one in declared.volume if one.type in PROVISIONED)
    elsewhere = quota.elsewhere_iops or 0
    return QuotaUse(quota.iops, bought, elsewhere, quota.iops - bought - elsewhere)


def quota_notes(use: QuotaUse | None) -> Iterator[str]:
    if use is None or not use.bought + use.elsewhere:
        return
    taken = f"provisioned volumes have {use.bought + use.elsewhere:,} IOPS"
    if use.left < 0:
        yield f"{taken}, {-use.left:,} more than the quota of {use.iops:,}: not all of them could be bought"
    else:
        yield f"{taken} of the quota of {use.iops:,}; {use.left:,} are left"


def iris_words(device: str, places: Sequence[str], facts: Facts) -> Iterator[str]:
    """What each InterSystems IRIS instance keeps on a device."""
    for one in facts.iris:
        here = [place for place in one.places if place.device == device or place.mountpoint in places]
        words = [_WORDS[role] for role in _WORDS if any(place.role == role for place in here)]
        names = [place.name for place in here if place.role == "database"]
        if names:
            words.append(f"{'database' if len(names) == 1 else 'databases'} {_join_few(names)}")
        if words:
            yield f"InterSystems IRIS {one.name or one.directory}: {', '.join(words)}"


# What was measured against what binds: shares of ceilings, and how long burst credits last at that rate.

_BOTH_WAYS_AT_ONCE = frozenset({"network", "wire", "pcie"})
"""Full duplex: reads do not take from writes."""


class Measurement(msgspec.Struct, frozen=True):
    """The median of one workload on a device. ``read_share`` is the fraction of its operations that read."""

    workload: str
    device: str | None
    measure: Measure
    value: float
    read_share: float


def share(value: float, ceiling: float) -> float:
    """The fraction of a ceiling."""
    return value / ceiling


def mixed(rate: Rate, measure: Measure, read_share: float, *, duplex: bool) -> float | None:
    """The ceiling of a mix of reads and writes: each takes its time of the part, or its own direction of a link."""
    limits = (getattr(rate, f"read_{measure}"), getattr(rate, f"write_{measure}"))
    costs = [part / limit for part, limit in zip((read_share, 1 - read_share), limits, strict=True) if limit and part]
    if not costs or (None in limits and 0 < read_share < 1):
        return None
    cost: float = max(costs) if duplex else sum(costs)
    return 1 / cost


def binding(ceilings: Sequence[PathCeiling], one: Measurement, *, in_burst: bool) -> float | None:
    """The smallest known ceiling for a mix like this one."""
    rates = [(each.stage, (each.burst if in_burst else None) or each.sustained) for each in ceilings]
    found = (mixed(rate, one.measure, one.read_share, duplex=stage in _BOTH_WAYS_AT_ONCE) for stage, rate in rates)
    return min((value for value in found if value is not None), default=None)


def with_observed(limits: Limits, measured: Iterable[Measurement], facts: Facts, declared: Declared) -> Limits:
    """The limits with each measurement at the path of its device; a note names the measurements without one."""
    devices = BlockGraph(facts)
    by_path: dict[str, list[ObservedShare]] = {}
    notes: list[str] = []
    paths = {path.device: path for path in limits.paths if path.kind == "storage"}
    for one in measured:
        node = devices.node(one.device) if one.device else None
        path = paths.get(node.device) if node else None
        if path is None:
            notes.append(f"{one.workload} was measured on {one.device or 'an unknown device'}: no path of this host")
        else:
            by_path.setdefault(path.device, []).extend(_observed_shares(path, one, declared, facts))
    changed = tuple(
        msgspec.structs.replace(path, observed=tuple(by_path[path.device]))
        if path.kind == "storage" and path.device in by_path
        else path
        for path in limits.paths
    )
    return msgspec.structs.replace(limits, paths=changed, notes=(*limits.notes, *dict.fromkeys(notes)))


def _observed_shares(path: StoragePath, one: Measurement, declared: Declared, facts: Facts) -> Iterator[ObservedShare]:
    sustained = binding(path.ceilings, one, in_burst=False)
    burst = binding(path.ceilings, one, in_burst=True)
    in_burst = sustained is not None and burst is not None and one.value > sustained and burst > sustained
    ceiling = burst if in_burst else sustained
    part = share(one.value, ceiling) if ceiling else None
    # How long the bucket of the one volume below a path lasts, gp2's in I/Os and st1's and sc1's in MiB; None for an
    # array.
    if len(path.disks) != 1 or path.layers:
        seconds: float | None = None
    else:
        volume = Media(facts, declared).declared(path.disks[0])
        bucket = bucket_of(volume) if volume else None
        if bucket is None or (bucket.unit == "I/O") != (one.measure == "iops"):
            seconds = None
        else:
            lasting = lasts_seconds(bucket, one.value if bucket.unit == "I/O" else one.value / MIB)
            seconds = lasting if lasting is not None and math.isfinite(lasting) else None
    yield ObservedShare(one.workload, one.measure, one.read_share, one.value, ceiling, part, in_burst, seconds)
