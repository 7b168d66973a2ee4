"""What a host serves, for those programs that a profile is named after: seen to run, never guessed from packages.

A unit of systemd that runs has a link in /run/systemd/units (since version 240); before, its control group has a
directory in system.slice. Names of units: the packages of Debian, Fedora, openSUSE and of the projects themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from advisor.facts.kernel_services import NFSD_THREADS
from advisor.facts.network_storage import NetworkStorage
from advisor.facts.printable import printable
from advisor.host import Host
from advisor.host.patterns import lazy_regex

RUNNING_UNITS: Final = "/run/systemd/units"
SLICES: Final = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
MAX_SIGNS: Final = 8

ROLES: Final[Mapping[str, re.Pattern[str]]] = {
    "postgresql": lazy_regex(r"(postgresql(@.+|-[0-9.]+)?|patroni(@.+)?)\.service"),
    "mysql": lazy_regex(r"(mysqld?|mariadbd?)(@.+)?\.service"),
    "redis": lazy_regex(r"(redis|valkey)(-server|_[0-9]+)?(@.+)?\.service"),
    "nfs-server": lazy_regex(r"nfs-(kernel-)?server\.service"),
    "ceph-osd": lazy_regex(r"ceph-(osd@[0-9]+|[0-9a-f-]{36}@osd\.[0-9]+)\.service"),
    "minio": lazy_regex(r"minio(@.+)?\.service"),
    "kafka": lazy_regex(r"((confluent-)?kafka|confluent-server)(@.+)?\.service"),
    "kvm-host": lazy_regex(r"(libvirtd|virtqemud|pvedaemon)\.service|machine-qemu.+\.scope"),
    "web-server": lazy_regex(r"(nginx|apache2|httpd|haproxy|caddy|traefik|envoy|varnish|lighttpd)(@.+)?\.service"),
}
"""The units that show each role, by the name of its profile. ``nfs-client`` is seen by its mounts."""


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
    signs["nfs-client"] = [one.name for one in network_storage if one.kind == "nfs"]
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
