"""The running services that matter to storage: those that serve it, and those that somebody has placed."""

from __future__ import annotations

import re

from advisor.facts.cpu import online_cpus
from advisor.facts.cpulist import parse_list
from advisor.facts.service_devices import serves_data, with_devices
from advisor.facts.services import Service, read_services
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

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
