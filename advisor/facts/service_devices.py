"""Which links, mount points and block devices a service uses, as far as the host shows it.

They come from the unit's own settings (WorkingDirectory, RequiresMountsFor), from the directory in which its main
process works and the files and devices that it holds open, and from where its packages keep its data; links from the
local addresses of its sockets. Only root sees another user's open files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from advisor.facts.mounts import read_mounts
from advisor.facts.services import Service
from advisor.host import Host, Missing, lazy_regex

_SYSTEM_MOUNTS = ("/", "/boot", "/usr", "/var", "/tmp", "/run", "/dev", "/proc", "/sys", "/home", "/etc")
_LOG = lazy_regex(r"/logs?(/|$)|\.log(\.[0-9]+)?( \(deleted\))?$")


def with_devices(host: Host, services: Iterable[Service]) -> tuple[Service, ...]:
    """The services with their ``devices`` filled in: mount points, then links, each sorted."""
    mounts = _mount_points(host)
    return tuple(msgspec.structs.replace(one, devices=_find_devices(host, one, mounts)) for one in services)


def _find_devices(host: Host, service: Service, mounts: tuple[str, ...]) -> tuple[str, ...]:
    opened = _open_paths(host, service.main_pid)
    paths = [*_unit_paths(host, service.unit), *opened]
    used = {mount for path in paths if (mount := _mount_of(path, mounts)) is not None}
    own = data_places(host, service.unit)
    used |= {mount for path in own if (mount := _mount_of(path, mounts) or _any_mount_of(host, path)) is not None}
    devices = {name for path in (*opened, *own) if (name := _block_device(host, path)) is not None}
    return (*sorted(used), *sorted(devices), *_links_of(host, service.main_pid))


def serves_data(host: Host, service: Service) -> bool:
    """Whether a process works on a mount point for data, or on a block device, and listens on some link as well."""
    opened = _open_paths(host, service.main_pid)
    mounts = _mount_points(host) if opened else ()
    works = any(_mount_of(path, mounts) or _block_device(host, path) for path in opened)
    # Whether one of its TCP sockets waits for connections (state 0A of proc_pid_net(5)) from other hosts.
    if not works:
        return False
    directory = f"/proc/{service.main_pid}/fd"
    targets = [host.readlink(f"{directory}/{name}") for name in host.names(directory)]
    inodes = {target[8:-1] for target in targets if isinstance(target, str) and target.startswith("socket:[")}
    for table in ("tcp", "tcp6") if inodes else ():
        for line in host.read_or_empty(f"/proc/{service.main_pid}/net/{table}").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == "0A" and fields[9] in inodes and not _is_loopback(fields[1]):
                return True
    return False


def _block_device(host: Host, path: str) -> str | None:
    """The kernel's name of a disk, partition or volume below /dev; None for anything else there (a terminal)."""
    name = path.removeprefix("/dev/")
    if name == path or not name:
        return None
    if name.startswith("mapper/"):
        real = host.real(path)
        name = real.removeprefix("/dev/") if isinstance(real, str) else name
    return name if host.exists(f"/sys/class/block/{name.replace('/', '!')}") else None


def _any_mount_of(host: Host, path: str) -> str | None:
    """The mount point below which a data directory lies, also one of the system's: the data is there all the same."""
    if path.startswith("/dev/"):
        return None
    mounts = read_mounts(host)
    targets = {one.target for one in mounts if one.source.startswith("/dev/")} if isinstance(mounts, tuple) else set()
    return max((one for one in targets if path == one or path.startswith(one.rstrip("/") + "/")), key=len, default=None)


