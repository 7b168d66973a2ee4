"""``--volumes FILE``: what the user says about volumes and drives, as TOML of our own or as `aws ec2 describe-volumes`.

What is read is not trusted: an error names the field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from advisor.errors import InvalidInputError, near_names
from advisor.limits import cloud_disks
from advisor.limits.cloud_disks import (
    AZURE_DISKS,
    BY_PURCHASE,
    GOOGLE_DISKS,
    HYPERDISKS,
    IOPS_PER_GIB,
    IOPS_PER_MIB,
    LARGEST_CACHED_GIB,
    LARGEST_GIB,
    LEAST_IOPS,
    LEAST_MIB_PER_S,
    MOST_IOPS,
    MOST_MIB_PER_S,
    PROVISIONED,
    SIZES_GIB,
    VOLUME_TYPES,
    AzureDisk,
    GoogleDisk,
    HostCaching,
    bought_figures,
)
from advisor.limits.figures import MIB, Figures
from advisor.limits.machine_file import FieldError, decoding, is_json, read_input, toml_document

MAX_BYTES = 16 << 20

EbsKind = Literal["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"]
Kind = EbsKind | AzureDisk | GoogleDisk | Literal["drive"]
KINDS: tuple[str, ...] = (*get_args(EbsKind), *AZURE_DISKS, *GOOGLE_DISKS, "drive")
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(gt=0, le=10**12)]
Gib = Annotated[int, msgspec.Meta(gt=0, le=LARGEST_GIB)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
VolumeId = Annotated[str, msgspec.Meta(pattern=r"^vol-?[0-9a-f]{8,32}\Z")]
_HINT = "docs/limits.md describes the file; for EBS the output of aws ec2 describe-volumes will do, too"


class DeclaredVolume(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One volume or drive. An EBS type takes ``gib``, ``iops`` and a throughput as bought; an Azure disk its ``gib`` or
    ``tier``, its ``host_caching``, and ``iops`` and MB/s where these are bought; a Google disk its ``gib``, or what was
    bought; ``drive`` its data sheet."""

    type: Kind
    device: Name | None = None
    volume_id: VolumeId | None = None
    gib: Gib | None = None
    tier: Name | None = None
    iops: Count | None = None
    throughput_mib_per_s: Positive | None = None
    throughput_mb_per_s: Positive | None = None
    read_mb_per_s: Positive | None = None
    write_mb_per_s: Positive | None = None
    read_iops: Count | None = None
    write_iops: Count | None = None
    host_caching: HostCaching | None = None
    multi_attach: bool | None = None
    """Whether several instances have the volume, which share what it carries."""

    @property
    def is_cached(self) -> bool:
        """Whether the host of an Azure VM caches the disk."""
        return self.host_caching in ("ReadOnly", "ReadWrite")

    @property
    def mib_per_s(self) -> float | None:
        """The throughput bought, in MiB/s."""
        if self.throughput_mb_per_s is not None:
            return self.throughput_mb_per_s / MIB
        return self.throughput_mib_per_s


