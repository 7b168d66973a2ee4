"""What administrators meet is answered first, and what resembles it raises no alarm."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import read_context
from advisor.host import Completed, Host, MemoryFiles, RecordedCommands
from advisor.host.ethtool import Answer
from advisor.observe.rates import take_sample
from advisor.observe.sample import CounterSpan
from tests.diagnosis.field import LOOK_ALIKES, MET
from tests.diagnosis.hidden import Moments
from tests.diagnosis.moments import Disk, FileSystem, Group, Link, Machine, Process, diagnose_machine, files_at
from tests.diagnosis.test_degraded import DEGRADED, NARROWER


@pytest.mark.parametrize("name", MET)
def test_what_is_met_is_named_first(name: str) -> None:
    case = MET[name]
    found = [one.id for one in diagnose_machine(case.machine).binds]
    assert found[:1], "nothing binds"
    assert found[0] in case.first.split(), found
    assert set(case.all.split()) <= set(found)
    assert set(case.never.split()).isdisjoint(found), found


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_resembles_it_is_no_alarm(name: str) -> None:
    found = diagnose_machine(LOOK_ALIKES[name])
    assert found.binds == (), [(one.id, one.device, one.share, one.evidence) for one in found.binds]


@pytest.mark.repeats(2)
@pytest.mark.parametrize("how", DEGRADED)
def test_with_less_to_read_nothing_else_is_named(how: str) -> None:
    wrong: dict[str, str] = {}
    for name, case in MET.items():
        right = {*case.first.split(), *case.all.split()}
        right |= {wider for identity in right for wider in NARROWER.get(identity, set())}
        found = [] if callable(case.machine) else [one.id for one in DEGRADED[how](case.machine).binds]
        wrong |= {name: found[0]} if found and found[0] not in right else {}
    alarms = {
        name: binds[0].id
        for name, machine in LOOK_ALIKES.items()
        if not callable(machine) and (binds := DEGRADED[how](machine).binds)
    }
    assert wrong | alarms == {}


def test_an_array_whose_members_are_all_full_is_named_by_itself() -> None:
    disks = tuple(
        Disk(f"sd{letter}", 110, 10, 16, 16, 42, busy=1.0, rotational=True, number=f"8:{16 * at}")
        for at, letter in enumerate("abcdef")
    )
    names = tuple(one.name for one in disks)
    array = Disk("md0", 660, 30, 16, 16, 43, busy=1.0, rotational=True, below=names, number="9:0")
    found = diagnose_machine(Machine(io_some=0.95, iowait=0.5, disks=(*disks, array))).binds
    assert [(one.id, one.device) for one in found] == [("disk.saturated", "md0")]
    # Where one member has room, those that have none are named.
    found = diagnose_machine(Machine(io_some=0.95, iowait=0.5, disks=(*disks[1:], Disk("sda"), array))).binds
    assert {one.device for one in found} == {*names} - {"sda"}


def _fragments(memory: int, late: int) -> Machine:
    files = {
        "/proc/net/sockstat": f"sockets: used 90\nFRAG: inuse 9 memory {memory}\n",
        "/proc/sys/net/ipv4/ipfrag_high_thresh": "4194304\n",
    }
    return Machine(fragments={"ReasmReqds": 6000, "ReasmFails": 400, "ReasmTimeout": late}, extra=files)


def _backlog(longest: int) -> Machine:
    counts = {"ListenOverflows": 40, "ListenDrops": 40, "PassiveOpens": 90}
    return Machine(tcp=counts, extra={"/proc/sys/net/core/somaxconn": f"{longest}\n"})


_DRIVE = Disk("nvme0n1", 1000, 0, 128, 16, 0.12, busy=0.12, number="259:0")
_MAPPING = Disk("dm-0", 1000, 0, 128, 16, 9.0, busy=1.0, below=("nvme0n1",), number="253:0")
_LUN = {"/sys/block/sdc/device/vendor": "LIO-ORG", "/sys/block/sdc/device/model": "lun0"}
_USED = (Disk("sda", 4, 400, 16, 4, 9.0, flushes=400, flush_ms=2.2, rotational=True),
         Disk("nvme0n1", 900, 0, 64, 16, 0.1, number="259:0"))  # fmt: skip

# Of the first answer: its fields as they are; of texts, a part that is there, or after a "-" none.
# fmt: off
TOLD: dict[str, tuple[Moments, dict[str, object]]] = {
    "a mapping that waits by itself":
        (Machine(io_some=0.8, iowait=0.2, disks=(_DRIVE, _MAPPING)),
         {"device": "dm-0", "advice": "mapping itself", "commands": "-smartctl"}),
    "a volume of a server has no drive to look at":
        (Machine(io_some=0.9, iowait=0.2, disks=(Disk("sdc", 28, 0, 16, 16, 34, busy=0.96, number="8:32"),),
                 extra=_LUN),
         {"id": "disk.slow", "commands": "-smartctl"}),
    "a slow device of a cluster has no drive to look at":
        (Machine(io_some=0.9, iowait=0.2, disks=(Disk("rbd0", 30, 0, 16, 16, 31, number="251:0"),)),
         {"id": "disk.slow", "device": "rbd0", "commands": "-smartctl"}),
    "a member of a bond that is full while another has room":
        (MET["bond of which one member is full"].machine,
         {"device": "eth0", "help": "tuning", "advice": "xmit_hash_policy"}),
    "segments that were overtaken are not called lost":
        (Machine(tcp={"InSegs": 40_000, "OutSegs": 20_000, "TCPOFOQueue": 3000}),
         {"id": "net.loss", "title": "out of order"}),
    "half-open connections are not called dropped ones":
        (Machine(tcp={"TCPReqQFullDoCookies": 800, "PassiveOpens": 50}),
         {"id": "net.listen-drops", "title": "half-open", "commands": "sysctl:net.ipv4.tcp_max_syn_backlog"}),
    "a container that sees its own groups alone":
        (Machine(groups=(Group("/", throttled=0.6, quota="100000 100000"),)),
         {"title": "This container has used up its CPU quota", "commands": ("cat /sys/fs/cgroup/cpu.max",)}),
    "fragments for which memory is full":
        (_fragments(4_190_000, 0), {"id": "net.reassembly", "help": "tuning", "title": "the memory for them is full",
                                    "commands": "ipfrag_high_thresh"}),
    "fragments that are damaged":
        (_fragments(200_000, 0), {"id": "net.reassembly", "help": "repair", "title": "they are damaged, or overlap",
                                  "commands": "-ipfrag_high_thresh"}),
    "fragments that never came":
        (_fragments(200_000, 400), {"id": "net.reassembly", "help": "repair", "title": "a fragment never came",
                                    "commands": "-ipfrag_high_thresh"}),
    "an arm with one request after the other":
        (Machine(io_some=0.93, iowait=0.24, disks=(Disk("sda", 105, 0, 16, 16, 9, busy=0.95, rotational=True),)),
         {"id": "disk.saturated", "title": "sda is always busy, with one request after the other"}),
    "who may have used another device is not named":
        (Machine(io_some=0.9, iowait=0.2, disks=_USED, processes=(Process("cc1", "", read=5e7),)),
         {"device": "sda", "asks": None}),
    "a file system without inodes is no full one":
        (Machine(filesystems=(FileSystem("/mail", used=10**9, available=10**11, grows=0, free_inodes=0),)),
         {"title": "The file system /mail has no inodes left: 100.0 % used", "of": "inodes", "asks": None,
          "evidence": "-full_in_s", "commands": "df -i /mail"}),
    "a carrier that is lost":
        (Machine(links=(Link("veth0", device=False, carrier=0.6),)),
         {"id": "net.errors", "title": "veth0 lost its carrier 3 times", "commands": ("ip -d -s link show veth0",)}),
    "a queue that can be lengthened":
        (_backlog(128), {"id": "net.listen-drops", "help": "tuning", "commands": "advisor plan"}),
    "a queue that is long already":
        (_backlog(4096), {"id": "net.listen-drops", "help": "application", "commands": "-advisor plan"}),
    "the limit of tasks is shown where it is":
        (Machine(version1=True, groups=(Group("/pods/web", refused=3.0),)),
         {"commands": ("cat /sys/fs/cgroup/pids/pods/web/pids.max",), "asks": None}),
}
# fmt: on


@pytest.mark.parametrize("name", TOLD)
def test_what_is_told_of_it(name: str) -> None:
    machine, expected = TOLD[name]
    found = diagnose_machine(machine).binds[0]
    for field, wanted in expected.items():
        value = getattr(found, field)
        if isinstance(wanted, str) and field in ("advice", "title", "commands", "evidence"):
            text = value if isinstance(value, str) else "\n".join(value)
            assert (wanted.removeprefix("-") in text) is not wanted.startswith("-"), (field, value)
        else:
            assert value == wanted, field


_NUMBERS = {"sdb": "8:16", "sdc": "8:32"}


def _diagnose_paths(states: str, well: Machine) -> Diagnosis:
    """A multipath map of sdb and sdc, each ``A`` or ``F`` all the time."""
    paths = " ".join(f"{number} {state} 1 0 1" for number, state in zip(_NUMBERS.values(), states, strict=True))
    answers = {
        ("dmsetup", "table"): "mpatha: 0 2000 multipath 1 queue_if_no_path 1 alua 1 1 service-time 0 2 2 "
        "8:16 1 1 8:32 1 1\n",
        ("dmsetup", "status", "--noflush"): f"mpatha: 0 2000 multipath 2 0 0 0 1 1 A 0 2 2 {paths} \n",
    }
    return _diagnose_hosts(well, lambda at: answers, {}, "")


def _diagnose_hosts(
    machine: Machine, answers: Callable[[float], Mapping[tuple[str, ...], str]], rates: Mapping[str, float], driver: str
) -> Diagnosis:
    """A machine with commands that answer, and counters of ``ethtool -S eth0`` by what they rise each second."""
    links = {"/sys/class/net/eth0/device/driver": f"/sys/bus/pci/drivers/{driver}"} if driver else {}

    def host(at: float) -> Host:
        files = {path: text.encode() for path, text in files_at(machine, at).items()}
        statistics: Answer = {name: int(rate * at) for name, rate in rates.items()}
        return Host(
            MemoryFiles(files, links),
            RecordedCommands({words: Completed(0, text, "") for words, text in answers(at).items()}),
            is_root=True,
            ethtool_answers={("eth0", "statistics"): statistics},
        )

    samples = [take_sample(host(1000.0 + at), clock=lambda at=float(at): at) for at in (0, 10)]  # type: ignore[misc]
    return diagnose(CounterSpan(samples), read_context(host(1000)), 0.0)


def _map(slow: bool = False) -> Machine:
    wait = 24.0 if slow else 1.0
    return Machine(
        io_some=0.9 if slow else 0.05,
        iowait=0.2 if slow else 0.02,
        disks=(
            Disk("sdb", 40, 0, 16, 16, wait, number="8:16"),
            Disk("sdc", 0, 0, number="8:32"),
            Disk("dm-0", 40, 0, 16, 16, wait, below=("sdb", "sdc"), number="253:0"),
        ),
        extra={
            "/sys/block/dm-0/dm/uuid": "mpath-3600a098038303053\n",
            "/sys/block/dm-0/dm/name": "mpatha\n",
            **{f"/sys/block/{name}/device/vendor": "NETAPP" for name in _NUMBERS},
            **{f"/sys/block/{name}/device/model": "LUN C-Mode" for name in _NUMBERS},
        },
    )


def test_a_path_that_is_lost_all_the_time_is_named_before_the_slow_one() -> None:
    assert _diagnose_paths("AA", _map()).binds == ()
    found = _diagnose_paths("AF", _map(slow=True)).binds
    assert [one.id for one in found] == ["array.degraded", "disk.slow"]
    assert found[0].title == "mpatha has lost 1 path"
    assert found[0].commands[0] == "multipath -ll"
    assert "rebuild" not in found[0].advice
