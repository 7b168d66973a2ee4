"""Which links and mount points a service uses, as far as the host shows it.

Mount points come from the unit's own settings (WorkingDirectory, RequiresMountsFor) and from the files that its main
process holds open; links from the local addresses of its sockets. Only root sees another user's open files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from advisor.facts.services import Service
from advisor.host import Host, Missing

_SYSTEM_MOUNTS = ("/", "/boot", "/usr", "/var", "/tmp", "/run", "/dev", "/proc", "/sys", "/home", "/etc")


def with_devices(host: Host, services: Iterable[Service]) -> tuple[Service, ...]:
    """The services with their ``devices`` filled in: mount points, then links, each sorted."""
    mounts = _mount_points(host)
    return tuple(msgspec.structs.replace(one, devices=_devices(host, one, mounts)) for one in services)


def _devices(host: Host, service: Service, mounts: tuple[str, ...]) -> tuple[str, ...]:
    paths = [*_unit_paths(host, service.unit), *_open_paths(host, service.main_pid)]
    used = {mount for path in paths if (mount := _mount_of(path, mounts)) is not None}
    return (*sorted(used), *_links_of(host, service.main_pid))


def _mount_points(host: Host) -> tuple[str, ...]:
    """Mount points of block devices that hold data of their own, longest first."""
    text = host.read("/proc/self/mountinfo")
    found: set[str] = set()
    for line in "" if isinstance(text, Missing) else text.splitlines():
        left, _, right = line.partition(" - ")
        fields, source = left.split(" "), right.split(" ")
        if len(fields) > 4 and len(source) > 1 and source[1].startswith("/dev/"):
            found.add(_unescaped(fields[4]))
    return tuple(sorted(found - set(_SYSTEM_MOUNTS), key=lambda path: (-len(path), path)))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


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
    targets = [host.readlink(f"{directory}/{name}") for name in host.names(directory)]
    return [target for target in targets if isinstance(target, str) and target.startswith("/")]


def _links_of(host: Host, pid: int | None) -> tuple[str, ...]:
    if not pid:
        return ()
    directory = f"/proc/{pid}/fd"
    targets = [host.readlink(f"{directory}/{name}") for name in host.names(directory)]
    inodes = {target[8:-1] for target in targets if isinstance(target, str) and target.startswith("socket:[")}
    addresses = {address for table in ("tcp", "udp") for address in _local_addresses(host, pid, table, inodes)}
    if not addresses:
        return ()
    return _links_with(host, addresses)


def _local_addresses(host: Host, pid: int, table: str, inodes: set[str]) -> set[str]:
    """IPv4 addresses that the process' sockets are bound to; the wildcard and loopback say nothing of a link."""
    text = host.read(f"/proc/{pid}/net/{table}")
    found: set[str] = set()
    for line in "" if isinstance(text, Missing) else text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[9] in inodes:
            # Host byte order on the little-endian machines that this format is met on (proc(5)).
            number = int(fields[1].partition(":")[0], 16).to_bytes(4, "little")
            found.add(".".join(str(byte) for byte in number))
    return {address for address in found if address != "0.0.0.0" and not address.startswith("127.")}


def _links_with(host: Host, addresses: set[str]) -> tuple[str, ...]:
    done = host.run(("ip", "-o", "-4", "addr", "show"))
    if isinstance(done, Missing):
        return ()
    found = re.findall(r"^\d+:\s+(\S+)\s+inet\s+([\d.]+)", done.stdout, re.MULTILINE)
    return tuple(sorted({link for link, address in found if address in addresses}))
