"""What a host serves, by the units that run: the names that packages give them, and those that look alike."""

from __future__ import annotations

from advisor.facts.host_facts import scan
from advisor.facts.remote.network_storage import NetworkStorage
from advisor.facts.system.roles import MAX_SIGNS, ROLES, read_roles
from advisor.host import Host, MemoryFiles
from advisor.host.commands import NoCommands
from advisor.profiles.profile import load
from advisor.rules.judged import judge
from advisor.rules.roles import ROLE_NAMES
from tests.serving_hosts import UNITS, serving_host


def host_of(files: dict[str, str], links: dict[str, str] | None = None) -> Host:
    return Host(MemoryFiles({path: text.encode() for path, text in files.items()}, links), NoCommands())


def running(*units: str) -> Host:
    return host_of({}, {f"/run/systemd/units/invocation:{unit}": "0" * 32 for unit in units})


def test_units_that_run_show_their_roles() -> None:
    found = read_roles(running("ssh.service", "redis-exporter.service", "mysqld.service", "nginx.service"), ())
    assert found == {"mysql": ("mysqld.service",), "web-server": ("nginx.service",)}


def test_before_systemd_240_control_groups_show_what_runs() -> None:
    files = {
        "/sys/fs/cgroup/systemd/system.slice/nginx.service/tasks": "",
        "/sys/fs/cgroup/systemd/system.slice/system-postgresql.slice/postgresql@9.6-main.service/tasks": "",
    }
    found = read_roles(host_of(files), ())
    assert found == {"postgresql": ("postgresql@9.6-main.service",), "web-server": ("nginx.service",)}


def test_threads_of_nfsd_and_mounts_show_the_ends_of_nfs() -> None:
    mounts = [NetworkStorage("nfs", f"/mnt/{number}", "tcp") for number in range(20)]
    found = read_roles(host_of({"/proc/fs/nfsd/threads": "8\n"}), [*mounts, NetworkStorage("cifs", "/smb", "tcp")])
    assert found["nfs-server"] == ("8 threads of nfsd",)
    assert found["nfs-client"] == tuple(f"/mnt/{number}" for number in range(MAX_SIGNS))
    assert read_roles(host_of({"/proc/fs/nfsd/threads": "0\n"}), ()) == {}


def test_each_role_that_is_named_has_a_profile_that_asks_for_it() -> None:
    assert {*ROLE_NAMES} <= {*ROLES, "nfs-client"}
    for role in ROLE_NAMES:
        assert [one.fact for one in load(role).conditions][:1] == [f"roles.{role}"]


def test_a_scan_names_the_profile_of_each_service() -> None:
    found = judge(scan(serving_host(UNITS.values())))
    assert {one.profile for one in found if one.id == "services.profile"} == {*UNITS}
    assert [one for one in judge(scan(serving_host(()))) if one.id == "services.profile"] == []