class Quota(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What all io1 and io2 volumes of an account may have. ``elsewhere_iops`` is what those of other hosts, as a
    mirror's other member, have of ``iops``."""

    iops: Count | None = None
    elsewhere_iops: Count | None = None
    throughput_mb_per_s: Positive | None = None


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """All that the user says, and what was ``measured`` of drives by disk. ``where`` names the file."""

    volume: tuple[DeclaredVolume, ...] = ()
    quota: Quota | None = None
    instance_type: Name | None = None
    where: str = ""
    measured: Mapping[str, Figures] = {}


class _AwsVolume(msgspec.Struct, frozen=True, rename="pascal"):
    volume_id: VolumeId
    volume_type: Literal["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"]
    size: Gib
    iops: Count | None = None
    throughput: Positive | None = None
    multi_attach_enabled: bool = False


class _AwsAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    volumes: tuple[_AwsVolume, ...]


def read_declared(path: Path) -> Declared:
    """The file. Raises InvalidInputError that names it and the field, PermissionDeniedError."""
    return parse_declared(read_input(path, max_bytes=MAX_BYTES), str(path))


def parse_declared(data: bytes, where: str) -> Declared:
    """As `read_declared`, from the bytes: JSON where the first character is a brace, else TOML."""
    as_json = is_json(data)
    with decoding(where, "JSON" if as_json else "TOML", _HINT):
        if as_json:
            answer = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_AwsAnswer)
            found = Declared(
                tuple(
                    DeclaredVolume(
                        type=one.volume_type,
                        volume_id=one.volume_id,
                        gib=one.size,
                        # The answer gives a gp2, st1 or sc1 volume the IOPS that follow from its size.
                        iops=one.iops if one.volume_type in MOST_IOPS else None,
                        throughput_mib_per_s=one.throughput if one.volume_type in MOST_MIB_PER_S else None,
                        multi_attach=one.multi_attach_enabled or None,
                    )
                    for one in answer.volumes
                )
            )
        else:
            document = toml_document(data)
            for own in {"where", "measured"} & document.keys():
                raise FieldError(own, "there is no such field")
            _check_types(document)
            found = msgspec.convert(document, Declared)
        # What the types do not say: each volume has a name of its own, and the fields of its type within its range.
        seen: set[str] = set()
        for index, one in enumerate(found.volume):
            place = f"{'Volumes' if as_json else 'volume'}[{index}]"
            for name in (one.device, one.volume_id and canonical_id(one.volume_id)):
                if name and name in seen:
                    raise FieldError(place, f"{name} is declared twice")
                seen.add(name or "")
            if not one.device and not one.volume_id:
                raise FieldError(f"{place}.device", "neither a device nor a volume-id is there")
            _check_fields(one, place)
            if not as_json:
                # AWS knows what it has sold; limits may have grown since.
                _check_together(one, place)
        if found.quota is not None:
            _check_quota(found.quota, found.volume)
    return msgspec.structs.replace(found, where=where)


def _check_types(document: Mapping[str, object]) -> None:
    """The types by name, which the decoder's own message does not list."""
    volumes = document.get("volume")
    for index, one in enumerate(volumes if isinstance(volumes, list) else ()):
        kind = one.get("type") if isinstance(one, dict) else None
        if isinstance(kind, str) and kind not in KINDS:
            near = near_names(kind, KINDS, most=1)
            said = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(KINDS)}"
            raise FieldError(f"volume[{index}].type", f"no type {kind[:40]!r}; {said}")


def _check_quota(quota: Quota, volumes: Sequence[DeclaredVolume]) -> None:
    """Each volume against it. That all together are more is no mistake in the file: the figures show it."""
    elsewhere = quota.elsewhere_iops or 0
    if quota.iops is None:
        if elsewhere:
            raise FieldError("quota.elsewhere-iops", "it is part of iops, which is not given")
        return
    if elsewhere > quota.iops:
        raise FieldError("quota.elsewhere-iops", f"{elsewhere:,} is more than the {quota.iops:,} of iops")
    left = quota.iops - elsewhere
    for index, one in enumerate(volumes):
        if one.type in PROVISIONED and one.iops is not None and one.iops > left:
            words = f"{one.iops:,} is more than the {left:,} that the quota leaves to this host"
            raise FieldError(f"volume[{index}].iops", words)


def _check_fields(one: DeclaredVolume, place: str) -> None:
    for field, allowed in _ALLOWED.items():
        if getattr(one, field.replace("-", "_")) is not None and one.type not in allowed:
            raise FieldError(f"{place}.{field}", f"a volume of type {one.type} has none")
    if one.type in VOLUME_TYPES and one.gib is None:
        raise FieldError(f"{place}.gib", f"a volume of type {one.type} needs its size")
    if one.type in AZURE_DISKS:
        _check_azure(one, place)
        return
    if one.type in GOOGLE_DISKS:
        _check_google(one, place)
        return
    if one.iops is not None and one.iops > MOST_IOPS[one.type]:
        raise FieldError(f"{place}.iops", f"{one.iops:,} is more than the {MOST_IOPS[one.type]:,} of {one.type}")
    if one.throughput_mb_per_s is not None and one.throughput_mib_per_s is not None:
        raise FieldError(f"{place}.throughput-mb-per-s", "it is given in MiB/s, too")
    bought = one.mib_per_s
    if bought is not None and bought > MOST_MIB_PER_S[one.type]:
        most = MOST_MIB_PER_S[one.type]
        raise FieldError(f"{place}.throughput-mib-per-s", f"{bought:,.0f} is more than the {most:,} of {one.type}")


