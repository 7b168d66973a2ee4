"""Values that the kernel takes and a host suffers from: refused, or warned of, by what the host has."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.errors import RefusedError, UsageError
from advisor.facts.system.roles import parse_listeners
from advisor.host import Host
from advisor.planner import plan_profiles
from advisor.planning.records import Plan, Skipped
from tests.cases import cases
from tests.planning.system import GIB, applied, planned, system, values
from tests.serving_hosts import UNITS, serving_host
from tests.whole_hosts import DISTRIBUTIONS, WholeHost

CASES = cases(__file__)

LIMITS = CASES["LIMITS"]
RELEASE = "6.1.0-18-amd64"


SEGMENTS = (
    "       key      shmid perms                  size  cpid  lpid nattch\n"
    "         0         32   600             268435456  1200  1300      2\n"
    "1234567890      65569   666              33554432  1200  1300      9\n"
)


def host_of(gib: int = 64, sysctl: Mapping[str, str] = {}, files: Mapping[str, str] = {}) -> Host:
    made = WholeHost(DISTRIBUTIONS["debian-12"], gib=gib, cpus=8)
    made.sysctl({**LIMITS, **sysctl})
    made.plain_disk("sda", gib=960, at=("/boot", "/"))
    made.files |= {"/proc/loadavg": "0.10 0.20 0.30 2/1234 999\n", "/proc/sysvipc/shm": SEGMENTS, **files}
    made.files |= {"/proc/1/limits": "Max open files            1024                 524288               files     \n"}
    return made.host()


def blocked(plan: Plan) -> Skipped:
    [one] = plan.blocking
    assert plan.changes == ()
    return one


def planned_here(word: str, gib: int = 64, sysctl: Mapping[str, str] = {}, files: Mapping[str, str] = {}) -> Plan:
    return plan_profiles(host_of(gib, sysctl, files), [word], {})


@pytest.mark.parametrize(("word", "says"), CASES["what does not fit the host is refused"])
def test_what_does_not_fit_the_host_is_refused(word: str, says: str) -> None:
    assert says in blocked(planned_here(word)).reason


@pytest.mark.parametrize("word", CASES["what fits is planned without a word"])
def test_what_fits_is_planned_without_a_word(word: str) -> None:
    plan = planned_here(word)
    assert [one.tunable for one in plan.changes] == [word.partition("=")[0]]
    assert plan.notes == ()


FREE = "sysctl:vm.min_free_kbytes="


@pytest.mark.parametrize(("kib", "gib", "files", "live", "note"), CASES["a share of the memory"])
def test_a_share_of_the_memory(kib: str, gib: int, files: Mapping[str, str], live: str, note: str | None) -> None:
    assert "kept free" in blocked(planned_here(f"{FREE}1048576", gib=16)).reason
    plan = planned_here(f"{FREE}{kib}", gib, {"vm.min_free_kbytes": live}, files)
    assert [one.after for one in plan.changes] == [kib]
    assert [note in one for one in plan.notes[:1] if note] == ([True] if note else [])


@pytest.mark.parametrize(("word", "mode", "is_refused"), CASES["strict accounting keeps room for what runs"])
def test_strict_accounting_keeps_room_for_what_runs(word: str, mode: str, is_refused: bool) -> None:
    memory = "MemTotal: 67108864 kB\nMemAvailable: 40000000 kB\nSwapTotal: 0 kB\nCommitLimit: 33554432 kB\n"
    meminfo = f"{memory}Committed_AS: 8000000 kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n"
    sysctl = {"vm.overcommit_memory": mode, "vm.overcommit_kbytes": "0"}
    refused = pytest.raises(RefusedError, match="no program could start")
    with refused if is_refused else contextlib.nullcontext():
        assert planned_here(word, sysctl=sysctl, files={"/proc/meminfo": meminfo}).changes


MODULES = {
    f"/lib/modules/{RELEASE}/modules.dep": "kernel/net/ipv4/tcp_bbr.ko.xz:\nkernel/net/sched/sch_cake.ko.xz:\n",
    f"/lib/modules/{RELEASE}/modules.builtin": "kernel/net/sched/sch_fq_codel.ko\n",
    "/proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic\n",
    "/proc/sys/kernel/osrelease": f"{RELEASE}\n",
}


def test_a_word_for_a_number_is_a_mistake_of_the_call_whatever_else_forbids_it() -> None:
    files = {"/etc/sysctl.d/99-local.conf": "vm.swappiness = 20\nvm.laptop_mode = 5\n"}
    for word in ("sysctl:vm.swappiness=ten", "sysctl:vm.laptop_mode=five"):
        with pytest.raises(UsageError, match="number"):
            planned_here(word, files=files, sysctl={"vm.laptop_mode": "0"})


CONGESTION, QDISC = "sysctl:net.ipv4.tcp_congestion_control=", "sysctl:net.core.default_qdisc="


@pytest.mark.parametrize(("word", "refusal", "note"), CASES["an algorithm is the kernels or in a module"])
def test_an_algorithm_is_the_kernels_or_in_a_module(word: str, refusal: str | None, note: str | None) -> None:
    plan = planned_here(word, files=MODULES)
    if refusal:
        assert blocked(plan).reason == refusal
        return
    assert [one.after for one in plan.changes] == [word.partition("=")[2]]
    assert [note in one for one in plan.notes if note] == ([True] if note else [])
    unlisted = planned_here(f"{CONGESTION}bbr", files={"/proc/sys/kernel/osrelease": f"{RELEASE}\n"})
    assert [one.after for one in unlisted.changes] == ["bbr"]
    assert "whether the kernel has bbr is unknown" in unlisted.notes[0]


@pytest.mark.parametrize(("gib", "word", "is_changed"), CASES["bytes are compared with what the ratio amounts to"])
def test_bytes_are_compared_with_what_the_ratio_amounts_to(gib: int, word: str, *, is_changed: bool) -> None:
    plan = planned_here(word, gib)
    assert bool(plan.changes) is is_changed
    assert plan.blocking == ()
    # Huge pages are no memory that can be dirty.
    huge = "HugePages_Total: 28672\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"
    files = {"/proc/meminfo": f"MemTotal: 67108864 kB\nMemAvailable: 9000000 kB\n{huge}"}
    plan = planned_here("sysctl:vm.dirty_background_bytes<=1073741824", files=files)
    assert [one.state for one in plan.skipped] == ["in-place"]


def test_a_ratio_is_compared_with_the_bytes_that_hold() -> None:
    held = {"vm.dirty_background_ratio": "0", "vm.dirty_background_bytes": "1073741824"}
    plan = planned_here("sysctl:vm.dirty_background_ratio<=5", sysctl=held)
    assert [one.state for one in plan.skipped] == ["in-place"]
    assert "vm.dirty_background_bytes is 1,024 MiB, 2 % of this host's memory" in plan.skipped[0].reason
    wide = {"vm.dirty_background_ratio": "0", "vm.dirty_background_bytes": "9999999999"}
    assert [one.after for one in planned_here("sysctl:vm.dirty_background_ratio<=5", sysctl=wide).changes] == ["5"]


LISTENING = CASES["LISTENING"]


def test_a_wider_range_of_ports_names_the_services_and_reserved_ports_inside() -> None:
    made = WholeHost(DISTRIBUTIONS["debian-12"], gib=8, cpus=4)
    made.sysctl({"net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.ip_local_reserved_ports": "18080,40000"})
    made.answer(["ss", "-Htuln"], LISTENING)
    notes = plan_profiles(made.host(), ["sysctl:net.ipv4.ip_local_port_range=16384 65535"], {}).notes
    assert "of the wider range 18080 are reserved, and stay so" in notes[0]
    assert "services listen on 16390,27017, which the wider range takes in" in notes[1]
    assert "advisor plan sysctl:net.ipv4.ip_local_reserved_ports=16390,18080,27017,40000" in notes[1]
    narrow = plan_profiles(made.host(), ["sysctl:net.ipv4.ip_local_port_range=33000 60999"], {})
    assert narrow.notes == ()


def test_a_range_below_the_privileged_ports_is_refused() -> None:
    sysctl = {"net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.ip_unprivileged_port_start": "1024"}
    assert "below 1024" in blocked(planned_here("sysctl:net.ipv4.ip_local_port_range=100 60999", sysctl=sysctl)).reason


PAIRS = [
    (("kafka", "kvm-host"), "sysctl:vm.swappiness", "1", "kafka"),
    (("kvm-host", "kafka"), "sysctl:vm.swappiness", "1", "kafka"),
    (("kafka", "minio"), "sysctl:vm.max_map_count", "524288", "minio"),
]


@pytest.mark.parametrize(("names", "tunable", "value", "profile"), PAIRS)
def test_of_two_bounds_the_stricter_serves_both(names: tuple[str, ...], tunable: str, value: str, profile: str) -> None:
    plan = plan_profiles(serving_host([UNITS[one] for one in names]), names, {})
    [made] = [one for one in plan.changes if one.tunable == tunable]
    assert (made.after, made.profile) == (value, profile)
    assert any(f"{tunable}: " in note and f"{value} serves both" in note for note in plan.notes)


def test_a_bound_in_bytes_and_one_in_percent_are_no_conflict() -> None:
    host = host_of(gib=64)
    plan = plan_profiles(
        host, ["sysctl:vm.dirty_background_bytes<=1073741824", "sysctl:vm.dirty_background_ratio<=5"], {}
    )
    assert [one.tunable for one in plan.changes] == ["sysctl:vm.dirty_background_bytes"]
    assert plan.blocking == ()


BOTH = ("postgresql", "mysql")


def test_huge_pages_of_two_profiles_are_added_up() -> None:
    host = serving_host([UNITS[one] for one in BOTH])
    plan = plan_profiles(host, BOTH, {"postgresql.huge_pages": "4200", "mysql.huge_pages": "1000"})
    assert {one.tunable: one.after for one in plan.changes}["sysctl:vm.nr_hugepages"] == "5200"
    assert "4200 for postgresql and 1000 for mysql, 5200 together" in plan.notes[0]
    same = plan_profiles(host, BOTH, {"postgresql.huge_pages": "1000", "mysql.huge_pages": "1000"})
    assert {one.tunable: one.after for one in same.changes}["sysctl:vm.nr_hugepages"] == "2000"
    # A total that a person names is a total.
    total = plan_profiles(host, ["postgresql", "sysctl:vm.nr_hugepages>=3000"], {"huge_pages": "1000"})
    assert {one.tunable: one.after for one in total.changes}["sysctl:vm.nr_hugepages"] == "3000"


@pytest.mark.parametrize(("names", "settings", "words"), CASES["settings of two profiles that do not fit"])
def test_settings_of_two_profiles_that_do_not_fit(
    names: tuple[str, ...], settings: Mapping[str, str], words: str
) -> None:
    host = serving_host([UNITS[one] for one in names])
    with pytest.raises(UsageError, match=words):
        plan_profiles(host, names, settings)
    if "kafka" in names:
        plan = plan_profiles(host, names, {"swappiness": "20", "kafka.swappiness": "10"})
        assert {one.tunable: one.after for one in plan.changes}["sysctl:vm.swappiness"] == "10"


def test_a_condition_on_what_could_not_be_read_claims_nothing() -> None:
    files = {"/sys/kernel/mm/transparent_hugepage/enabled": "garbage\n"}
    plan = plan_profiles(host_of(files=files), ["low-latency"], {})
    [thp] = [one for one in plan.skipped if one.tunable == "thp:enabled"]
    assert thp.state == "not-applicable"
    assert thp.reason.startswith("memory.thp_enabled is unknown here (")


def test_huge_pages_are_added_to_those_that_another_profile_holds(tmp_path: Path) -> None:
    slices = "/sys/fs/cgroup/system.slice"
    memory = f"MemTotal: {16 * GIB} kB\nMemAvailable: {12 * GIB} kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n"
    files = {
        "/proc/sys/vm/nr_hugepages": "0\n",
        "/proc/meminfo": memory,
        **{f"{slices}/{unit}/cgroup.procs": "7\n" for unit in ("postgresql.service", "mariadb.service")},
    }
    system(tmp_path, files=files)
    applied(tmp_path, "postgresql", huge_pages="1000")
    plan = planned(tmp_path, "mysql", huge_pages="500")
    assert values(plan)["sysctl:vm.nr_hugepages"] == ("1000", "1500")
    assert any("1000 are held by 0001 (postgresql) for postgresql, 500 more are for mysql" in one for one in plan.notes)
    applied(tmp_path, "mysql", huge_pages="500")
    for name, count in (("postgresql", "1000"), ("mysql", "500")):
        again = planned(tmp_path, name, huge_pages=count)
        assert "sysctl:vm.nr_hugepages" not in values(again)
        assert again.blocking == ()


@pytest.mark.parametrize(("words", "sysctl", "note"), CASES["a background that begins no earlier is named"])
def test_a_background_that_begins_no_earlier_is_named(
    words: tuple[str, ...], sysctl: Mapping[str, str], note: str | None
) -> None:
    live = {"bytes": "0", "background_bytes": "0", "ratio": "20", "background_ratio": "10"}
    host = host_of(64, {**{f"vm.dirty_{name}": value for name, value in live.items()}, **sysctl})
    made = plan_profiles(host, [f"sysctl:vm.dirty_{word}" for word in words], {}, foresees=True)
    said = [one.why for one in made.foreseen if one.id == "sysctl.out-of-order"]
    assert [note in one for one in said] == [True] if note else not said


def test_ports_of_a_listing() -> None:
    assert parse_listeners(LISTENING) == {22, 16390, 27017, 53, 18080}