def _mount_points(host: Host) -> tuple[str, ...]:
    """Mount points of block devices that hold data of their own, longest first."""
    text = host.read("/proc/self/mountinfo")
    found: set[str] = set()
    for line in "" if isinstance(text, Missing) else text.splitlines():
        left, _, right = line.partition(" - ")
        fields, source = left.split(" "), right.split(" ")
        if len(fields) > 4 and len(source) > 1 and source[1].startswith("/dev/"):
            found.add(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
    return tuple(sorted(found - set(_SYSTEM_MOUNTS), key=lambda path: (-len(path), path)))


def _mount_of(path: str, mounts: tuple[str, ...]) -> str | None:
    return next((mount for mount in mounts if path == mount or path.startswith(mount + "/")), None)


def _unit_paths(host: Host, unit: str) -> list[str]:
    done = host.run(("systemctl", "show", "--property=WorkingDirectory,RequiresMountsFor,ReadWritePaths", "--", unit))
    if isinstance(done, Missing):
        return []
    values = [line.partition("=")[2] for line in done.stdout.splitlines()]
    return [word.lstrip("!-") for value in values for word in value.split() if word.lstrip("!-").startswith("/")]


def _open_paths(host: Host, pid: int | None) -> list[str]:
    if not pid:
        return []
    directory = f"/proc/{pid}/fd"
    links = [f"/proc/{pid}/cwd", *(f"{directory}/{name}" for name in host.names(directory))]
    targets = [host.readlink(link) for link in links]
    paths = [target for target in targets if isinstance(target, str) and target.startswith("/") and target != "/"]
    # A log is no data: where it lies says nothing of where its service should run.
    return [path for path in paths if not _LOG.search(path)]


def _links_of(host: Host, pid: int | None) -> tuple[str, ...]:
    if not pid:
        return ()
    directory = f"/proc/{pid}/fd"
    targets = [host.readlink(f"{directory}/{name}") for name in host.names(directory)]
    inodes = {target[8:-1] for target in targets if isinstance(target, str) and target.startswith("socket:[")}
    addresses = {address for table in ("tcp", "udp") for address in _local_addresses(host, pid, table, inodes)}
    if not addresses:
        return ()
    done = host.run(("ip", "-o", "-4", "addr", "show"))
    if isinstance(done, Missing):
        return ()
    found = re.findall(r"^[0-9]+:\s+(\S+)\s+inet\s+([0-9.]+)", done.stdout, re.MULTILINE)
    return tuple(sorted({link for link, address in found if address in addresses}))


def _local_addresses(host: Host, pid: int, table: str, inodes: set[str]) -> set[str]:
    """IPv4 addresses that the process' sockets are bound to; the wildcard and loopback say nothing of a link."""
    text = host.read(f"/proc/{pid}/net/{table}")
    found: set[str] = set()
    for line in "" if isinstance(text, Missing) else text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[9] in inodes:
            # Host byte order on the little-endian machines that this format is met on (proc(5)).
            found.add(".".join(str(byte) for byte in int(fields[1].partition(":")[0], 16).to_bytes(4, "little")))
    return {address for address in found if address != "0.0.0.0" and not address.startswith("127.")}


def _is_loopback(address: str) -> bool:
    """127.0.0.0/8 and ::1, as /proc/net/tcp and tcp6 print them."""
    number = address.partition(":")[0]
    return number.endswith("7F") if len(number) == 8 else number == "0" * 24 + "01000000"


_CEPH = lazy_regex(r"ceph-osd@(\d{1,6})|ceph-([0-9a-f-]{36})@osd\.(\d{1,6})", re.ASCII)
_CLUSTER = lazy_regex(r"postgresql@(\d{1,2}(?:\.\d)?)-([\w-]{1,60})", re.ASCII)
_VERSION = lazy_regex(r"postgresql-(\d{1,2}(?:\.\d)?)", re.ASCII)
_DATA = lazy_regex(r"^[ \t]*data_directory[ \t]*=?[ \t]*'([^'\n]+)'", re.MULTILINE)


def data_places(host: Host, unit: str) -> tuple[str, ...]:
    """Directories and block devices (below /dev) of a unit's data; none where its packages say nothing.

    Only paths are read: configuration files of databases and object stores may hold passwords, so that of PostgreSQL
    alone is looked into, for one key. Sources: postgresql-common (pg_wrapper(1)), ceph-volume(8), cephadm, MySQL and
    MariaDB packages.
    """
    return tuple(dict.fromkeys(_find_places(host, unit.removesuffix(".service"))))


def _find_places(host: Host, name: str) -> Iterator[str]:
    if found := _CEPH.match(name):
        place = f"/var/lib/ceph/osd/ceph-{found[1]}" if found[1] else f"/var/lib/ceph/{found[2]}/osd.{found[3]}"
        device = host.real(f"{place}/block")
        # BlueStore keeps its data on the device that this link names; FileStore below the directory.
        yield place if isinstance(device, Missing) else device
    elif found := _CLUSTER.match(name):
        given = _DATA.search(host.read_or_empty(f"/etc/postgresql/{found[1]}/{found[2]}/postgresql.conf"))
        yield given[1] if given else f"/var/lib/postgresql/{found[1]}/{found[2]}"
    elif found := _VERSION.match(name):
        yield f"/var/lib/pgsql/{found[1]}/data"
    elif name == "postgresql" and host.exists("/var/lib/pgsql/data"):
        yield "/var/lib/pgsql/data"
    elif re.match(r"(mysqld?|mariadbd?)(@[\w-]+)?$", name, re.ASCII) and host.exists("/var/lib/mysql"):
        yield "/var/lib/mysql"
