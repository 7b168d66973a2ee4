"""Storage software with rules of its own for the host: what is installed, and what of its settings matters.

Sources: the paths of the packages of IBM Storage Scale (/usr/lpp/mmfs), Apache Cassandra and DataStax
(cassandra.yaml), and Ceph (/var/lib/ceph; the options of doc/rados/configuration/mclock-config-ref.rst).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from advisor.facts.printable import printable
from advisor.facts.rare_subjects import CASSANDRA, CEPH, DECLUSTERED
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

CASSANDRA_DATA = "/var/lib/cassandra/data"
"""Taken to lie where the packages put it: the configuration may hold passwords, and is never read."""
CEPH_CONFIG = ("ceph", "--connect-timeout", "5", "config", "dump", "--format", "json")
_CAPACITY = lazy_regex(r"osd_mclock_max_capacity_iops_(hdd|ssd)")
_MAX = 4096


class OsdCapacity(msgspec.Struct, frozen=True):
    """What Ceph's scheduler (mClock) believes an OSD to do, in IOPS of 4 KiB; ``medium`` is hdd or ssd."""

    osd: str
    medium: str
    iops: float


class StorageSoftware(msgspec.Struct, frozen=True):
    """``declustered_raid``: IBM Storage Scale's own RAID. ``cassandra`` is the directory of its data; None where it is
    not installed. ``osd_capacities`` are those that Ceph's configuration holds."""

    declustered_raid: bool = False
    cassandra: str | None = None
    osd_capacities: tuple[OsdCapacity, ...] = ()


def parse_osd_capacities(text: str) -> tuple[OsdCapacity, ...]:
    """Of ``ceph config dump --format json`` the capacities of OSDs. Raises ValueError for what is no list."""
    try:
        entries = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError("ceph printed no JSON") from error
    if not isinstance(entries, list):
        raise ValueError("ceph printed no list of options")
    return tuple(_capacities(entries[:_MAX]))


def _capacities(entries: list[object]) -> Iterator[OsdCapacity]:
    for one in entries:
        if isinstance(one, dict):
            section, name, value = (one.get(key) for key in ("section", "name", "value"))
            found = _CAPACITY.fullmatch(name) if isinstance(name, str) else None
            number = re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", value, re.ASCII) if isinstance(value, str) else None
            if found and number and isinstance(section, str):
                yield OsdCapacity(printable(section[:80]), found[1], float(number[0]))


def read_software(host: Host, unknown: Unknowns) -> StorageSoftware | None:
    """None where none of it is installed; Ceph is asked only on a host that has OSDs."""
    cassandra = CASSANDRA_DATA if any(map(host.exists, CASSANDRA)) else None
    found = StorageSoftware(host.exists(DECLUSTERED), cassandra, _read_capacities(host, unknown))
    return found if found != StorageSoftware() else None


def _read_capacities(host: Host, unknown: Unknowns) -> tuple[OsdCapacity, ...]:
    places = [f"{CEPH}/{name}" for name in host.names(CEPH)]
    if not any(one.startswith(("ceph-", "osd.")) for place in places for one in host.names(place)):
        return ()
    if host.is_live and not host.is_root:
        unknown.note("software.osd_capacities", "ceph config dump needs root's key")
        return ()
    done = host.run(CEPH_CONFIG)
    if isinstance(done, Missing) or not done.ok:
        unknown.note("software.osd_capacities", done.why if isinstance(done, Missing) else f"ceph returned {done.rc}")
        return ()
    try:
        return parse_osd_capacities(done.stdout)
    except ValueError as error:
        unknown.note("software.osd_capacities", str(error))
        return ()
