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
    Case(
        "virtual machines, 8 KiB random, 35 % writes, MTU 1500",
        f"{_GAINS}+28 % (RealLife)",
        _here(),
        recommended("jumbo-frames", "iscsi-vm"),
        ("jumbo-frames: yes (workload)", "links=eth1,eth2,eth3,eth4"),
        ("none of the cases", "white paper"),
    ),
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
    Case(
        "one path without multipath, other names",
        f"{_GAINS}+40 % (random 8 KiB)",
        _here(names=("ens2f0",), maps=False, timeout="120"),
        recommended("iscsi", "iometer.rnd8k-r70"),
        ("iscsi: yes (workload)", "advisor plan iscsi"),
    ),
    Case(
        "the gain and what it rests on are said",
        "S003: +28 % and +40 % for the mixed loads",
        _here(),
        found("links.mtu-below-range", "iometer.reallife"),
        ("links.mtu-below-range (advice)", "links=eth1,eth2,eth3,eth4"),
    ),
    Case(
        "backup to iSCSI disks, nothing declared of the transport",
        "S003: sequential transfers over iSCSI gained most (+208 %)",
        _here(),
        recommended("iscsi-multipath", "backup"),
        ("iscsi-multipath: yes (workload)",),
    ),
    Case(
        "streaming-read from iSCSI disks, nothing declared of the transport",
        "S003: sequential reads over iSCSI: +208 %",
        _here(maps=False, timeout="120"),
        recommended("iscsi", "streaming-read"),
        ("iscsi: yes (workload)",),
    ),
    Case(
        "the same, declared to stay on the host",
        "S003: the gain is that of the storage's links",
        _here(),
        recommended("iscsi", "backup,transport=local"),
        ("iscsi: no (unfit)", "Nothing of the declared workload crosses the network"),
    ),
    Case(
        "requests of 512 bytes",
        "S003: requests of 8 and 32 KiB gained; a request that fits into a frame gains nothing by a larger one",
        _here(),
        recommended("jumbo-frames", "iscsi-vm,block=512"),
        ("jumbo-frames: no (unfit)", "fit into a frame of today (1,500 bytes)"),
    ),
    Case(
        "MTU 9000 from end to end already",
        "S003: jumbo frames are part of step 2: done",
        _here(mtu=9000),
        recommended("jumbo-frames", "iscsi-vm"),
        ("in-force",),
        ("unfit",),
    ),
    Case(
        "order and stop rule with the recommendation",
        "S003: links first with a file below the memory; no further step before they are near their maximum; then "
        "the disks with a file of twice the memory",
        _here(),
        reasons("iscsi-multipath", "iscsi-vm"),
        _ORDER,
    ),
    Case(
        "the same with jumbo-frames",
        "S003: the order decides",
        _here(),
        reasons("jumbo-frames", "iscsi-vm"),
        (*_ORDER, "iscsi-multipath has it along"),
    ),
    Case(
        "backup to an NFS mount",
        "S000: sequential writes over the network gain by jumbo frames",
        _mounted("90 1 0:50 / /backup rw - nfs4 nas:/x rw,vers=4.2,proto=tcp,clientaddr=192.0.2.7,addr=192.0.2.9"),
        recommended("jumbo-frames", "backup"),
        ("jumbo-frames: yes (workload)", "links=eth2"),
        ("eth1",),
    ),
    Case(
        "backup with local disks alone",
        "S003: the gain is that of storage over links, and none is seen here",
        _mounted("90 1 8:1 / /backup rw - xfs /dev/sda1 rw"),
        recommended("jumbo-frames", "backup"),
        ("jumbo-frames: perhaps (intent)",),
    ),
)