def _check_azure(one: DeclaredVolume, place: str) -> None:
    """A tier by name or size; of the types that are bought by figures, each within its type."""
    if one.is_cached:
        tier = cloud_disks.find_tier(one.type, one.tier, one.gib)
        size = one.gib or (tier.gib if tier else 0)
        if one.type in cloud_disks.MOST:
            raise FieldError(f"{place}.host-caching", f"a disk of type {one.type} has no host caching")
        if size > LARGEST_CACHED_GIB:
            raise FieldError(f"{place}.host-caching", "a disk of 4 TiB or more has no host caching")
    if one.type not in cloud_disks.MOST:
        if one.tier is None and one.gib is None:
            raise FieldError(f"{place}.gib", f"a disk of type {one.type} needs its size or its tier")
        if cloud_disks.find_tier(one.type, one.tier, one.gib) is None:
            what = f"tier {one.tier}" if one.tier else f"disk of {one.gib:,} GiB"
            raise FieldError(f"{place}.{'tier' if one.tier else 'gib'}", f"{one.type} has no {what}")
        for field in ("iops", "throughput-mb-per-s"):
            if getattr(one, field.replace("-", "_")) is not None:
                raise FieldError(f"{place}.{field}", f"a disk of type {one.type} has what its tier has")
        return
    if one.tier is not None:
        raise FieldError(f"{place}.tier", f"a disk of type {one.type} has none")
    most_iops, most_mb = cloud_disks.MOST[one.type]
    bounds: list[tuple[float, str]] = [(most_iops, one.type)]
    if one.gib is not None:
        each, least = cloud_disks.AZURE_BY_SIZE[one.type]
        bounds.append((max(least, one.gib * each), f"{one.type} with {one.gib:,} GiB"))
    _check_most(f"{place}.iops", one.iops, bounds)
    bounds = [(most_mb, one.type)]
    if one.iops is not None:
        rate, base = cloud_disks.MB_PER_IOPS[one.type]
        bounds.append((max(base, one.iops * rate), f"{one.type} with {one.iops:,} IOPS"))
    _check_most(f"{place}.throughput-mb-per-s", one.throughput_mb_per_s, bounds)


def _check_google(one: DeclaredVolume, place: str) -> None:
    """The size of what is sold by size; of Hyperdisk what was bought, within the bounds of its type."""
    if one.throughput_mb_per_s is not None and one.throughput_mib_per_s is not None:
        raise FieldError(f"{place}.throughput-mb-per-s", "it is given in MiB/s, too")
    if one.type in BY_PURCHASE:
        _check_hyperdisk(one, place)
        return
    if one.gib is None:
        raise FieldError(f"{place}.gib", f"a disk of type {one.type} needs its size")
    for field in ("iops", "throughput-mib-per-s", "throughput-mb-per-s"):
        if getattr(one, field.replace("-", "_")) is not None:
            raise FieldError(f"{place}.{field}", f"a disk of type {one.type} has what its size gives it")


def _check_hyperdisk(one: DeclaredVolume, place: str) -> None:
    known = HYPERDISKS.get(one.type)
    if known is None:
        return
    if one.gib is not None and known.least_gib and known.most_gib and not known.least_gib <= one.gib <= known.most_gib:
        raise FieldError(f"{place}.gib", f"a disk of type {one.type} has {known.least_gib:,} to {known.most_gib:,} GiB")
    # Where one figure follows from the other, it cannot be more than that brings.
    iops, mib = bought_figures(one.type, one.iops, None), bought_figures(one.type, None, one.mib_per_s)
    bounds: list[tuple[float, str]] = [(known.most_iops, one.type)]
    if mib[0] is not None:
        bounds.append((mib[0], f"{one.type} with {one.mib_per_s:,.0f} MiB/s"))
    if one.gib is not None and known.iops_per_gib is not None:
        bounds.append((one.gib * known.iops_per_gib, f"{one.type} with {one.gib:,} GiB"))
    _check_most(f"{place}.iops", one.iops, bounds)
    bounds = [(known.most_mib, one.type)]
    if iops[1] is not None:
        bounds.append((iops[1], f"{one.type} with {one.iops:,} IOPS"))
    _check_most(f"{place}.throughput-mib-per-s", one.mib_per_s, bounds)


