"""systemd services: placement as systemd has it loaded, and where the main process may run in fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from advisor.facts.block.mounts import read_mounts
from advisor.facts.processors.cpu import online_cpus
from advisor.facts.processors.cpulist import Resource, format_list, parse_allowed, parse_list
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex
from advisor.host.config_text import shown_cpus

# The version of systemd, which decides on the directives that a unit can have.

VERSION = ("systemctl", "--version")
TIMERS = ("/etc/systemd/system/timers.target.wants", "/usr/lib/systemd/system/timers.target.wants")
NUMA_POLICY = 243
"""The first version with NUMAPolicy= and NUMAMask= (systemd's NEWS). RHEL 8 has them in its 239."""
CPUS_OF_NODE = 244
"""The first version with CPUAffinity=numa."""


class Systemd(msgspec.Struct, frozen=True):
    """``version`` is the number, ``text`` the distribution's own words, such as 239 (239-82.el8). ``is_running``:
    whether it is the init of this host, by sd_booted(3); None where nobody looked."""

    version: int
    text: str
    is_running: bool | None = None
    trims: bool | None = None
    """Whether fstrim.timer is enabled: a link to it stands in timers.target.wants. None where systemd does not run."""


def read_systemd(host: Host, *, with_version: bool = True) -> Systemd | None:
    """From ``systemctl --version``; None where that cannot be asked: a host may well run without systemd.

    Without the version, which takes a process, it is 0; then None where systemd does not run.
    """
    is_running = host.is_dir("/run/systemd/system")
    trims = any(name == "fstrim.timer" for place in TIMERS for name in host.names(place)) if is_running else None
    if not with_version:
        return Systemd(0, "", is_running, trims) if is_running else None
    done = host.run(VERSION)
    found = None if isinstance(done, Missing) or not done.ok else parse_version(done.stdout)
    return found and msgspec.structs.replace(found, is_running=is_running, trims=trims)


def parse_version(text: str) -> Systemd | None:
    """The first line that begins with ``systemd NUMBER``; None where there is none."""
    found = re.search(r"^systemd ((\d{1,4})\b[^\r\n]{0,80})", text, re.MULTILINE | re.ASCII)
    return Systemd(int(found[2]), printable(found[1].strip())) if found else None


_PROPERTIES = ("Id", "LoadState", "MainPID", "NUMAPolicy", "NUMAMask", "CPUAffinity", "CPUAffinityFromNUMA")


class Service(msgspec.Struct, frozen=True):
    """A loaded service unit; ``main_pid`` is None where it does not run.

    ``cpus_allowed``/``mems_allowed`` are the main process' own (/proc/PID/status); ``numa_policy``, ``numa_mask`` and
    ``cpu_affinity`` what systemd has loaded, None where it has no such property (NUMA: before 243) or none is set.
    ``cpu_affinity`` is ``numa`` where it follows the mask.
    """

    unit: str
    main_pid: int | None
    numa_policy: str | None
    numa_mask: str | None
    cpu_affinity: str | None
    cpus_allowed: str | None
    mems_allowed: str | None
    devices: tuple[str, ...] = ()
    """Links and mount points that it was seen to use (facts.service_devices)."""
    lacks: tuple[str, ...] = ()
    """Of NUMAPolicy and CPUAffinityFromNUMA what ``systemctl show`` does not print: this systemd has no such property.
    Versions 243 and 244 brought them; RHEL 8 has them in its 239."""
    memory_policy: str | None = None
    """The policy that its process has by whatever set it, numactl for instance, as /proc/PID/numa_maps has it
    (``default``, ``bind:1``); None where it was not asked for or could not be read."""


def read_memory_policy(host: Host, service: Service) -> Service:
    """The service with its process' own policy: that of its first mapping, its program. Left alone where its unit sets
    one, as the file costs the kernel a walk through all pages."""
    if service.main_pid is None or service.numa_policy not in (None, "default"):
        return service
    text = host.read(f"/proc/{service.main_pid}/numa_maps")
    found = None if isinstance(text, Missing) else re.match(r"[0-9a-f]+ ([a-z]+(?:[=:][\w,:-]+)?)", text, re.ASCII)
    return msgspec.structs.replace(service, memory_policy=found[1]) if found else service


def read_services(host: Host, units: tuple[str, ...], unknown: Unknowns) -> tuple[Service, ...]:
    """The named units; one that systemd does not know is noted as unknown and left out.

    All are asked for with one ``systemctl show`` (systemctl(1)); no command is run for no units.
    """
    if not units:
        return ()
    done = host.run(show_command(units))
    if isinstance(done, Missing):
        unknown.note("services", done)
        return ()
    if not done.ok:
        unknown.note("services", done.failure("systemctl"))
        return ()
    loaded = [block for block in parse_show(done.stdout) if _is_loaded(block, unknown)]
    return tuple(_make_service(host, block, unknown) for block in loaded)


def show_command(units: tuple[str, ...]) -> tuple[str, ...]:
    """The command that asks systemd for some units; the same units give the same words, so that it can be replayed."""
    return ("systemctl", "show", f"--property={','.join(_PROPERTIES)}", "--", *units)


def parse_show(text: str) -> tuple[dict[str, str], ...]:
    """Properties of each unit that ``systemctl show`` prints; an empty line stands between two units."""
    blocks = (re.findall(r"^([A-Za-z]\w*)=(.*?)\r?$", block, re.MULTILINE) for block in re.split(r"\n[ \t\r]*\n", text))
    return tuple(dict(block) for block in blocks if block)


def _is_loaded(block: dict[str, str], unknown: Unknowns) -> bool:
    if block.get("LoadState") == "loaded" and block.get("Id"):
        return True
    unknown.note(f"services.{block.get('Id', '?')}", f"systemd says {block.get('LoadState', 'nothing of its state')}")
    return False


def _make_service(host: Host, block: dict[str, str], unknown: Unknowns) -> Service:
    unit = block["Id"]
    pid = int(block["MainPID"]) if re.fullmatch(r"[1-9]\d{0,9}", block.get("MainPID", ""), re.ASCII) else None
    policy, affinity = block.get("NUMAPolicy", ""), block.get("CPUAffinity", "")
    # systemd puts blanks between the ranges where the kernel has commas.
    return Service(
        unit=unit,
        main_pid=pid,
        numa_policy=None if policy in ("", "n/a") else policy,
        numa_mask=",".join(block.get("NUMAMask", "").split()) or None,
        cpu_affinity="numa" if block.get("CPUAffinityFromNUMA") == "yes" else shown_cpus(affinity) or None,
        cpus_allowed=_read_allowed(host, pid, "cpus", f"services.{unit}.cpus_allowed", unknown),
        mems_allowed=_read_allowed(host, pid, "mems", f"services.{unit}.mems_allowed", unknown),
        lacks=tuple(name for name in ("NUMAPolicy", "CPUAffinityFromNUMA") if name not in block),
    )


def _read_allowed(host: Host, pid: int | None, resource: Resource, fact: str, unknown: Unknowns) -> str | None:
    if pid is None:
        return None
    text = host.read(f"/proc/{pid}/status")
    found = text if isinstance(text, Missing) else parse_allowed(text, resource)
    if isinstance(found, Missing):
        unknown.note(fact, found)
        return None
    return format_list(found)


# Which links, mount points and block devices a service uses, as far as the host shows it.

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


# The running services that matter to storage: those that serve it, and those that somebody has placed.

LIST_RUNNING = (
    *("systemctl", "list-units", "--type=service", "--state=running"),
    *("--no-legend", "--plain", "--no-pager"),
)
MAX_UNITS = 400

_UNIT = lazy_regex(r"[\w:.\\@-]{1,255}\.service", re.ASCII)
# Units of file servers, cluster file systems, databases and volume managers, as their own packages name them.
STORAGE_UNIT = lazy_regex(
    r"(beegfs-|nfs-(server|ganesha|mountd)|ganesha|smb|nmb|ctdb|gluster|ceph-(osd|mon|mds|mgr|radosgw)|lustre|mmfs"
    r"|ocfs2|gfs2|dlm|drbd|linstor|tgt|target|nvmet|spdk|iscsi|multipathd|minio|seaweedfs|openstack-(swift|cinder)"
    r"|swift-|postgres|mysql|mariadb|mongo|cassandra|scylla|clickhouse|elasticsearch|opensearch|kafka|redis|influx"
    r"|oracle|db2|sap|hdb|iris|vx|vcs|llt|gab|amf|had\b|libvirtd|virtqemud)"
)


def parse_running(text: str) -> tuple[str, ...]:
    """The units that ``systemctl list-units --plain --no-legend`` lists, sorted."""
    words = (line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip())
    return tuple(sorted({word for word in words if _UNIT.fullmatch(word)}))


def read_storage_services(host: Host, unknown: Unknowns) -> tuple[Service, ...]:
    """Running services of storage software, those kept to some of the CPUs, and those that work on data and listen,
    with the devices that they use.

    Other services run wherever the scheduler puts them and are left out. Whose open files cannot be seen (another
    user's, without root) has fewer devices than it uses.
    """
    done = host.run(LIST_RUNNING)
    if isinstance(done, Missing) or not done.ok:
        unknown.note("services", done if isinstance(done, Missing) else done.failure("systemctl"))
        return ()
    units = parse_running(done.stdout)[:MAX_UNITS]
    online = online_cpus(host)
    every = None if isinstance(online, Missing) else frozenset(online)
    known = read_services(host, units, unknown)
    wanted = [one for one in known if _is_relevant(one, every) or (not _runs_others(one) and serves_data(host, one))]
    return with_devices(host, wanted)


def _is_relevant(service: Service, online: frozenset[int] | None) -> bool:
    if bool(STORAGE_UNIT.match(service.unit)):
        return True
    if service.numa_policy not in (None, "default") or service.cpu_affinity:
        return True
    if service.cpus_allowed is None or online is None:
        return False
    return not frozenset(parse_list(service.cpus_allowed)) >= online


def _runs_others(service: Service) -> bool:
    """Container runtimes and the like hold the files of what they run: they serve nothing themselves."""
    return bool(re.match(r"(containerd|docker|crio|cri-|kubelet|podman|k3s|rke2|snap|user@|systemd-)", service.unit))