_RAID: Final = (
    Case(
        "the article's controller: RAID 6 of 8 disks behind a 3ware 9650SE, virtual machines",
        "S003: RAID 6 of 8 disks was worse than RAID 10, most of all at random",
        openfiler_raid("RAID-6", 8, 11175.8),
        found("controllers.parity-small-writes", "iscsi-vm"),
        ("RAID 10", "controllers.parity-small-writes (advice)"),
    ),
    Case(
        "the same unit below a file system that was made without its stripes",
        "S003: the RAID level and its stripes were compared",
        openfiler_raid("RAID-6", 8, 11175.8),
        found("filesystems.not-aligned"),
        ("tw0/u0", "su=256k,sw=6"),
    ),
    Case(
        "what the path of the unit leads through",
        "S003: RAID 10 of 4 and of 8 disks, RAID 6 of 8",
        openfiler_raid("RAID-10", 8, 7450.56),
        limited("/mnt/vmstore"),
        ("tw0/u0: raid10 of 8 drives, behind its controller, 256 KiB chunks",),
    ),
)

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
_DEVICE: Final = """\
defaults {
\tuser_friendly_names yes
}
devices {
\tdevice {
\t\tvendor "IBM"
\t\tproduct "2145"
\t\trr_min_io_rq 4
\t}
\tdevice {
\t\tvendor "OPNFILER"
\t\tproduct "VIRTUAL-DISK"
\t\tpath_selector "round-robin 0"
\t\trr_min_io_rq 1000
\t}
}
"""
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
    Case(
        "the same, kernel 3.10: it is the count that holds",
        _SWITCHES,
        _here(kernel=RHEL_7, conf=_ROUND_ROBIN, **_SLOW),
        planned("iscsi-multipath"),
        (f"{_MULTIPATH}defaults/rr_min_io_rq 1000 → 1",),
    ),
    Case(
        "the count stands in the device section of this storage, kernel 3.10",
        _SWITCHES,
        _here(kernel=RHEL_7, conf=_DEVICE, **_SLOW),
        planned("iscsi-multipath"),
        (f"{_MULTIPATH}devices/device[OPNFILER,VIRTUAL-DISK]/rr_min_io_rq 1000 → 1",),
        (f"{_MULTIPATH}defaults/rr_min_io_rq 1000", "IBM", "defaults/rr_min_io_rq (unset)"),
    ),
    Case(
        "overrides win over the device section, kernel 3.16",
        _SWITCHES,
        _here(kernel="3.16.0-4-amd64", conf=f"{_DEVICE}overrides {{\n\trr_min_io_rq 500\n}}\n", **_SLOW),
        planned("iscsi-multipath"),
        (f"{_MULTIPATH}overrides/rr_min_io_rq 500 → 1",),
        ("rr_min_io_rq 1000 →",),
    ),
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
    Case(
        "the table says 1000 and no file does, kernel 3.10",
        _SWITCHES,
        _here(kernel=RHEL_7, **_SLOW),
        found("iscsi.late-path-switch"),
        ("iscsi.late-path-switch (advice)", "advisor plan iscsi-multipath"),
    ),
    Case(
        "the same: what is planned",
        _SWITCHES,
        _here(kernel="4.4.0-116-generic", **_SLOW),
        planned("iscsi-multipath"),
        (f"{_MULTIPATH}overrides/rr_min_io_rq (unset) → 1",),
    ),
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
    Case(
        "the same, kernel 2.6.18: the path changes late",
        _SWITCHES,
        _here(kernel=RHEL_5, conf=_BEFORE_REQUESTS, **_SLOW),
        found("iscsi.late-path-switch"),
        ("iscsi.late-path-switch (advice)", "advisor plan iscsi-multipath"),
    ),
    Case(
        "the same with unequal links: there is no service-time in that kernel",
        _SWITCHES,
        _here(kernel=RHEL_5, conf=_BEFORE_REQUESTS, mbps=(1000, 1000, 10_000, 10_000), **_SLOW),
        planned("iscsi-multipath"),
        ("Linux 2.6.18-419.el5 has no other", f"{_MULTIPATH}defaults/rr_min_io 1000 → 1"),
        ("→ service-time",),
    ),
    Case(
        "round robin over four equal links, set by the owner",
        "S003: round robin over four equal links",
        _here(conf=_ROUND_ROBIN, selector="round-robin"),
        planned("iscsi-multipath"),
        ("round-robin at /etc/multipath.conf:2 (defaults) is left: its links are equal", "--set selector="),
        ("service-time 0",),
    ),
    Case(
        "round robin over unequal links, in a device section",
        "S003: each path has to carry the same, which unequal links cannot",
        _here(conf=_DEVICE, selector="round-robin", mbps=(1000, 1000, 1000, 10_000)),
        planned("iscsi-multipath"),
        ("devices/device[OPNFILER,VIRTUAL-DISK]/path_selector round-robin 0 → service-time 0",),
    ),
    Case(
        "paths that carry unequally",
        "S003: with sequential access each path has to be loaded alike, with 1 Gbit/s",
        _here(conf=_ROUND_ROBIN, selector="round-robin", requests=(900_000, 880_000, 890_000, 1_000)),
        found("iscsi.unequal-paths"),
        ("iscsi.unequal-paths (advice)", "mpatha", "advisor scan --interval 10"),
    ),
    Case(
        "paths that carry equally",
        "S003: with sequential access each path has to be loaded alike",
        _here(conf=_ROUND_ROBIN, selector="round-robin", requests=(900_000, 880_000, 890_000, 910_000)),
        found("iscsi.unequal-paths"),
        ("no finding",),
    ),
    Case(
        "two priority groups: the second waits for the first",
        "S003: equal load is asked of the paths that are used side by side",
        _here(conf=_ROUND_ROBIN, selector="round-robin", groups=2, requests=(900_000, 880_000, 100, 90)),
        found("iscsi.unequal-paths"),
        ("no finding",),
    ),
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
    Case(
        "default queues in iscsid.conf and in the records",
        _DEPTHS,
        _here(records=True, mtu=9000),
        planned("iscsi"),
        ("node.session.cmds_max: already set", "node.session.queue_depth: already set"),
        ("cmds_max 128 →",),
    ),
)

