"""``plan numa-pinning`` without units: the storage services of a host, found by their data and sockets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest

from advisor.facts.host_facts import Facts
from advisor.facts.system.roles import EXPORTS, NFSD_THREADS, SCST, KernelServices, parse_exports
from advisor.facts.system.services import LIST_RUNNING, VERSION, Service, Systemd, parse_version, show_command
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.planning.storage_units import select_found, storage_units
from advisor.tunables.unit import UnitNuma
from tests.beegfs_server import CPUS, layout, tree, unit
from tests.cases import cases
from tests.facts.storage import Tree
from tests.rules.build import disk, facts, link, replaced

CASES = cases(__file__)

BOUND = "NUMAPolicy=bind NUMAMask={} CPUAffinity=numa"
MODERN = "NUMAPolicy=n/a\nNUMAMask=\nCPUAffinity=\nCPUAffinityFromNUMA=no\n"
LISTENING = "  0: 00000000:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {} 1 0 100 0 0 10 0\n"
BY_NUMBER = {node: f"CPUAffinity={cpus}" for node, cpus in CPUS.items()}


def planned(made: Tree, **settings: str) -> Plan:
    return plan_profiles(made.host(), ("numa-pinning",), settings)


def units(plan: Plan) -> dict[str, str]:
    """What is planned for units, without the words around their names."""
    return {one.tunable[5:-13]: one.after for one in plan.changes if one.tunable.startswith("unit:")}


def left(plan: Plan) -> dict[str, tuple[str, str]]:
    """State and reason of the units that are left as they are."""
    return {one.tunable[5:-13]: (one.state, one.reason) for one in plan.skipped if one.tunable.startswith("unit:")}


def host(*md: tuple[int, ...]) -> Tree:
    """Eight drives, four on each node; an array for each tuple, mounted on /data/N."""
    made = Tree()
    for index in range(8):
        made.nvme(index, index // 4, number=f"259:{index}")
    for number, drives in enumerate(md):
        attributes = {"level": "raid0", "raid_disks": str(len(drives)), "chunk_size": "524288"}
        made.md(f"md{number}", attributes, {f"nvme{one}n1": ("in_sync", str(slot)) for slot, one in enumerate(drives)})
        for one in drives:
            address = f"0000:{0x20 + one:02x}:00.0"
            place = f"/sys/devices/pci0000:{0x20 + one:02x}/{address}/nvme/nvme{one}/nvme{one}n1"
            made.directories.add(f"{place}/holders/md{number}")
        made.number(f"md{number}", f"9:{number}")
        made.mount(f"9:{number}", f"/data/{number}", "xfs")
    made.files["/proc/sys/kernel/numa_balancing"] = "1\n"
    return made


def running(made: Tree, services: Mapping[str, Iterable[str]], text: str = MODERN, allowed: str = "0-3") -> Tree:
    """``services``: unit → what its main process holds open."""
    shown = {}
    for pid, (name, opened) in enumerate(services.items(), 700):
        full = f"{name}.service"
        shown[full] = f"Id={full}\nLoadState=loaded\nMainPID={pid}\n{text}"
        made.files[f"/proc/{pid}/status"] = f"Cpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0-1\n"
        made.directories.add(f"/proc/{pid}/fd")
        for number, path in enumerate(opened):
            name = "cwd" if path.startswith("cwd:") else f"fd/{number}"
            made.links[f"/proc/{pid}/{name}"] = path.removeprefix("cwd:")
        probe = UnitNuma(full).probe
        made.answer(probe.argv, shown[full])  # type: ignore[union-attr]
    made.answer(LIST_RUNNING, "".join(f"{name} loaded active running x\n" for name in shown))
    made.answer(show_command(tuple(sorted(shown))), "\n".join(shown[name] for name in sorted(shown)))
    return made


def old(made: Tree, version: str | None = "systemd 219\n+PAM +AUDIT\n") -> Tree:
    """The same host with a systemd that prints no property of NUMA, as CentOS 7's."""
    for argv, one in list(made.answers.items()):
        if argv[:2] == ("systemctl", "show"):
            made.answer(argv, re.sub(r"(?m)^(NUMA|CPUAffinityFrom).*\n", "", one.stdout))  # type: ignore[union-attr]
    if version:
        made.answer(VERSION, version)
    return made


