"""Systems on which every engine applies and rolls back: hosts of the articles as trees with stand-ins that keep state,
and the small systems that have the forms of values which no profile sets."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from advisor.facts.host_facts import Facts, scan
from advisor.host import Completed, Host, Missing
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import load
from advisor.transaction.journal import Store
from tests.cases import cases
from tests.fuzz.hosts import ARTICLES, Parts, parts_of
from tests.serving_hosts import UNITS, serving_host
from tests.transaction import kernel_system, queues, storage_system, system
from tests.trees import host_of, listing, make_command, make_tree

CASES = cases(__file__)

PROFILE_HOSTS = {
    "infoscale: configuration 3, mirrors over one TCP link": (
        "infoscale-fss-tcp",
        "llt-highwater-doubled",
        "jumbo-frames",
    ),
    "infoscale: configuration 5, mirrors across zones, declared": (
        "infoscale-fss-udp",
        "infoscale-fss-zones",
        "socket-buffers-8m",
        "llt-highwater-doubled",
    ),
    "iris: RANWRITE is declared, and IRIS has its default write daemons": ("iris", "iris-write-daemons", "ebs-volumes"),
    "iscsi: round-robin over links of 1000 and 10000 Mbit/s: what they carry": (
        "iscsi",
        "iscsi-multipath",
        "jumbo-frames",
    ),
    "beegfs: A target whose four drives lie two on each node": ("beegfs-nvme", "numa-pinning"),
}
"""Hosts of the articles, and the profiles that are applied there."""
SERVICES = ("postgresql", "mysql", "redis", "nfs-server", "kafka", "ceph-osd", "low-latency")
"""General profiles, planned together on one host that serves it all: they have no form of a value of their own."""
ON_SERVICES = ("minio", "kvm-host", "web-server")
"""Those that are applied on top, as they want other values of the same."""
OF_GUESTS = ("virtual-guest", "cloud-guest", "cloud-volumes", "nfs-client")
"""What these set, ``ebs-volumes`` and the services set as well: they differ in the hosts that they are for."""
SERVING = "services"
FORM_SYSTEMS = ("small", "kernel", "storage", "queues")

_PRESENT = CASES["_PRESENT"]
# What was recorded of a command, by the checksum of its words; values that can be set are kept in the tree.
_RECORDED = CASES["_RECORDED"]
_LLTCONFIG = CASES["_LLTCONFIG"]
# Of this machine they would print what it has.
_SILENT = ("ip", "lsblk", "mdadm", "lvs", "dmsetup", "multipath", "ethtool", "tc", "iscsiadm", "nvme", "vxdisk")


class ConformanceSystem(NamedTuple):
    """A system below a directory: how it is made, what is planned there, and its state as an administrator sees it."""

    name: str
    build: Callable[[Path], Host]
    plan: Callable[[Host, Store], Plan]
    state: Callable[[Path], object]
    can_be_killed: bool = True
    uppers: tuple[Callable[[Host, Store], Plan], ...] = ()
    """Plans of other profiles that are applied on top."""


def profile_system(host_name: str, profile: str) -> ConformanceSystem:
    def planner_of(name: str) -> Callable[[Host, Store], Plan]:
        def plan(host: Host, store: Store) -> Plan:
            facts = _facts_of(host_name)
            links = ",".join(one.name for one in facts.links if one.kind != "loopback")
            settings = {"links": links} if "links" in load(name).parameters else {}
            return plan_profiles(host, [name], settings, store=store, facts=facts)

        return plan

    uppers = tuple(planner_of(one) for one in PROFILE_HOSTS[host_name] if one != profile)
    build = functools.partial(_build_article, host_name=host_name)
    return ConformanceSystem(profile, build, planner_of(profile), tree_state, uppers=uppers)


def services_system() -> ConformanceSystem:
    def planner_of(names: tuple[str, ...]) -> Callable[[Host, Store], Plan]:
        return lambda host, store: plan_profiles(host, names, {}, store=store, facts=_facts_of(SERVING))

    plan, uppers = planner_of(SERVICES), tuple(planner_of((one,)) for one in ON_SERVICES)
    return ConformanceSystem(
        SERVING, functools.partial(_build_article, host_name=SERVING), plan, tree_state, uppers=uppers
    )


def form_system(name: str) -> ConformanceSystem:
    if name == "queues":
        return ConformanceSystem(name, queues.build, lambda host, _: queues.plan_of(host), queues.state, False)
    if name == "kernel":
        wanted = kernel_system.WANTED
        return ConformanceSystem(
            name, kernel_system.build, lambda host, _: kernel_system.plan_of(host, wanted), tree_state
        )
    if name == "storage":
        return ConformanceSystem(name, storage_system.build, lambda host, _: storage_system.plan_of(host), tree_state)
    return ConformanceSystem(name, system.build, lambda host, _: system.plan_of(host), tree_state)


def systems() -> tuple[ConformanceSystem, ...]:
    """Each profile on one host, and the small systems."""
    hosts = {profile: host for host, names in PROFILE_HOSTS.items() for profile in names}
    return (
        *(profile_system(host, one) for one, host in hosts.items()),
        services_system(),
        *map(form_system, FORM_SYSTEMS),
    )


def tree_state(where: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every file; of those that the kernel prints, the value: a tree keeps what was written as it was written."""
    found = listing(where / "root") | {f"llt/{name}": one for name, one in listing(where / "llt").items()}
    for path, (kind, mode, content) in found.items():
        if kind == "file" and path.startswith(("proc/", "sys/")):
            words = content.split()
            chosen = [word[1:-1] for word in words if word[:1] + word[-1:] in (b"[]", b"()")]
            found[path] = kind, mode, b" ".join(chosen if len(chosen) == 1 else words)
    # What systemd has loaded follows from the files.
    return {path: one for path, one in found.items() if not path.startswith(("run/loaded", "run/unit"))}


@functools.cache
def _parts(host_name: str) -> Parts:
    parts = parts_of(serving_host(UNITS.values()) if host_name == SERVING else ARTICLES[host_name]())
    added = {path: text.encode() for path, text in _PRESENT.items() if path not in parts.files}
    return parts._replace(files={**parts.files, **added, "/etc/machine-id": _PRESENT["/etc/machine-id"].encode()})


@functools.cache
def _facts_of(host_name: str) -> Facts:
    return scan(_parts(host_name).host())


def _build_article(where: Path, host_name: str) -> Host:
    parts = _parts(host_name)
    root, commands = make_tree(where / "root", parts.files, parts.links), where / "bin"
    for directory in parts.directories:
        (root / directory.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (where / "answers").mkdir()
    for name in _SILENT:
        make_command(commands, name, _RECORDED)
    make_command(commands, "udevadm", "exit 0")
    for argv, answer in parts.answers.items():
        if isinstance(answer, Missing) or not answer.ok:
            continue
        words = "".join(f"{word}\0" for word in argv[1:]).encode()
        (where / "answers" / f"{argv[0]}.{hashlib.sha256(words).hexdigest()[:32]}").write_text(answer.stdout)
        make_command(commands, argv[0], _LLTCONFIG if argv[0] == "lltconfig" else _RECORDED)
    flow = parts.answers.get(("lltconfig", "-F", "query"))
    if isinstance(flow, Completed):
        make_tree(root, {"/run/llt-flow": flow.stdout})
    return host_of(root, commands)
