"""What the record of a kernel parameter says of a value, whoever asks: a scan, a plan, an explanation."""

from __future__ import annotations

import pytest

from advisor.facts.settings import ATTRIBUTES, CAUTIONS, KEYS, SETTINGS, find_setting
from advisor.facts.settings.record import Machine
from advisor.profiles.requested import known_ids, parse_value, values_profile
from advisor.report.explain import explain_id
from advisor.rules.settings.sysctls import is_bad, judge_value
from advisor.tunables.block import ATTRIBUTES as BLOCK
from advisor.tunables.catalogue import find_harm
from tests.rules.build import facts, identity


@pytest.mark.parametrize("key", SETTINGS)
def test_a_record_says_what_the_key_is_and_cites_it(key: str) -> None:
    one = SETTINGS[key]
    assert one.does.endswith(".")
    assert one.citations or one.until or one.key.startswith("net."), key
    assert (one.low or 0) <= (one.high if one.high is not None else one.low or 0)
    assert bool(one.until) == bool(one.moved_to)
    for other in (one.twin, one.same_as):
        assert not other or key in (SETTINGS[other].twin, SETTINGS[other].same_as)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_a_scan_reads_has_a_record_with_its_harm(key: str) -> None:
    one = find_setting(key)
    assert one is not None
    is_judged = bool(one.lower_hurts or one.higher_hurts or one.cautions)
    assert is_judged or one.until or one.is_counter or one.holds == "words"


def test_what_is_no_key_has_a_record_with_its_harm() -> None:
    for name, one in ATTRIBUTES.items():
        assert (one.does[-1:], bool(one.citations)) == (".", True), name
        assert one.hurts or one.hurts_of or one.lower_hurts or one.higher_hurts, name
    asked = (
        *(f"block:sda:{name}" for name in BLOCK),
        *(f"link:eth0:{name}" for name in ("mtu", "ring.tx", "pause.rx")),
    )
    assert [name for name in asked if find_setting(name) is None] == []


@pytest.mark.parametrize(
    ("tunable", "value", "other"),
    [
        ("cmdline:mitigations", "off", "auto"),
        ("cmdline:spec_store_bypass_disable", "off", None),
        ("cpufreq:boost", "0", "1"),
        ("link:eth0:feature.rx-lro", "on", "off"),
        ("block:dm-0:scheduler", "bfq", "none"),
    ],
)
def test_the_harm_of_a_word_is_of_that_word(tunable: str, value: str, other: str | None) -> None:
    assert find_harm(tunable, value)
    assert other is None or find_harm(tunable, value) != find_harm(tunable, other)


@pytest.mark.parametrize(
    ("key", "value", "kernel", "found"),
    [
        ("net.ipv4.tcp_window_scaling", "0", "6.1.0", ["advice.tcp-window-scaling-off"]),
        ("net.ipv4.tcp_window_scaling", "1", "6.1.0", []),
        ("net.ipv4.tcp_tw_recycle", "1", "6.1.0", ["advice.tcp-tw-recycle"]),
        ("kernel.sched_latency_ns", "24000000", "6.1.0", ["sysctl.gone"]),
        ("kernel.sched_latency_ns", "24000000", "5.4.0", []),
        ("net.ipv4.tcp_fack", "1", "4.18.0", ["advice.without-effect"]),
        ("net.ipv4.tcp_fack", "1", "3.10.0", []),
        ("net.ipv4.tcp_low_latency", "1", "4.14.0", ["advice.without-effect"]),
        ("net.ipv4.tcp_low_latency", "1", "3.10.0", []),
        ("net.ipv4.tcp_adv_win_scale", "2", "6.6.0", ["advice.adv-win-scale"]),
        ("net.ipv4.tcp_adv_win_scale", "2", "6.5.0", []),
        ("net.ipv4.tcp_tw_reuse", "2", "6.1.0", []),
        ("net.ipv4.tcp_tw_reuse", "2", "4.18.0", ["advice.tcp-tw-reuse"]),
        ("net.ipv4.tcp_congestion_control", "htcp", "6.1.0", ["advice.old-lore"]),
        ("net.ipv4.tcp_congestion_control", "bbr", "6.1.0", []),
        ("net.ipv4.tcp_rmem", "word", "6.1.0", []),
        ("kernel.nobody_knows", "1", "6.1.0", []),
    ],
)
def test_a_value_is_judged_by_the_kernel_that_runs(key: str, value: str, kernel: str, found: list[str]) -> None:
    judged = judge_value(facts(host=identity(kernel=kernel)), key, value)
    assert [one.id for one in judged] == found


