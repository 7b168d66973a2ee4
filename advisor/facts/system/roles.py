"""What a host serves, for those programs that a profile is named after: seen to run, never guessed from packages.

A unit of systemd that runs has a link in /run/systemd/units (since version 240); before, its control group has a
directory in system.slice. Names of units: the packages of Debian, Fedora, openSUSE and of the projects themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.facts.remote.network_storage import NetworkStorage
from advisor.facts.text import printable
from advisor.facts.unknown import CASSANDRA, CEPH, DECLUSTERED, Unknowns
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

# Ports on which something listens, by ss(8) of iproute2.

LISTENERS = ("ss", "-Htuln")
"""TCP and UDP, listening, as numbers, without a heading."""
# Protocol, state, two queues, then address and port: 0.0.0.0:22, [::]:22, *:22, 127.0.0.53%lo:53.
_LINE = lazy_regex(r"(?m)^(?:tcp|udp)\s+\S+\s+\d+\s+\d+\s+\S*:(\d{1,5})\s", re.ASCII)


def parse_listeners(text: str) -> frozenset[int]:
    """The local ports of a listing; lines that are not understood are left out."""
    return frozenset(int(port) for port in _LINE.findall(text))


# Storage that the kernel itself serves, with threads that no unit of systemd can bind: NFS, and iSCSI by SCST.

NFSD_THREADS = "/proc/fs/nfsd/threads"
EXPORTS = ("/var/lib/nfs/etab", "/proc/fs/nfs/exports", "/etc/exports")
"""What is exported, and where that is not listed what is to be (exports(5)): a path, blanks, clients."""
SCST = "/sys/kernel/scst_tgt"
MAX_EXPORTS = 64

_EXPORT = lazy_regex(r'^(?:"(/[^"\n]*)"|(/\S*))\s', re.MULTILINE)


class KernelServices(msgspec.Struct, frozen=True):
    """``nfs_exports`` are the paths that a running nfsd serves; ``nfsd`` is None where that it runs is unknown."""

    nfsd: bool | None = None
    nfs_exports: tuple[str, ...] = ()
    scst: bool = False


def read_kernel_services(host: Host) -> KernelServices:
    """From /proc and /sys; /etc/exports counts only where nfsd has threads."""
    threads = host.read_int(NFSD_THREADS)
    runs = None if isinstance(threads, Missing) else threads > 0
    if isinstance(threads, Missing) and threads.is_absent:
        runs = False
    return KernelServices(runs, _list_exports(host) if runs else (), host.exists(SCST))


def _list_exports(host: Host) -> tuple[str, ...]:
    for path in EXPORTS:
        text = host.read(path)
        if not isinstance(text, Missing) and (found := parse_exports(text)):
            return found
    return ()


def parse_exports(text: str) -> tuple[str, ...]:
    """The paths of an exports table, each once, in its order; octal escapes as the kernel writes them are undone."""
    paths = (first or second for first, second in _EXPORT.findall(text))
    plain = (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), path) for path in paths)
    return tuple(dict.fromkeys(map(printable, plain)))[:MAX_EXPORTS]


RUNNING_UNITS = "/run/systemd/units"
SLICES = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
MAX_SIGNS = 8

# Software collections of RHEL 7 put their own name before the unit's (rh-postgresql10-postgresql, httpd24-httpd).
_SCL = r"(?:(?:rh-[a-z]+|[a-z]+)[0-9]+-)?"


def _units(names: str, others: str = "") -> re.Pattern[str]:
    """Services of these names, instances of a template and collections included; ``others`` are whole names."""
    return lazy_regex(rf"{_SCL}(?:{names})(?:@.+)?\.service" + (f"|{others}" if others else ""))


ROLES: Mapping[str, re.Pattern[str]] = {
    # EnterpriseDB: edb-as-16, edb-as@16-main; Postgres Pro: postgrespro-std-16.
    "postgresql": _units(
        r"postgresql(?:-?[0-9.]+)?|patroni|edb-as(?:-[0-9.]+)?|postgrespro-(?:std|ent|1c)-[0-9.]+|pgautofailover",
        r"snap\.charmed-postgresql\.patroni\.service",
    ),
    # Percona Server, its XtraDB Cluster (mysql@bootstrap) and MySQL's own packages have the names of MySQL.
    "mysql": _units(r"mysqld?|mariadbd?|mysqld?-[0-9.]+|percona-server", r"snap\.charmed-mysql\.mysqld\.service"),
    # Amazon Linux 2023: redis6.
    "redis": _units(
        r"(?:redis[0-9]*|valkey[0-9]*|keydb|redis-stack)(?:-server)?(?:_[0-9]+)?", r"snap\.redis\.server\.service"
    ),
    # Not nfs-ganesha, which serves from user space: it has neither nfsd's threads nor its pools.
    "nfs-server": _units(r"nfs-(?:kernel-)?server"),
    # cephadm runs OSDs in containers, each with a unit of its cluster's id.
    "ceph-osd": lazy_regex(r"ceph-(?:osd@[0-9]+|[0-9a-f-]{36}@osd\.[0-9]+)\.service|snap\.microceph\.osd\.service"),
    "minio": _units(r"minio(?:-server|-?[0-9]+)?|aistor"),
    "kafka": _units(
        r"(?:confluent-|apache-)?kafka(?:-server|-broker)?|confluent-server",
        r"snap\.(?:charmed-)?kafka\.(?:daemon|kafka)\.service",
    ),
    "kvm-host": lazy_regex(
        r"(?:libvirtd|virtqemud|pvedaemon|vdsmd|(?:openstack-)?nova-compute)\.service|machine-qemu.+\.scope"
    ),
    "web-server": _units(
        r"nginx(?:-debug)?|openresty|angie|freenginx|apache2|httpd|haproxy|caddy(?:-api)?|traefik|envoy|varnish|squid"
        r"|lighttpd|lsws|lshttpd|openlitespeed|trafficserver|hitch|h2o"
    ),
}
"""The units that show each role, by the name of its profile."""
NFS_CLIENT = "nfs-client"
"""The role that is seen by its mounts."""


def read_roles(host: Host, network_storage: Iterable[NetworkStorage]) -> Mapping[str, tuple[str, ...]]:
    """The roles of a host, each with the signs of it: units that run, mount points, threads of the kernel."""
    found = {role: tuple(signs)[:MAX_SIGNS] for role, signs in _find_signs(host, network_storage).items()}
    return {role: signs for role, signs in found.items() if signs}


def _find_signs(host: Host, network_storage: Iterable[NetworkStorage]) -> Mapping[str, Iterable[str]]:
    units = sorted(set(list_running_units(host)))
    signs: dict[str, list[str]] = {}
    for role, pattern in ROLES.items():
        signs[role] = [printable(unit) for unit in units if pattern.fullmatch(unit)]
    threads = host.read_int(NFSD_THREADS)
    if not signs["nfs-server"] and isinstance(threads, int) and threads > 0:
        signs["nfs-server"] = [f"{threads} threads of nfsd"]
    signs[NFS_CLIENT] = [one.name for one in network_storage if one.kind == "nfs"]
    return signs


def list_running_units(host: Host) -> Iterator[str]:
    """Services and scopes that run, by name."""
    links = host.names(RUNNING_UNITS)
    if links:
        yield from (name.removeprefix("invocation:") for name in links if name.startswith("invocation:"))
        return
    for place in SLICES:
        for name in host.names(place):
            # Instances of a template are in a slice of their own.
            yield from host.names(f"{place}/{name}") if name.endswith(".slice") else (name,)


# Storage software with rules of its own for the host: what is installed, and what of its settings matters.

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
