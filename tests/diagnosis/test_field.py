"""What administrators meet is answered first, and what resembles it raises no alarm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from advisor.diagnosis.cause import BindingCause
from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import read_context
from advisor.host import Completed, Host, MemoryFiles, RecordedCommands
from advisor.host.ethtool import Answer
from advisor.observe.series import take_sample
from advisor.observe.span import CounterSpan
from tests.diagnosis.field import LOOK_ALIKES, MET, _writers, since_boot
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


def test_what_a_mapping_waits_for_by_itself_is_not_looked_for_in_its_drive() -> None:
    drive = Disk("nvme0n1", 1000, 0, 128, 16, 0.12, busy=0.12, number="259:0")
    mapping = Disk("dm-0", 1000, 0, 128, 16, 9.0, busy=1.0, below=("nvme0n1",), number="253:0")
    found = diagnose_machine(Machine(io_some=0.8, iowait=0.2, disks=(drive, mapping))).binds
    assert found[0].device == "dm-0"
    assert "mapping itself" in found[0].advice
    assert not [text for text in found[0].commands if "smartctl" in text]


def test_a_volume_of_a_server_has_no_drive_to_look_at() -> None:
    lun = Disk("sdc", 28, 0, 16, 16, 34, busy=0.96, number="8:32")
    vendor = {"/sys/block/sdc/device/vendor": "LIO-ORG", "/sys/block/sdc/device/model": "lun0"}
    found = diagnose_machine(Machine(io_some=0.9, iowait=0.2, disks=(lun,), extra=vendor)).binds
    assert found[0].id == "disk.slow"
    assert not [text for text in found[0].commands if "smartctl" in text]


def _first(machine: Machine) -> BindingCause:
    return diagnose_machine(machine).binds[0]


def test_a_member_of_a_bond_that_is_full_while_another_has_room_asks_for_another_policy() -> None:
    found = _first(MET["bond of which one member is full"].machine)  # type: ignore[arg-type]
    assert (found.device, found.help) == ("eth0", "tuning")
    assert "xmit_hash_policy" in found.advice


def test_what_is_asked_for_again_and_what_is_overtaken_is_not_called_lost() -> None:
    found = _first(Machine(tcp={"InSegs": 40_000, "OutSegs": 20_000, "TCPOFOQueue": 3000}))
    assert found.id == "net.loss"
    assert "out of order" in found.title


def test_half_open_connections_are_not_called_dropped_ones() -> None:
    found = _first(Machine(tcp={"TCPReqQFullDoCookies": 800, "PassiveOpens": 50}))
    assert found.id == "net.listen-drops"
    assert "half-open" in found.title
    assert "sysctl:net.ipv4.tcp_max_syn_backlog" in found.commands[1]


def test_the_limit_of_a_container_that_sees_its_own_groups_alone() -> None:
    found = _first(Machine(groups=(Group("/", throttled=0.6, quota="100000 100000"),)))
    assert found.title.startswith("This container has used up its CPU quota")
    assert found.commands == ("cat /sys/fs/cgroup/cpu.max",)


def test_a_slow_device_of_a_cluster_has_no_drive_to_look_at() -> None:
    found = _first(Machine(io_some=0.9, iowait=0.2, disks=(Disk("rbd0", 30, 0, 16, 16, 31, number="251:0"),)))
    assert (found.id, found.device) == ("disk.slow", "rbd0")
    assert not [text for text in found.commands if "smartctl" in text]


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


@pytest.mark.parametrize(
    ("driver", "counters"),
    [
        ("ixgbe", {"rx_missed_errors": 0, "rx_no_dma_resources": 2000}),
        ("mlx5_core", {"rx_out_of_buffer": 5000, "rx_discards_phy": 0}),
        ("ice", {"rx_dropped.nic": 900}),
        ("i40e", {"port.rx_dropped": 900}),
        ("vmxnet3", {"  pkts rx OOB": 900, "  pkts rx err": 0}),
        ("ena", {"rx_drops": 900, "tx_drops": 0}),
    ],
)
def test_what_a_card_dropped_by_its_driver_alone(driver: str, counters: dict[str, float]) -> None:
    machine = Machine(links=(Link(rx_bytes=6e8),))
    found = _diagnose_hosts(machine, lambda at: {}, counters, driver).binds
    assert [(one.id, one.device) for one in found] == [("net.ring-drops", "eth0")]
    few = {name: rate / 1000 for name, rate in counters.items()}
    assert _diagnose_hosts(machine, lambda at: {}, few, driver).binds == ()


@pytest.mark.parametrize(("high", "file"), [("67108864", "memory.high"), ("max", "memory.max")])
def test_dirty_pages_of_a_group_are_shown_the_file_that_holds_it(high: str, file: str) -> None:
    def make(at: float) -> Machine:
        machine = _writers(at, dirty=6_291_456, written=3_145_728)
        (group,) = machine.groups
        most = "134217728" if high != "max" else group.memory_max
        group = replace(group, path="/pods/loader", memory_max=most, more={**group.more, "memory.high": f"{high}\n"})
        return replace(machine, groups=(group,))

    dirty = next(one for one in diagnose_machine(since_boot(make)).binds if one.id == "memory.dirty-limit")
    assert dirty.commands == (f"cat /sys/fs/cgroup/pods/loader/{file}",)


@pytest.mark.parametrize(
    ("memory", "late", "help_word", "words"),
    [
        (4_190_000, 0, "tuning", "the memory for them is full"),
        (200_000, 0, "repair", "they are damaged, or overlap"),
        (200_000, 400, "repair", "a fragment never came"),
    ],
)
def test_why_fragments_are_not_put_together(memory: int, late: int, help_word: str, words: str) -> None:
    counts = {"ReasmReqds": 6000, "ReasmFails": 400, "ReasmTimeout": late}
    files = {
        "/proc/net/sockstat": f"sockets: used 90\nFRAG: inuse 9 memory {memory}\n",
        "/proc/sys/net/ipv4/ipfrag_high_thresh": "4194304\n",
    }
    found = _first(Machine(fragments=counts, extra=files))
    assert (found.id, found.help) == ("net.reassembly", help_word)
    assert words in found.title
    assert any("ipfrag_high_thresh" in command for command in found.commands) is (help_word == "tuning")


def test_an_arm_with_one_request_after_the_other_has_no_queue() -> None:
    found = _first(
        Machine(io_some=0.93, iowait=0.24, disks=(Disk("sda", 105, 0, 16, 16, 9, busy=0.95, rotational=True),))
    )
    assert (found.id, found.title) == ("disk.saturated", "sda is always busy, with one request after the other")


@pytest.mark.parametrize(("psi", "of_host", "share"), [(True, 0.06, None), (True, 0.3, 0.3), (False, 0.0, 0.0)])
def test_a_group_of_version_1_waits_no_longer_than_the_host(psi: bool, of_host: float, share: float | None) -> None:
    """Its version does not count for how long."""
    group = Group("/loader", memory_max="209715200", memory_hits=900)
    machine = Machine(psi=psi, version1=True, memory_some=of_host, groups=(group,))
    found = [one for one in diagnose_machine(machine).binds if one.id == "memory.cgroup-limit"]
    assert [one.share for one in found] == ([] if share is None else [share])
    assert all(one.evidence["stalled_share"] == "unknown" for one in found)


def test_nobody_is_named_who_may_have_used_another_device() -> None:
    disks = (
        Disk("sda", 4, 400, 16, 4, 9.0, flushes=400, flush_ms=2.2, rotational=True),
        Disk("nvme0n1", 900, 0, 64, 16, 0.1, number="259:0"),
    )
    compiler = Process("cc1", "", read=5e7)
    found = _first(Machine(io_some=0.9, iowait=0.2, disks=disks, processes=(compiler,)))
    assert (found.device, found.asks) == ("sda", None)


def test_a_file_system_without_inodes_is_no_full_one() -> None:
    found = _first(Machine(filesystems=(FileSystem("/mail", used=10**9, available=10**11, grows=0, free_inodes=0),)))
    assert (found.title, found.of) == ("The file system /mail has no inodes left: 100.0 % used", "inodes")
    assert "full_in_s" not in found.evidence
    assert found.asks is None
    assert found.commands[0] == "df -i /mail"


def test_a_change_of_the_carrier_is_down_or_up() -> None:
    found = _first(Machine(links=(Link("veth0", device=False, carrier=0.6),)))
    assert (found.id, found.title) == ("net.errors", "veth0 lost its carrier 3 times")
    assert found.commands == ("ip -d -s link show veth0",)


@pytest.mark.parametrize(("somaxconn", "help_word"), [("128", "tuning"), ("4096", "application")])
def test_a_queue_that_is_long_already_is_not_to_be_lengthened(somaxconn: str, help_word: str) -> None:
    machine = Machine(
        tcp={"ListenOverflows": 40, "ListenDrops": 40, "PassiveOpens": 90},
        extra={"/proc/sys/net/core/somaxconn": f"{somaxconn}\n"},
    )
    found = _first(machine)
    assert (found.id, found.help) == ("net.listen-drops", help_word)
    assert any("advisor plan" in one for one in found.commands) is (help_word == "tuning")


def test_the_limit_of_tasks_is_shown_where_it_is() -> None:
    found = _first(Machine(version1=True, groups=(Group("/pods/web", refused=3.0),)))
    assert found.commands == ("cat /sys/fs/cgroup/pids/pods/web/pids.max",)
    assert found.asks is None
