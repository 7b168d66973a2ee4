"""What a host serves, for those programs that a profile is named after: seen to run, never guessed from packages.

A unit of systemd that runs has a link in /run/systemd/units (since version 240); before, its control group has a
directory in system.slice. Names of units: the packages of Debian, Fedora, openSUSE and of the projects themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.kernel_services import NFSD_THREADS
from advisor.facts.network_storage import NetworkStorage
from advisor.facts.printable import printable
from advisor.host import Host
from advisor.host.patterns import lazy_regex

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