def test_the_article_s_storage_services_are_found_and_bound() -> None:
    plan = planned(tree(bound=False))
    assert units(plan) == {
        unit(number, one).removesuffix(".service"): BOUND.format(one[1]) for number, one in enumerate(layout("storage"))
    }
    assert not plan.cannot_apply
    (note,) = (note for note in plan.notes if note.startswith("storage services found here"))
    assert "node 0: beegfs-storage@numa0-storage0, " in note
    assert "; node 1: beegfs-storage@numa1-storage3, " in note


def test_services_are_found_by_what_they_hold_open_not_by_their_names() -> None:
    made = host((0, 1), (4, 5))
    opened = {
        "minio": ["/data/0/.minio.sys/format.json"],
        "acme-blobs": ["/data/1/blobs", "socket:[77]"],
        "backup-agent": ["/data/1/catalogue"],
        "sshd": ["/data/1/home", "socket:[77]"],
        "containerd": ["/data/0/images", "socket:[77]"],
        # A log is no data, wherever it lies.
        "nginx": ["/data/0/www/log/access", "/data/1/error.log", "/data/1/logs", "socket:[77]"],
    }
    running(made, opened)
    for pid in range(700, 706):
        made.files[f"/proc/{pid}/net/tcp"] = "  sl  local_address\n" + LISTENING.format(77)
    plan = planned(made)
    assert units(plan) == {"acme-blobs": BOUND.format(1), "minio": BOUND.format(0)}
    assert {one.tunable: one.after for one in plan.changes}["sysctl:kernel.numa_balancing"] == "0"


def test_a_service_that_listens_on_loopback_alone_serves_nobody() -> None:
    made = running(host((0, 1)), {"acme": ["/data/0/x", "socket:[77]"]})
    made.files["/proc/700/net/tcp"] = "  sl\n" + LISTENING.format(77).replace("00000000:1538", "0100007F:1538")
    assert units(planned(made)) == {}


def test_instances_databases_and_object_stores() -> None:
    made = host((0, 1), (4, 5))
    made.files["/etc/postgresql/15/main/postgresql.conf"] = "#data_directory = 'x'\ndata_directory = '/data/1/pg'\n"
    made.links["/var/lib/ceph/osd/ceph-3/block"] = "/dev/nvme6n1"
    made.files["/dev/nvme6n1"] = ""
    made.links["/dev/ceph-x/osd-block-y"] = "/dev/nvme2n1"
    services: dict[str, list[str]] = {
        "ceph-osd@3": [],
        "ceph-osd@4": ["/dev/nvme2n1"],
        "mariadb": ["cwd:/data/0/mysql"],
        "postgresql@15-main": [],
        "ceph-mgr@a": ["/data/0/mgr"],
    }
    plan = planned(running(made, services))
    assert units(plan) == {
        "ceph-osd@3": BOUND.format(1),
        "ceph-osd@4": BOUND.format(0),
        "mariadb": BOUND.format(0),
        "postgresql@15-main": BOUND.format(1),
    }


def test_an_array_over_two_nodes_says_which_drives_are_where() -> None:
    plan = planned(running(host((0, 1, 4, 5)), {"postgresql": ["cwd:/data/0/pg"]}))
    assert units(plan) == {}
    state, reason = left(plan)["postgresql"]
    assert state == "not-applicable"
    assert "/data/0 on nodes 0 (nvme0n1, nvme1n1) and 1 (nvme4n1, nvme5n1)" in reason
    assert "leave it unbound" in reason
    assert "NUMAPolicy=interleave" in reason
    named = planned(running(host((0, 1, 4, 5)), {"postgresql": ["cwd:/data/0/pg"]}), units="postgresql=md0")
    assert "md0 on nodes 0 (nvme0n1, nvme1n1) and 1 (nvme4n1, nvme5n1)" in str(named.skipped)


