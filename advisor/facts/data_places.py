"""Where a storage service keeps its data, as its packages lay it out: directories and block devices by its unit.

Only paths are read: configuration files of databases and object stores may hold passwords, so that of PostgreSQL alone
is looked into, for one key. Sources: postgresql-common (pg_wrapper(1)), ceph-volume(8), cephadm, MySQL and MariaDB
packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

_CEPH: Final = lazy_regex(r"ceph-osd@(\d{1,6})|ceph-([0-9a-f-]{36})@osd\.(\d{1,6})", re.ASCII)
_CLUSTER: Final = lazy_regex(r"postgresql@(\d{1,2}(?:\.\d)?)-([\w-]{1,60})", re.ASCII)
_VERSION: Final = lazy_regex(r"postgresql-(\d{1,2}(?:\.\d)?)", re.ASCII)
_DATA: Final = lazy_regex(r"^[ \t]*data_directory[ \t]*=?[ \t]*'([^'\n]+)'", re.MULTILINE)


def data_places(host: Host, unit: str) -> tuple[str, ...]:
    """Directories and block devices (below /dev) of a unit's data; none where its packages say nothing."""
    return tuple(dict.fromkeys(_find_places(host, unit.removesuffix(".service"))))


def _find_places(host: Host, name: str) -> Iterator[str]:
    if found := _CEPH.match(name):
        place = f"/var/lib/ceph/osd/ceph-{found[1]}" if found[1] else f"/var/lib/ceph/{found[2]}/osd.{found[3]}"
        device = host.real(f"{place}/block")
        # BlueStore keeps its data on the device that this link names; FileStore below the directory.
        yield place if isinstance(device, Missing) else device
    elif found := _CLUSTER.match(name):
        text = host.read(f"/etc/postgresql/{found[1]}/{found[2]}/postgresql.conf")
        given = None if isinstance(text, Missing) else _DATA.search(text)
        yield given[1] if given else f"/var/lib/postgresql/{found[1]}/{found[2]}"
    elif found := _VERSION.match(name):
        yield f"/var/lib/pgsql/{found[1]}/data"
    elif name == "postgresql" and host.exists("/var/lib/pgsql/data"):
        yield "/var/lib/pgsql/data"
    elif re.match(r"(mysqld?|mariadbd?)(@[\w-]+)?$", name, re.ASCII) and host.exists("/var/lib/mysql"):
        yield "/var/lib/mysql"