def test_what_is_better_can_be_set() -> None:
    judged = {
        one.id: one
        for key, value in (("vm.dirty_ratio", "80"), ("vm.swappiness", "0"))
        for one in judge_value(facts(), key, value)
    }
    high, zero = judged["advice.dirty-ratio-high"], judged["advice.swappiness-zero"]
    assert (high.better, high.remedy and high.remedy.argument) == ("20", "sysctl:vm.dirty_ratio<=20")
    assert (zero.better, zero.remedy and zero.remedy.argument) == ("10", "sysctl:vm.swappiness=10")


@pytest.mark.parametrize(("kernel", "better"), [("4.18.0", "0"), ("4.19.0", "2")])
def test_the_better_value_is_that_of_the_running_kernel(kernel: str, better: str) -> None:
    (found,) = judge_value(facts(host=identity(kernel=kernel)), "net.ipv4.tcp_tw_reuse", "1")
    assert (found.better, found.remedy and found.remedy.value) == (better, better)


@pytest.mark.parametrize("key", [one.key for one in SETTINGS.values() if one.until])
def test_a_caution_of_no_effect_is_for_kernels_without_it(key: str) -> None:
    before = Machine(kernel=(2, 5))
    assert [one.id for one in SETTINGS[key].cautions if one.is_of_gone and is_bad(one, before, key, "1")] == []
    assert not SETTINGS[key].does.startswith("Nothing")


def test_of_an_unknown_machine_nothing_is_claimed() -> None:
    nothing = Machine()
    assert not nothing.is_since((2, 6))
    assert all(not one.gone or not nothing.is_since(one.gone.since) for one in CAUTIONS)


def test_another_products_caution_is_not_the_values_own() -> None:
    (line,) = values_profile([parse_value("vm.swappiness=1")]).tunables
    own = find_setting("vm.swappiness")
    assert own is not None
    assert line.hurts_when == own.harm_of("1") == find_harm("sysctl:vm.swappiness", "1")
    assert own.citations[0] in line.sources


@pytest.mark.parametrize(
    ("value", "before", "harms"),
    [("10", "60", "lower"), ("90", "60", "higher"), ("0", "", "lower"), ("60", "", "both"), ("60", "60", "none")],
)
def test_the_harm_goes_by_the_direction(value: str, before: str, harms: str) -> None:
    one = find_setting("vm.swappiness")
    assert one is not None
    said = one.harm_of(value, before)
    assert (one.lower_hurts in said) is (harms in ("lower", "both"))
    assert (one.higher_hurts in said) is (harms in ("higher", "both"))


@pytest.mark.parametrize("written", ["vm.dirty_ratio", "vm/dirty_ratio", "sysctl:vm.dirty_ratio"])
def test_a_key_is_explained_in_each_of_its_forms(written: str) -> None:
    found = explain_id(written)
    rows = dict(found.details)
    assert found.id == "sysctl:vm.dirty_ratio"
    assert rows["default"] == "20"
    assert "advice.dirty-ratio-high" in rows["caution"]
    assert "vm.dirty_bytes" in rows["instead of"]


@pytest.mark.parametrize("key", ["kernel.sched_nr_migrate", "net.ipv4.tcp_tw_recycle", "net/ipv4/tcp_low_latency"])
def test_a_key_that_is_gone_is_explained_with_where_it_went(key: str) -> None:
    found = explain_id(key)
    setting = find_setting(found.id.removeprefix("sysctl:"))
    assert setting is not None
    assert dict(found.details)["gone"] == setting.went


def test_an_id_that_is_offered_names_a_key() -> None:
    offered = [one for one in known_ids("eth0") if one.startswith("sysctl:")]
    assert "sysctl:kernel.threads-max" in offered
    assert [one for one in offered if "*" in one] == []


@pytest.mark.parametrize(
    ("key", "value", "before", "is_weaker"),
    [
        ("net.ipv4.conf.all.route_localnet", "1", "0", True),
        ("kernel.kptr_restrict", "2", "0", False),
        ("kernel.unprivileged_bpf_disabled", "1", "2", False),
        ("kernel.perf_event_paranoid", "-1", "2", True),
        ("fs.suid_dumpable", "1", "0", True),
        ("vm.swappiness", "1", "60", False),
    ],
)
def test_a_guard_is_weaker_in_its_own_direction(key: str, value: str, before: str, is_weaker: bool) -> None:
    record = find_setting(key)
    assert record is not None
    assert record.is_weaker(value, before) is is_weaker


def test_a_negative_number_has_its_own_direction() -> None:
    paranoid, runtime = SETTINGS["kernel.perf_event_paranoid"], SETTINGS["kernel.sched_rt_runtime_us"]
    assert paranoid.harm_of("-1", "2") == paranoid.lower_hurts
    assert runtime.harm_of("-1", "950000") == runtime.higher_hurts