def _check_most(field: str, given: float | None, bounds: Iterable[tuple[float, str]]) -> None:
    """Against the smallest of several bounds, each with what has it."""
    most, of = min(bounds)
    if given is not None and given > most:
        raise FieldError(field, f"{given:,.0f} is more than the {most:,.0f} of {of}")


def _check_together(one: DeclaredVolume, place: str) -> None:
    """Size, IOPS and MiB/s against each other."""
    if one.type in (*AZURE_DISKS, *GOOGLE_DISKS):
        return
    low, high = SIZES_GIB.get(one.type, (1, LARGEST_GIB))
    if one.gib is not None and not low <= one.gib <= high:
        raise FieldError(f"{place}.gib", f"a volume of type {one.type} has {low:,} to {high:,} GiB")
    if one.iops is not None:
        _check_iops(one.type, one.iops, one.gib or 0, f"{place}.iops")
    bought, least = one.mib_per_s, LEAST_MIB_PER_S.get(one.type, 0)
    if bought is not None:
        field = f"{place}.throughput-mib-per-s"
        needed = math.ceil(bought * IOPS_PER_MIB[one.type])
        if bought < least:
            raise FieldError(field, f"{bought:,.0f} is less than the {least:,} that {one.type} has at least")
        if needed > (one.iops or LEAST_IOPS[one.type]):
            raise FieldError(field, f"{bought:,.0f} take {needed:,} IOPS at least")


def _check_iops(kind: str, iops: int, gib: int, field: str) -> None:
    least, each = LEAST_IOPS[kind], IOPS_PER_GIB[kind]
    if iops < least:
        raise FieldError(field, f"{iops:,} is less than the {least:,} that {kind} has at least")
    # What comes with the smallest of volumes needs no size.
    if iops > least and iops > each * gib:
        raise FieldError(field, f"{iops:,} take {-(-iops // each):,} GiB at least ({each:,} for each)")


_EBS = frozenset({*VOLUME_TYPES, "standard"})
_AZURE = frozenset(AZURE_DISKS)
_GOOGLE = frozenset(GOOGLE_DISKS)
_DRIVE = frozenset({"drive"})
_ALLOWED = {
    "gib": _EBS | _AZURE | _GOOGLE,
    "tier": _AZURE,
    "iops": frozenset(MOST_IOPS) | _AZURE | _GOOGLE,
    "throughput-mib-per-s": frozenset(MOST_MIB_PER_S) | _GOOGLE,
    "throughput-mb-per-s": frozenset(MOST_MIB_PER_S) | _AZURE | _GOOGLE,
    "read-mb-per-s": _DRIVE,
    "write-mb-per-s": _DRIVE,
    "read-iops": _DRIVE,
    "write-iops": _DRIVE,
    "host-caching": _AZURE,
    "multi-attach": frozenset({"io1", "io2"}),
}


def check_volume(one: DeclaredVolume, place: str) -> None:
    """Whether one volume can be bought as it is. Raises InvalidInputError that names the field below ``place``."""
    try:
        _check_fields(one, place)
        _check_together(one, place)
    except FieldError as error:
        raise InvalidInputError(f"field {error.field}: {error.message}") from error


def canonical_id(text: str) -> str:
    """``vol-0123…`` for what a volume's serial number says, ``vol0123…``; the text itself for anything else."""
    found = re.fullmatch(r"vol-?([0-9a-f]{8,32})", text, re.ASCII)
    return f"vol-{found[1]}" if found else text
