"""The settings of another host: what of it comes over, and what belongs to that host alone."""

from __future__ import annotations

from advisor.interchange.from_host import import_host
from advisor.interchange.planned import plan_imported
from advisor.interchange.records import Imported
from advisor.interchange.to_profile import to_profile
from tests.interchange.hosts import CPU, PROC, became, machine, values

OTHER: dict[str, str | bytes] = {
    f"{PROC}/kernel/hostname": "there\n",
    f"{PROC}/vm/swappiness": "10\n",
    f"{PROC}/net/ipv4/tcp_mem": "1 2 3\n",
    f"{PROC}/fs/aio-nr": "17\n",
    f"{PROC}/kernel/shmmni": "4096\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    "/sys/block/nvme0n1/queue/read_ahead_kb": "512\n",
    "/sys/block/nvme1n1/queue/read_ahead_kb": "512\n",
    "/sys/block/sda/queue/scheduler": "mq-deadline [kyber] none\n",
}
HERE: dict[str, str | bytes] = {f"{PROC}/net/ipv4/tcp_mem": "4 5 6\n", f"{PROC}/fs/aio-nr": "0\n"}


def like(other: dict[str, str | bytes], here: dict[str, str | bytes]) -> Imported:
    found = import_host(machine(other), machine(here), "faithful", where="there.tar.gz")
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
