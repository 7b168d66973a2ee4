"""The cases of docs/systems/iscsi.md, on hosts built from the article's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.host import Host, MemoryFiles, RecordedCommands
from tests.articles.openfiler import (
    IQN,
    NEW_KERNEL,
    RHEL_5,
    RHEL_7,
    RHEL_8,
    SECRET,
    Machine,
    article,
    initiator,
    record,
    storage,
)
from tests.articles.table import Case, found, limited, limited_host, limited_what_if, planned, reasons, recommended
from tests.cases import read_cases
from tests.threeware import openfiler_raid

_GAINS: Final = "S003: step 2 (jumbo frames, path changes, cache) gave "
_ORDER: Final = ("1. advisor bench", "2. advisor limits --bench", "STOP here", "3. only then the disks", "TWICE")


def _here(**parts: object) -> Callable[[], Host]:
    return lambda: article(**parts)


def _mounted(line: str) -> Callable[[], Host]:
    """The article's links with storage that another protocol carries, and no session."""

    def host() -> Host:
        made = Machine(NEW_KERNEL, 48)
        made.link("eth0", "10.0.2.15/24", default=True)
        made.link("eth1", "10.20.1.7/24")
        made.link("eth2", "192.0.2.7/24")
        made.files["/proc/self/mountinfo"] += f"{line}\n"
        return made.host()

    return host


def _on_vlans(lower: str, *ports: str, plain: bool = False) -> Callable[[], Host]:
    """Two sessions by VLANs of one link, which is a bond where ``ports`` are named; with ``plain`` a third by the link
    itself."""

    def host() -> Host:
        made = Machine(NEW_KERNEL, 48)
        made.link("eth0", "10.0.2.15/24", default=True)
        for at, name in enumerate(ports or (lower,)):
            made.link(name, f"10.20.{9 + at}.7/24", mbps=10_000)
        if ports:
            made.bond(lower, ports)
        for at, tag in enumerate((101, 102)):
            made.vlan(lower, tag, f"10.20.{at + 1}.7/24")
            made.session(at + 1, disks=(f"sd{'bc'[at]}",), local=f"10.20.{at + 1}.7", portal=f"10.20.{at + 1}.20")
        if plain:
            made.session(3, disks=("sdd",), local="10.20.9.7", portal="10.20.9.20")
        return made.host()

    return host


DATA = read_cases(__file__, globals())

_TRANSPORT: Final = (
    *(
        Case(
            f"sessions on VLANs over {what}: the VLANs are raised, and with them what is below",
            f"{_GAINS}+28 % (RealLife); four VLANs with four address ranges",
            host,
            recommended("jumbo-frames", "iscsi-vm"),
            (says,),
            never,
        )
        for what, host, says, never in (
            ("a bond", _on_vlans("bond1", "eth1", "eth2"), "links=bond1.101,bond1.102", ("bond1,",)),
            ("a port", _on_vlans("ens1f0"), "links=ens1f0.101,ens1f0.102", ("ens1f0,",)),
            ("a port with a session", _on_vlans("p1", plain=True), "links=p1,p1.101,p1.102", ()),
        )
    ),
    Case(
        "the same, planned by name: the bond and its ports follow",
        "S003: jumbo frames have to be the same from end to end",
        _on_vlans("bond1", "eth1", "eth2"),
        planned("jumbo-frames", links="bond1.101,bond1.102"),
        tuple(f"link:{name}:mtu 1500 → 9000" for name in ("eth1", "eth2", "bond1", "bond1.101", "bond1.102")),
    ),
    *DATA["_TRANSPORT"],
    *(
        Case(
            f"{pattern} over four paths at MTU 1500",
            f"{_GAINS}{gain}",
            _here(),
            recommended("iscsi-multipath", pattern),
            ("iscsi-multipath: yes (workload)", "advisor plan iscsi-multipath"),
            ("matter of intent",),
        )
        for pattern, gain in (
            ("iometer.maxtp-r100", "+208 %"),
            ("iometer.maxtp-rw50", "+63 %"),
            ("iometer.reallife", "+28 %"),
            ("iometer.rnd8k-r70", "+40 %"),
            ("iscsi-vm", "+28 %"),
        )
    ),
    *DATA["_TRANSPORT_2"],
    Case(
        "the same with jumbo-frames",
        "S003: the order decides",
        _here(),
        reasons("jumbo-frames", "iscsi-vm"),
        (*_ORDER, "iscsi-multipath has it along"),
    ),
    *DATA["_TRANSPORT_3"],
)

