"""The settings of another host: what of it comes over, and what belongs to that host alone."""

from __future__ import annotations

import pytest

from advisor.host import Host, Missing, NoCommands
from advisor.host.ethtool import Answer
from advisor.importers.from_host import import_host
from advisor.importers.records import Imported, Mode
from advisor.importers.to_profile import to_profile
from tests.cases import read_cases
from tests.importers.hosts import CPU, PROC, became, machine, values
from tests.importers.plans import plan_imported

DATA = read_cases(__file__)

OTHER: dict[str, str | bytes] = DATA["OTHER"]
HERE: dict[str, str | bytes] = {f"{PROC}/net/ipv4/tcp_mem": "4 5 6\n", f"{PROC}/fs/aio-nr": "0\n"}


def like(other: dict[str, str | bytes], here: dict[str, str | bytes], mode: Mode = "faithful") -> Imported:
    found = import_host(machine(other), machine(here), mode, where="there.tar.gz")
    assert len(to_profile(found).tunables) == len(values(found))
    return found


def test_what_differs_comes_over() -> None:
    found = like(OTHER, HERE)
    assert found.name == "like-there"
    made = values(found)
    assert made["sysctl:vm.swappiness"] == "10"
    assert made["thp:enabled"] == "never"
    assert became(found, "net.core.somaxconn")[0].why == "it is the same here"


def test_disks_are_brought_over_by_their_kind() -> None:
    found = like(OTHER, HERE)
    (ahead,) = [one for one in found.settings if one.key == "nvme drives: read_ahead_kb"]
    assert (ahead.tunable, ahead.value) == ("block:{disk}:read_ahead_kb", "512")
    assert ahead.only is not None
    assert (ahead.only.kinds, ahead.only.rotational) == (("nvme",), False)
    mixed = like({**OTHER, "/sys/block/nvme1n1/queue/read_ahead_kb": "4096\n"}, HERE)
    assert became(mixed, "nvme drives: read_ahead_kb")[0].outcome == "manual"


def test_what_the_kernel_works_out_from_memory_is_left_where_that_differs() -> None:
    assert values(like(OTHER, HERE))["sysctl:net.ipv4.tcp_mem"] == "1 2 3"
    smaller: dict[str, str | bytes] = {**HERE, "/proc/meminfo": "MemTotal: 8388608 kB\n"}
    assert became(like(OTHER, smaller), "net.ipv4.tcp_mem")[0].outcome == "manual"


def test_governors_come_over_where_all_cpus_have_one() -> None:
    policy = f"{CPU}/cpufreq/policy0/scaling_governor"
    found = like({**OTHER, policy: "performance\n"}, HERE)
    assert values(found)["cpufreq:*:governor"] == "performance"
    assert became(like(OTHER, HERE), "governor")[0].why == "it is the same here"
    mixed = {**OTHER, f"{CPU}/cpufreq/policy1/scaling_governor": "performance\n"}
    assert became(like(mixed, HERE), "governor")[0].outcome == "manual"


def test_counters_and_keys_that_this_kernel_lacks_are_ignored() -> None:
    found = like(OTHER, HERE)
    assert became(found, "fs.aio-nr")[0].outcome == "ignored"
    assert "no such key" in became(found, "kernel.shmmni")[0].why


def test_a_host_like_itself_has_nothing_to_bring() -> None:
    assert values(like(OTHER, OTHER)) == {}


def test_the_plan_makes_the_one_like_the_other() -> None:
    here = machine(HERE)
    plan = plan_imported(import_host(machine(OTHER), here, "faithful", where="x"), here)
    after = {change.tunable: change.after for change in plan.changes}
    assert after["sysctl:vm.swappiness"] == "10"
    assert after["block:nvme0n1:read_ahead_kb"] == "512"
    assert after["block:sda:scheduler"] == "kyber"


SMALLER: dict[str, str | bytes] = DATA["SMALLER"]


def test_in_intent_limits_and_buffers_are_only_raised() -> None:
    found = like(SMALLER, {}, "intent")
    (most,) = became(found, "net.core.rmem_max")
    assert most.outcome == "ignored"
    assert most.why == "this host has more of it, 4194304, and in intent it is only raised"
    (triple,) = became(found, "net.ipv4.tcp_rmem")
    assert (triple.value, triple.sense) == ("8192 131072 6291456", "at-least")
    assert "33554432" in triple.note
    assert became(found, "net.core.somaxconn")[0].sense == "at-least"
    assert became(found, "vm.swappiness")[0].sense == "exactly"
    here = machine()
    after = {change.tunable: change.after for change in plan_imported(found, here).changes}
    assert after["sysctl:net.ipv4.tcp_rmem"] == "8192 131072 33554432"
    assert after["sysctl:net.core.somaxconn"] == "65535"
    assert "sysctl:net.core.rmem_max" not in after


@pytest.mark.parametrize("mode", ["faithful", "intent"])
def test_what_would_be_lowered_is_told(mode: Mode) -> None:
    reported = {one.key: one for one in like(SMALLER, {}, mode).differences}
    assert sorted(reported) == ["net.core.rmem_max", "net.ipv4.tcp_rmem"]
    assert reported["net.core.rmem_max"].faithful == "lowers it from 4194304 to 425984"
    assert reported["net.core.rmem_max"].why == "there has less of it than this host"
    assert like({}, {}, mode).differences == ()


def test_where_no_part_is_larger_nothing_comes_over() -> None:
    found = like({f"{PROC}/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n"}, {}, "intent")
    assert became(found, "net.ipv4.tcp_rmem")[0].outcome == "ignored"


def test_faithful_lowers() -> None:
    assert values(like(SMALLER, {}))["sysctl:net.core.rmem_max"] == "425984"


def with_link(mtu: int, rx: int = 256) -> Host:
    device = "/sys/devices/pci0000:00/0000:00:03.0"
    links = {
        f"{device}/net/eth0/device": "../../../0000:00:03.0",
        f"{device}/driver": "/sys/bus/pci/drivers/virtio_net",
    }
    files = machine({f"{device}/net/eth0/mtu": f"{mtu}\n"}, links=links).files
    none = dict.fromkeys(("rx_mini", "rx_mini_max", "rx_jumbo", "rx_jumbo_max"), 0)
    answers: dict[tuple[str, str], Answer | Missing] = {
        ("eth0", "rings"): {**none, "rx": rx, "rx_max": 4096, "tx": 256, "tx_max": 4096}
    }
    return Host(files, NoCommands(), is_root=True, ethtool_answers=answers)


@pytest.mark.parametrize(("theirs", "ours", "words"), DATA["an_mtu_is_left_to_a_person_with_what"])
def test_an_mtu_is_left_to_a_person_with_what_raises_it_or_not(theirs: int, ours: int, words: str) -> None:
    found = import_host(with_link(theirs), with_link(ours), "intent", where="x")
    (one,) = became(found, "virtio_net: mtu")
    assert one.outcome == "manual"
    assert words in one.why


@pytest.mark.parametrize(("theirs", "ours", "mode", "became_of_it"), DATA["rings_are_buffers_too"])
def test_rings_are_buffers_too(theirs: int, ours: int, mode: Mode, became_of_it: tuple[str, str]) -> None:
    found = import_host(with_link(1500, theirs), with_link(1500, ours), mode, where="x")
    (one,) = became(found, "virtio_net: ring.rx")
    assert (one.outcome, one.sense) == became_of_it
    assert bool(found.links) == (one.outcome == "tunable")
    assert to_profile(found).name == "like-here"