_SETUP: Final = (
    Case(
        "four VLANs with an address range each",
        "S003: 4 VLANs with different IP ranges for 4 links",
        _here(),
        found("iscsi.paths-share-subnet"),
        ("no finding",),
    ),
    Case(
        "four paths in one range",
        "S003: 4 VLANs with different IP ranges for 4 links",
        _here(subnets=(1, 1, 1, 1)),
        found("iscsi.paths-share-subnet"),
        ("iscsi.paths-share-subnet (advice)", "a subnet (and a VLAN) of its own"),
    ),
    Case(
        "four sessions by one link",
        "S003: each path has a link of its own and carries 1 Gbit/s",
        _here(sessions={"local": "10.20.1.7"}),
        found("iscsi.paths-share-link"),
        ("iscsi.paths-share-link (advice)", "eth1"),
    ),
    Case(
        "one link of four left at 1500",
        "S003: the first pitfall is a faulty jumbo-frame configuration",
        _here(mtu=(9000, 9000, 9000, 1500)),
        found("iscsi.mtu-differs"),
        ("iscsi.mtu-differs (warning)", "advisor plan iscsi"),
    ),
    Case(
        "the switch is part of it",
        "S003: ping with large packets that must not be fragmented; think of the switch",
        _here(),
        planned("iscsi"),
        ("link:eth1:mtu 1500 → 9000", "advisor probe asks"),
    ),
    Case(
        "small bursts were negotiated, sequential work",
        _DEPTHS,
        _here(sessions={"max_burst_len": "65536"}),
        found("iscsi.small-bursts", "iometer.maxtp-r100"),
        ("iscsi.small-bursts",),
    ),
    Case(
        "read-ahead of the disks and of the map",
        "S003: sequential reads over four links, 394.5 MB/s",
        _here(mtu=9000),
        planned("iscsi-multipath"),
        ("block:dm-0:read_ahead_kb 128 → 1024", "block:sdb:read_ahead_kb 128 → 1024"),
    ),
)

_TARGET: Final = (
    Case(
        "the storage server itself (IET of Openfiler 2.3): the order, with the size of its file",
        "S003: 8 GB of memory, so a file of 16 GB for the disks, and a smaller one before",
        storage,
        found("iscsi.order"),
        ("--size=16384m", "STOP here", "steps 1 and 2 from the initiator"),
    ),
    Case(
        "the storage server: MTU of the links towards the initiator",
        f"{_GAINS}+40 % (random 8 KiB)",
        storage,
        recommended("jumbo-frames", "iometer.rnd8k-r70"),
        ("jumbo-frames: yes (workload)", "links=eth1,eth2,eth3,eth4"),
        ("eth0",),
    ),
    Case(
        "the same with LIO",
        f"{_GAINS}+28 % (RealLife)",
        lambda: storage(lio=True),
        recommended("jumbo-frames", "iscsi-vm"),
        ("jumbo-frames: yes (workload)", "links=eth1,eth2,eth3,eth4"),
    ),
    Case(
        "one RAID 10 of 8 disks behind the links",
        "S003: 385.3 against 377.8 MB/s and 138.0 against 171.7 IOPS: better two of 4 disks",
        storage,
        found("controllers.two-small-arrays"),
        ("controllers.two-small-arrays (info)", "two arrays of half the drives"),
    ),
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