_RAID: Final = DATA["_RAID"]

_UNITS: Final = tuple(
    Case(
        f"{level} of {drives} disks behind the controller, if it were RAID 10",
        "S003: RAID 10 of 4 and of 8 disks, RAID 6 of 8",
        openfiler_raid(level, drives, 11175.8),
        limited_what_if("raid=raid10"),
        (
            f"tw0/u0 ({word} of {drives} drives)",
            "the figures of its drives are not known",
            f"--layout {word}x{drives},raid10x{drives}",
        ),
        ("no array here",),
    )
    for level, word, drives in (("RAID-6", "raid6", 8), ("RAID-5", "raid5", 6))
)

_ROUND_ROBIN: Final = 'defaults {\n\tpath_selector "round-robin 0"\n\trr_min_io_rq 1000\n}\n'
_BEFORE_REQUESTS: Final = _ROUND_ROBIN.replace("rr_min_io_rq", "rr_min_io")
_DEVICE: Final = DATA["_DEVICE"]
_SLOW: Final = {"selector": "round-robin", "per_path": ("1000",)}
_MULTIPATH: Final = "file:/etc/multipath.conf:"
_SWITCHES: Final = "S003: the path changes after 1,000 requests by default, which has to be changed"

_PATHS: Final = (
    *(
        Case(
            f"{selector} over links of {' and '.join(map(str, dict.fromkeys(speeds)))} Mbit/s: what they carry",
            "S003: round robin over four equal links",
            _here(selector=selector, mbps=speeds, names=("eth1", "eth2", "eth3", "eth4")[: len(speeds)]),
            ask,
            says,
        )
        for selector, speeds, path, whole in (
            ("round-robin", (1000, 1000, 10_000, 10_000), "471 MB/s reading", "471 MB/s"),
            ("service-time", (1000, 1000, 10_000, 10_000), "2,589 MB/s reading", "2,589 MB/s"),
            ("round-robin", (1000, 1000, 1000, 1000), "471 MB/s reading", "471 MB/s"),
            ("round-robin", (10_000, 1000), "235 MB/s reading", "235 MB/s"),
        )
        for ask, says in ((limited("/vmfs/datastore1"), (path,)), (limited_host(), (whole,)))
    ),
    *(
        Case(
            f"rr_min_io_rq 1000 in multipath.conf, kernel {kernel}",
            _SWITCHES,
            _here(kernel=kernel, conf=_ROUND_ROBIN, selector="round-robin"),
            ask,
            says,
            ("→ 1;", "(advice)"),
        )
        for kernel in (NEW_KERNEL, RHEL_8)
        for ask, says in (
            (found("iscsi.late-path-switch"), ("no finding",)),
            (planned("iscsi-multipath"), ("sends one request a turn by itself since 4.6", "has no effect")),
        )
    ),
    *DATA["_PATHS"],
    *(
        Case(
            f"the table says 1000 and there is no multipath.conf, kernel {kernel}: {title}",
            _SWITCHES,
            _here(kernel=kernel, conf="", **_SLOW),
            ask,
            says,
            ("cannot be read",),
        )
        for kernel, section in ((RHEL_7, "defaults"), ("3.16.0-4-amd64", "overrides"))
        for title, ask, says in (
            (
                "plan",
                planned("iscsi-multipath"),
                (f"'{section} {{', 'rr_min_io_rq 1' and '}}'", "multipathd reconfigure"),
            ),
            ("scan", found("iscsi.late-path-switch"), ("prints the lines for a new one as a manual step",)),
        )
    ),
    *DATA["_PATHS_2"],
    *(
        Case(
            f"rr_min_io 1000 in multipath.conf, kernel {kernel}: the kernel goes by {key}",
            _SWITCHES,
            _here(kernel=kernel, conf=_BEFORE_REQUESTS, **_SLOW),
            planned("iscsi-multipath"),
            (f"{_MULTIPATH}defaults/{key} {before} → 1",),
            (f"/{other} ",),
        )
        for kernel, key, before, other in (
            (RHEL_5, "rr_min_io", "1000", "rr_min_io_rq"),
            ("2.6.27.19-5-default", "rr_min_io", "1000", "rr_min_io_rq"),
            ("2.6.32-754.el6.x86_64", "rr_min_io_rq", "(unset)", "rr_min_io"),
        )
    ),
    *(
        Case(
            f"rr_min_io 1000 in multipath.conf, kernel {kernel}: whether the line counts",
            _SWITCHES,
            _here(kernel=kernel, conf=_BEFORE_REQUESTS, **_SLOW),
            found("advice.rr-min-io"),
            says,
        )
        for kernel, says in (
            (RHEL_5, ("no finding",)),
            ("2.6.32-754.el6.x86_64", ("which is not used", "delete the line")),
        )
    ),
    *DATA["_PATHS_3"],
)