def test_what_the_kernel_serves_is_said_to_be_the_kernel_s() -> None:
    made = running(host((0, 1)), {"had": [], "vxfen": [], "nfs-mountd": []})
    made.files |= {NFSD_THREADS: "64\n", EXPORTS[0]: "/data/0/share\t10.0.0.0/24(rw,sync)\n"}
    made.directories.add(SCST)
    found = left(planned(made))
    assert set(found) == {"had", "vxfen", "nfs-server", "iscsi-scstd"}
    assert all("kernel" in reason for _, reason in found.values())
    assert "/data/0/share on node 0" in found["nfs-server"][1]
    assert "pool_mode" in found["nfs-server"][1]


def test_exports_are_paths_each_once() -> None:
    assert parse_exports('# x\n/a\t*(rw)\n/a 10.0.0.1(rw)\n/b\\040c *(ro)\n"/d e" *(ro)\n') == ("/a", "/b c", "/d e")
    made = host((0, 1))
    made.files[EXPORTS[2]] = "/data/0 *(rw)\n"
    assert "nfs-server" not in left(planned(made))


# -- what a systemd can bind ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["systemd 219\n+PAM\n", "systemd 239\n", None])
@pytest.mark.parametrize("settings", [{}, {"units": "beegfs-storage*"}])
def test_a_systemd_without_numa_policy_binds_cpus_by_number(version: str | None, settings: dict[str, str]) -> None:
    plan = planned(old(tree(bound=False), version), **settings)
    assert set(units(plan).values()) == set(BY_NUMBER.values())
    written = b"".join(one.after for one in plan.files)
    assert b"NUMA" not in written
    assert b"\nCPUAffinity=0 1 2 3 " in written
    change = next(one for one in plan.changes if one.tunable.startswith("unit:"))
    assert change.before == "CPUAffinity="
    assert "memory cannot be bound" in change.why
    (note,) = (note for note in plan.notes if "bound by number" in note)
    assert "numactl --membind" in note
    assert ("version of systemd is unknown" in note) is (version is None)


@pytest.mark.parametrize(("version", "text", "value"), CASES["what systemctl show prints is there"])
def test_what_systemctl_show_prints_is_there(version: str | None, text: str, value: str | None) -> None:
    made = running(host((0, 1)), {"minio": ["/data/0/x"]}, text)
    if version:
        made.answer(VERSION, version)
    (found,) = units(planned(made)).values()
    assert found == (value or "NUMAPolicy=bind NUMAMask=0 CPUAffinity=0-1")


# -- what has no unit of its own --------------------------------------------------------------------------------------


def on(disk_node: int, **parts: object) -> Facts:
    """A host of two nodes with one NVMe drive, mounted on /db."""
    node = {0: "0-3", 1: "4-7"}
    drive = disk("nvme0n1", numa_node=disk_node, mountpoints=("/db",))
    made = facts(disks=(drive,), **parts)
    nodes = tuple(replaced(one, {"cpus": node[one.id]}) for one in made.numa.nodes[:2])
    return replaced(made, {"numa": replaced(made.numa, {"nodes": nodes})})


def test_data_on_one_node_outranks_a_link_on_another() -> None:
    made = on(0, links=(link("eth1", numa_node=1),))
    service = Service("minio.service", 7, None, None, None, "0-7", "0-1", ("/db", "eth1"))
    (one,) = select_found(storage_units(made, (service,), KernelServices()), made, policy="bind")
    assert one.value == BOUND.format(0)
    assert "/db on node 0, eth1 on node 1" in one.why


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("systemd 219\n+PAM\n", Systemd(219, "219")),
        ("systemd 239 (239-82.el8_10.2)\n+PAM", Systemd(239, "239 (239-82.el8_10.2)")),
        ("systemd 257~rc1 (257~rc1-4)\n", Systemd(257, "257~rc1 (257~rc1-4)")),
        ("", None),
        ("systemd x\n", None),
    ],
)
def test_the_version_of_systemd(text: str, found: Systemd | None) -> None:
    assert parse_version(text) == found
