"""``--instance-types FILE``: what `aws ec2 describe-instance-types` or `az vm list-skus -o json` printed.

The freshest source: each figure that it has of a type goes before the tables of the package.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError
from advisor.host.files import open_given
from advisor.limits.machines import BURST_SECONDS, Machine, NetworkLimits, VolumeLimits

# Files that a user hands to limits and size: read with a bound, decoded, and refused with the file and the field.

MAX_BYTES = 64 << 20
MAX_LINE_DOTS = 256
"""tomllib takes the square of a dotted key's length."""


class FieldError(Exception):
    """``field`` as a user finds it in the file."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def read_input(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file. Raises InvalidInputError that names it, PermissionDeniedError."""
    try:
        with open_given(path) as file:
            data = file.read(max_bytes + 1)
    except PermissionError as error:
        raise PermissionDeniedError(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    if len(data) > max_bytes:
        raise InvalidInputError(f"{path}: larger than {max_bytes >> 20} MiB")
    return data


@contextmanager
def decoding(where: str, kind: str, hint: str) -> Iterator[None]:
    """Whatever is wrong with the text of a file becomes an InvalidInputError that names file and field."""
    try:
        yield
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{where}: {field_words(error)}", hint=hint) from error
    except FieldError as error:
        raise InvalidInputError(f"{where}: field {error.field}: {error.message}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{where}: not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise InvalidInputError(f"{where}: nested too deeply") from error
    except (tomllib.TOMLDecodeError, msgspec.DecodeError, ValueError) as error:
        raise InvalidInputError(f"{where}: not valid {kind}: {error}", hint=hint) from error


def toml_document(data: bytes) -> dict[str, Any]:
    """A TOML document. Raises ValueError, as tomllib does."""
    if any(line.count(b".") > MAX_LINE_DOTS for line in data.split(b"\n")):
        raise ValueError("a line is nested too deeply")
    return tomllib.loads(data.decode("utf-8-sig"))


def is_json(data: bytes, first: bytes = b"{") -> bool:
    """Whether the first character that is no blank opens a JSON document; TOML starts with a name or a table."""
    return data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(tuple(first[at : at + 1] for at in range(len(first))))


def field_words(error: msgspec.ValidationError) -> str:
    """The field and what is wrong with it."""
    message, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    unknown = re.search(r"unknown field `([^`]*)`", message)
    if unknown:
        name = f"{field}.{unknown[1]}" if field else unknown[1]
        return f"field {name}: there is no such field"
    missing = re.search(r"missing required field `([^`]*)`", message)
    if missing:
        name = f"{field}.{missing[1]}" if field else missing[1]
        return f"field {name}: it is missing"
    return f"field {field}: {message}" if field else message


_HINT = "write it with: aws ec2 describe-instance-types > FILE, or: az vm list-skus -l REGION -o json > FILE"
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class _EbsOptimized(msgspec.Struct, frozen=True):
    baseline_throughput: Amount | None = msgspec.field(name="BaselineThroughputInMBps", default=None)
    maximum_throughput: Amount | None = msgspec.field(name="MaximumThroughputInMBps", default=None)
    baseline_iops: Amount | None = msgspec.field(name="BaselineIops", default=None)
    maximum_iops: Amount | None = msgspec.field(name="MaximumIops", default=None)


class _Ebs(msgspec.Struct, frozen=True):
    optimized: _EbsOptimized | None = msgspec.field(name="EbsOptimizedInfo", default=None)


class _Card(msgspec.Struct, frozen=True):
    baseline: Amount | None = msgspec.field(name="BaselineBandwidthInGbps", default=None)
    peak: Amount | None = msgspec.field(name="PeakBandwidthInGbps", default=None)


class _Network(msgspec.Struct, frozen=True):
    cards: tuple[_Card, ...] = msgspec.field(name="NetworkCards", default=())


class _Cpus(msgspec.Struct, frozen=True):
    count: int | None = msgspec.field(name="DefaultVCpus", default=None)


class _Memory(msgspec.Struct, frozen=True):
    mib: int | None = msgspec.field(name="SizeInMiB", default=None)


class _Ec2Type(msgspec.Struct, frozen=True):
    name: Name = msgspec.field(name="InstanceType")
    ebs: _Ebs | None = msgspec.field(name="EbsInfo", default=None)
    network: _Network | None = msgspec.field(name="NetworkInfo", default=None)
    cpus: _Cpus | None = msgspec.field(name="VCpuInfo", default=None)
    memory: _Memory | None = msgspec.field(name="MemoryInfo", default=None)
    hypervisor: str | None = msgspec.field(name="Hypervisor", default=None)


class _Capability(msgspec.Struct, frozen=True):
    name: str
    value: str | None = None


class _Sku(msgspec.Struct, frozen=True):
    name: Name
    kind: str = msgspec.field(name="resourceType")
    capabilities: tuple[_Capability, ...] | None = None


def read_machines(path: Path) -> Mapping[str, Machine]:
    """The machines of the file, by name. Raises InvalidInputError that names file and field, PermissionDeniedError."""
    data = read_input(path)
    day = datetime.datetime.fromtimestamp(path.stat().st_mtime, tz=datetime.UTC).date().isoformat()
    return parse_machines(data, str(path), day)


def parse_machines(data: bytes, where: str, day: str) -> Mapping[str, Machine]:
    """As `read_machines`, from the bytes; ``day`` is the date of the file."""
    with decoding(where, "JSON", _HINT):
        found = _parse_machines(msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")), where, day)
        if not found:
            raise FieldError("InstanceTypes", "no instance type and no VM size is there")
        return {one.name: one for one in found}


def _parse_machines(document: Any, where: str, day: str) -> list[Machine]:
    """One object with ``InstanceTypes``, a list of them (``--query``), or Azure's list of SKUs."""
    if isinstance(document, dict) and "InstanceTypes" in document:
        return [_of_ec2(one, where, day) for one in msgspec.convert(document, _Ec2Answer).types]
    rows = document.get("value") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise FieldError("InstanceTypes", "it is missing, and the file is no list of SKUs")
    if any(isinstance(row, dict) and "InstanceType" in row for row in rows):
        return [_of_ec2(one, where, day) for one in msgspec.convert(rows, tuple[_Ec2Type, ...])]
    skus = msgspec.convert(rows, tuple[_Sku, ...])
    return [_of_azure(one, where, day) for one in skus if one.kind == "virtualMachines"]


class _Ec2Answer(msgspec.Struct, frozen=True):
    types: tuple[_Ec2Type, ...] = msgspec.field(name="InstanceTypes")


def _of_ec2(one: _Ec2Type, where: str, day: str) -> Machine:
    source = f"{where} of {day} (aws ec2 describe-instance-types)"
    return Machine(
        name=one.name,
        provider="aws",
        vcpus=one.cpus.count if one.cpus else None,
        memory_mib=one.memory.mib if one.memory else None,
        volumes=_parse_ebs(one.ebs.optimized, source, day) if one.ebs and one.ebs.optimized else None,
        network=_parse_network(one.network.cards, source, day) if one.network else None,
        hypervisor=one.hypervisor,
    )


def _parse_ebs(one: _EbsOptimized, source: str, day: str) -> VolumeLimits | None:
    base, most = (one.baseline_throughput, one.baseline_iops), (one.maximum_throughput, one.maximum_iops)
    if base == (None, None):
        if most == (None, None):
            return None
        return VolumeLimits(*most, source, day, is_maximum=True, is_declared=True)
    bursts = any((high or 0) > (low or 0) for low, high in zip(base, most, strict=True))
    return VolumeLimits(
        *base,
        source,
        day,
        burst_mb_per_s=most[0] if bursts else None,
        burst_iops=most[1] if bursts else None,
        burst_seconds=BURST_SECONDS if bursts else None,
        is_declared=True,
    )


def _parse_network(cards: tuple[_Card, ...], source: str, day: str) -> NetworkLimits | None:
    base = sum(card.baseline or 0 for card in cards)
    peak = sum(card.peak or 0 for card in cards)
    if not base:
        return None
    return NetworkLimits(base * 1000, source, day, peak * 1000 if peak > base else None, is_declared=True)


def _of_azure(one: _Sku, where: str, day: str) -> Machine:
    source = f"{where} of {day} (az vm list-skus)"
    has = {each.name: each.value for each in one.capabilities or ()}
    iops, bytes_per_s = (_parse_figure(one, has, name) for name in ("UncachedDiskIOPS", "UncachedDiskBytesPerSecond"))
    memory = _parse_figure(one, has, "MemoryGB")
    cpus, disks = (_parse_figure(one, has, name) for name in ("vCPUs", "MaxDataDiskCount"))
    known = VolumeLimits(bytes_per_s / 1e6 if bytes_per_s else None, iops or None, source, day, is_declared=True)
    return Machine(
        name=one.name,
        provider="azure",
        vcpus=int(cpus) if cpus else None,
        memory_mib=round(memory * 1024) if memory else None,
        volumes=known if iops or bytes_per_s else None,
        most_disks=int(disks) if disks else None,
        premium={"True": True, "False": False}.get(has.get("PremiumIO") or ""),
    )


def _parse_figure(one: _Sku, has: Mapping[str, str | None], name: str) -> float | None:
    text = has.get(name)
    try:
        return None if text is None else msgspec.convert(text, Amount, strict=False)
    except msgspec.ValidationError as error:
        raise FieldError(f"{one.name}.capabilities.{name}", f"expected a number, found {text}") from error