_NODE: Final = f"/etc/iscsi/nodes/{IQN}"
_DEPTHS: Final = "S003: iSCSI parameters are set before anything of the disks is looked at"


def _small_record() -> Callable[[], Host]:
    """A host whose one record was made with smaller queues than open-iscsi's own."""
    path = f"{_NODE}/10.20.1.20,3260,1/default"
    made = initiator(names=("ens1",), maps=False, timeout="120", records=True)
    made.files[path] = record("10.20.1.20", cmds_max="32", queue_depth="16")
    return made.host


def _unreadable() -> Host:
    """The scan of a user who is not root: neither iscsid.conf nor the records can be read."""
    made = initiator(records=True)
    contents = {path: text.encode() for path, text in made.files.items() if not path.startswith("/etc/iscsi")}
    secret = {"/etc/iscsi/nodes": "Permission denied", "/etc/iscsi/iscsid.conf": "Permission denied"}
    files = MemoryFiles(contents, made.links, frozenset(made.directories), secret)
    return Host(files, RecordedCommands(made.answers), is_live=False, is_root=False)


_RECORDS: Final = (
    Case(
        "a node record with smaller queues than open-iscsi's own",
        _DEPTHS,
        _small_record(),
        planned("iscsi"),
        (
            f"file:{_NODE}/10.20.1.20,3260,1/default:node.session.cmds_max 32 → 128",
            f"file:{_NODE}/10.20.1.20,3260,1/default:node.session.queue_depth 16 → 32",
            "--logout",
            "unmount its file systems first",
        ),
        (SECRET,),
    ),
    Case(
        "records of four paths below multipath that hold I/O for 120 s",
        "S003: four paths to one target, round robin",
        _here(records=True),
        planned("iscsi-multipath"),
        tuple(
            f"{_NODE}/10.20.{n}.20,3260,1/default:node.session.timeo.replacement_timeout 120 → 15" for n in range(1, 5)
        ),
        (SECRET,),
    ),
    Case(
        "without root the records are named as unread",
        _DEPTHS,
        _unreadable,
        planned("iscsi"),
        ("file:/etc/iscsi/nodes:node.session.cmds_max: it cannot be read (Permission denied) and keeps what it has",),
    ),
    *DATA["_RECORDS"],
)

_SETUP: Final = DATA["_SETUP"]

_TARGET: Final = (
    *DATA["_TARGET"],
    Case(
        "the same with LIO",
        f"{_GAINS}+28 % (RealLife)",
        lambda: storage(lio=True),
        recommended("jumbo-frames", "iscsi-vm"),
        ("jumbo-frames: yes (workload)", "links=eth1,eth2,eth3,eth4"),
    ),
    *DATA["_TARGET_2"],
    Case(
        "one RAID 10 of 4 disks",
        "S003: two independent datastores of 4 disks each",
        lambda: storage(drives=4, gib=3725.28),
        found("controllers.two-small-arrays"),
        ("no finding",),
    ),
    Case(
        "RAID 6 of 8 disks, exported, nothing declared",
        "S003: RAID 6 of 8 disks was worse, most of all at random",
        lambda: storage(kind="RAID-6", gib=11175.8),
        found("controllers.parity-small-writes"),
        ("controllers.parity-small-writes (info)", "RAID 10"),
    ),
    Case(
        "RAID 6 of 8 disks, exported, virtual machines",
        "S003: RAID 6 of 8 disks was worse, most of all at random",
        lambda: storage(kind="RAID-6", gib=11175.8),
        found("controllers.parity-small-writes", "iscsi-vm"),
        ("controllers.parity-small-writes (advice)",),
    ),
)

CASES: Final[tuple[Case, ...]] = (*_TRANSPORT, *_SETUP, *_PATHS, *_RECORDS, *_TARGET, *_RAID + _UNITS)
