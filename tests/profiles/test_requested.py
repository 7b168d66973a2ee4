"""What stands where a profile may stand: values by the id of their tunable, and profile files."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from advisor.errors import AdvisorError, InvalidInputError, RefusedError, UsageError
from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import load, profile_paths
from advisor.profiles.requested import (
    RequestedProfile,
    WantedValue,
    load_one,
    load_requested,
    parse_value,
    profile_name,
    values_profile,
    with_kind,
)
from advisor.report.plan import apply_command, plan_text
from tests.cases import read_cases
from tests.cli.inside import call_inside
from tests.trees import host_of, make_tree

DATA = read_cases(__file__)

FILES = {
    "/proc/sys/vm/swappiness": "60\n",
    "/proc/sys/vm/dirty_ratio": "20\n",
    "/proc/sys/net/core/rmem_max": "4194304\n",
    "/proc/sys/kernel/hostname": "node1\n",
    "/proc/meminfo": "MemTotal:       65536000 kB\nMemAvailable:   60000000 kB\n",
    "/proc/sys/net/ipv4/tcp_rmem": "4096 131072 6291456\n",
    "/sys/class/net/eth0/mtu": "1500\n",
    "/sys/block/sda/queue/scheduler": "[mq-deadline] none\n",
    "/etc/machine-id": "0" * 32,
}
SWAP = "sysctl:vm.swappiness"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return host_of(make_tree(tmp_path / "root", FILES))


def plan_of(host: Host, *words: str) -> Plan:
    return plan_profiles(host, words, {})


@pytest.mark.parametrize(("key", "value", "reason"), DATA["numbers_that_are_too_few_or_fall_are_refused"])
@pytest.mark.parametrize("operator", ["=", ">="])
def test_numbers_that_are_too_few_or_fall_are_refused(key: str, value: str, reason: str, operator: str) -> None:
    for command in ("plan", "apply"):
        done = call_inside(command, f"sysctl:net.ipv4.{key}{operator}{value}")
        assert done.returncode == 2
        assert reason in " ".join(done.stderr.split())


def test_numbers_of_a_profile_that_fall_are_blocked(host: Host, tmp_path: Path) -> None:
    own = values_profile([parse_value("sysctl:net.ipv4.tcp_rmem=4096 131072 8388608")])
    (line,) = own.tunables
    fallen = msgspec.structs.replace(own, tunables=(msgspec.structs.replace(line, value="4096 131072 65536"),))
    (skipped,) = plan_profiles(host, [RequestedProfile(fallen, ("own",))], {}).skipped
    assert skipped.state == "blocked"
    assert "has max 65536 below default 131072" in skipped.reason


@pytest.mark.parametrize("value", ["4096 4096 4096", "4096 131072 8388608"])
def test_numbers_that_rise_are_planned(host: Host, value: str) -> None:
    assert [one.after for one in plan_of(host, f"sysctl:net.ipv4.tcp_rmem={value}").changes] == [value]


@pytest.mark.parametrize(
    ("cpus", "reason"),
    [("9", "names CPU 9, which this host does not have: it has CPUs 0-3"), ("2-3", "CPUs 0-1 are"), ("0-3", None)],
)
def test_cpus_of_an_interrupt_that_do_not_exist_are_refused(tmp_path: Path, cpus: str, reason: str | None) -> None:
    listed = {"/sys/devices/system/cpu/present": "0-3\n", "/sys/devices/system/cpu/online": "0-1\n"}
    root = make_tree(tmp_path / "root", {**FILES, **listed, "/proc/irq/40/smp_affinity_list": "0\n"})
    done = call_inside("plan", "--root", root, f"irq:40:affinity={cpus}")
    if reason is None:
        assert done.returncode == 0
    else:
        assert done.returncode == 2
        assert reason in " ".join(done.stderr.split())
        # A profile is blocked by it, with the same reason.
        profile = values_profile([parse_value(f"irq:40:affinity={cpus}")])
        plan = plan_profiles(host_of(root), [RequestedProfile(profile, ("own",))], {})
        assert [(one.state, reason in one.reason) for one in plan.skipped] == [("blocked", True)]


def test_the_reason_of_a_value_begins_with_what_it_is(host: Host) -> None:
    (line,) = values_profile([parse_value("block:sda:scheduler=none")]).tunables
    assert line.why.startswith("How waiting requests of a disk are ordered. ")
    assert "Asked for by its id. beegfs-nvme wants none: " in line.why


@pytest.mark.parametrize(("word", "hurts"), DATA["a_caution_is_of_the_value_that_is_asked_for"])
def test_a_caution_is_of_the_value_that_is_asked_for(word: str, hurts: str) -> None:
    (line,) = values_profile([parse_value(word)]).tunables
    assert line.hurts_when.startswith(hurts)


def test_a_line_that_changes_nothing_explains_no_value() -> None:
    kept = [line for name in profile_paths() for line in load(name).tunables if "not changed" in line.hurts_when]
    assert kept
    for one in kept:
        (line,) = values_profile([WantedValue(one.tunable, "=", "1 2 4194304")]).tunables
        assert "not changed" not in line.hurts_when
        assert one.why not in line.why


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (f"{SWAP}=10", (SWAP, "=", "10")),
        ("sysctl:net.core.rmem_max>=8388608", ("sysctl:net.core.rmem_max", ">=", "8388608")),
        (f"{SWAP}<=10", (SWAP, "<=", "10")),
        ("/proc/sys/vm/swappiness=10", (SWAP, "=", "10")),
        ("/proc/sys/net/ipv4/conf/eth0.7/rp_filter=2", ("sysctl:net.ipv4.conf.eth0/7.rp_filter", "=", "2")),
        ("sysctl:net.ipv4.tcp_rmem=4096  131072 6291456", ("sysctl:net.ipv4.tcp_rmem", "=", "4096 131072 6291456")),
        (
            "unit:x.service:numa=NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa",
            ("unit:x.service:numa", "=", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
        ),
        ("sysfs:/sys/kernel/mm/ksm/run=0", ("sysfs:/sys/kernel/mm/ksm/run", "=", "0")),
    ],
)
def test_a_word_is_an_id_an_operator_and_a_value(word: str, expected: tuple[str, str, str]) -> None:
    found = parse_value(word)
    assert (found.tunable, found.operator, found.value) == expected


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        (SWAP, "expected a value", f"{SWAP}=VALUE"),
        (f"{SWAP}=>10", "one operator", f"'{SWAP}>=VALUE'"),
        (f"{SWAP}==10", "one operator", ""),
        (f"{SWAP}>=10<=20", "one operator", ""),
        (f"{SWAP}>10", "one operator", ""),
        ("sysclt:vm.swappiness=10", "is not a tunable", "did you mean sysctl:vm.swappiness?"),
        ("swappiness.vm=10", "is not a tunable", "did you mean sysctl:vm.swappiness=10?"),
        ("foo.bar.baz=1", "is not a tunable", "begins with one of abi, crypto"),
        ("nett.core.rmem_max=10", "is not a tunable", "did you mean sysctl:net.core.rmem_max=10"),
        ("mtu=9000", "is not a tunable", "--set mtu=9000"),
        ("block:sda:sheduler=none", "is not a tunable", "did you mean block:sda:scheduler?"),
        ("link:eth0:mut=9000", "is not a tunable", "did you mean link:eth0:mtu?"),
        (f"{SWAP}=900", "is not 0 to 200", ""),
        (f"{SWAP}={{x}}", "braces", ""),
        (f"{SWAP}=", "needs one line", f"{SWAP}=VALUE"),
        ("sysctl:net.core.rmem_max>=8M", "8M is not a number", "8M is 8388608"),
        ("vm.nr_hugepages=512GB", "is not a number", "pages of Hugepagesize: 549755813888 bytes, divided by"),
        ("vm.min_free_kbytes=1G", "is not a number", "1G is 1048576"),
        ("net.core.somaxconn=4K", "is not a number", "4K is 4096"),
        ("net.core.somaxconn=4KB", "is not a number", "counts no bytes"),
        ("block:sda:scheduler>=none", ">= needs a number, found 'none'", "block:sda:scheduler=none sets it"),
    ],
)
def test_a_word_that_is_wrong_has_one_message(word: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        load_requested([word])
    assert message in error.value.message
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("sysctl:vm.swapiness=10", "did you mean sysctl:vm.swappiness?"),
        ("link:eth9:mtu=9000", "link:eth0:mtu"),
        ("block:sdb:scheduler=none", "block:sda:scheduler"),
    ],
)
def test_a_tunable_that_the_host_does_not_have_is_a_mistake(host: Host, word: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        plan_of(host, word, "sysctl:vm.dirty_ratio=10")
    assert word.partition("=")[0] in error.value.message
    assert hint in (error.value.hint or "")


def test_a_known_key_that_a_capture_lacks_is_no_other_key(host: Host) -> None:
    for is_live, why in ((False, "not in this capture"), (True, "does not exist")):
        here = Host(host.files, host.commands, is_live=is_live)
        with pytest.raises(UsageError) as error:
            plan_of(here, "kernel.pid_max=4194304")
        assert (why in error.value.message, error.value.hint) == (True, None)


@pytest.mark.parametrize(("kernel", "is_gone"), [("3.10.0", False), ("6.1.0", True)])
def test_a_key_is_gone_from_the_kernels_that_lack_it_alone(host: Host, kernel: str, is_gone: bool) -> None:
    facts = scan(host)
    facts = msgspec.structs.replace(facts, host=msgspec.structs.replace(facts.host, kernel=kernel))
    with pytest.raises(UsageError) as error:
        plan_profiles(host, ["net.ipv4.tcp_tw_recycle=1"], {}, facts=facts)
    assert ("since Linux 4.12" in error.value.message) is is_gone


@pytest.mark.parametrize(("word", "is_harm"), DATA["a_limit_above_all_memory_takes_nothing_away"])
def test_a_limit_above_all_memory_takes_nothing_away(tmp_path: Path, word: str, is_harm: bool) -> None:
    key = word.partition("=")[0].replace(".", "/")
    here = host_of(make_tree(tmp_path / "other", {**FILES, f"/proc/sys/{key}": "18446744073692774399\n"}))
    (change,) = plan_of(here, word).changes
    assert ("Databases" in change.hurts_when) is is_harm


def test_a_word_in_the_place_of_a_number_is_a_mistake(host: Host) -> None:
    with pytest.raises(UsageError, match="10=3 is not a number"):
        plan_of(host, f"{SWAP}=10=3")


def test_operators_are_exactly_at_least_and_at_most(host: Host) -> None:
    for word, after in ((f"{SWAP}=10", "10"), (f"{SWAP}<=10", "10"), (f"{SWAP}>=70", "70")):
        assert [change.after for change in plan_of(host, word).changes] == [after]
    for word in (f"{SWAP}=60", f"{SWAP}<=70", f"{SWAP}>=10"):
        plan = plan_of(host, word)
        assert plan.is_empty
        assert not plan.cannot_apply


def test_the_plan_has_the_reasons_of_the_library_and_the_command_that_asks_again(host: Host) -> None:
    plan = plan_of(host, f"{SWAP}=10", "sysctl:net.core.rmem_max>=8388608")
    assert len(plan.profiles) == 1
    swap = next(change for change in plan.changes if change.tunable == SWAP)
    assert "iris wants at most 5: Pages of IRIS" in swap.why
    assert swap.hurts_when == "File pages that are read again and again are dropped."
    assert swap.sources
    assert swap.persist == f"/etc/sysctl.d/90-advisor-{plan.profiles[0]}.conf"
    command = "advisor apply sysctl:vm.swappiness=10 'sysctl:net.core.rmem_max>=8388608'"
    assert apply_command(plan) == command
    assert f"\n  {command}\n" in plan_text(plan, width=100, color=False)
    assert plan_of(host, f"{SWAP}=10", "sysctl:net.core.rmem_max>=8388608").fingerprint == plan.fingerprint


def test_names_are_those_of_profiles_and_depend_on_the_tunables_alone() -> None:
    assert profile_name([SWAP]) == "set-vm-swappiness"
    assert values_profile([parse_value(f"{SWAP}=10")]).name == values_profile([parse_value(f"{SWAP}<=20")]).name
    two = values_profile([parse_value(f"{SWAP}=10"), parse_value("thp:enabled=never")])
    assert two.title == "2 values"
    assert profile_name(["thp:enabled", SWAP]) == two.name
    assert profile_name([SWAP, "thp:defrag"]) != two.name
    long = profile_name([f"file:/etc/{'x' * 80}.conf:KEY"])
    for name in (two.name, long, profile_name(["link:Wlan0:mtu"])):
        # As older readers of a journal check it.
        assert load_pattern_allows(name)


def load_pattern_allows(name: str) -> bool:
    import re

    return re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name) is not None


def test_a_value_and_a_profile_go_together_unless_they_differ(host: Host) -> None:
    plan = plan_of(host, "socket-buffers-8m", f"{SWAP}=10")
    assert plan.profiles == ("socket-buffers-8m", "set-vm-swappiness")
    assert plan.words == ("socket-buffers-8m", f"{SWAP}=10")
    with pytest.raises(UsageError, match="rmem_max: socket-buffers-8m wants 8388608, set-net-core-rmem-max wants 4096"):
        plan_of(host, "socket-buffers-8m", "sysctl:net.core.rmem_max=4096")
    with pytest.raises(UsageError, match="given twice"):
        plan_of(host, f"{SWAP}=10", f"{SWAP}=20")


def test_reasons_that_are_given_stand(host: Host) -> None:
    asked = values_profile([WantedValue(SWAP, "=", "10", "Because.", "Never.", ("a book",))])
    assert (asked.tunables[0].why, asked.tunables[0].hurts_when, asked.sources) == ("Because.", "Never.", ("a book",))


def test_how_a_gain_is_shown() -> None:
    proof = load_one(["sysctl:net.core.rmem_max>=8388608"]).profile.proof
    assert proof is not None
    assert (proof.toggle, proof.reconnect) == ("T1", "connections")
    boot = load_one(["cmdline:intel_idle.max_cstate=1"]).profile.proof
    assert boot is not None
    assert boot.toggle == "T3"
    with pytest.raises(UsageError, match="expected one profile"):
        load_one(["socket-buffers-8m", f"{SWAP}=10"])


OWN = DATA["OWN"]


def test_a_file_is_a_profile(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "heir.toml").write_text(OWN.replace('"own"', '"heir"').replace("[[", 'inherits = ["own"]\n[['))
    monkeypatch.chdir(tmp_path)
    for word in ("./own.toml", "own.toml", str(tmp_path / "own.toml")):
        plan = plan_of(host, word)
        assert plan.profiles == ("own",)
        assert apply_command(plan) == f"advisor apply {tmp_path}/own.toml"
    assert plan_of(host, "./heir.toml").changes[0].after == "10"
    with pytest.raises(InvalidInputError, match=r"nothing\.toml: No such file"):
        plan_of(host, "./nothing.toml")


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user need root")
def test_what_is_applied_comes_from_files_that_others_cannot_write(tmp_path: Path) -> None:
    place = tmp_path / "own.toml"
    place.write_text(OWN)
    place.chmod(0o644)
    assert load_requested([str(place)], only_trusted=True)
    for mode, owner in ((0o666, 0), (0o644, 65534)):
        place.chmod(mode)
        os.chown(place, owner, 0)
        with pytest.raises(RefusedError, match="not a file that only its owner can write to") as error:
            load_requested([str(place)], only_trusted=True)
        assert "chown root" in (error.value.hint or "")
        assert load_requested([str(place)])


def test_own_profiles_are_found_and_hide_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "advisor/profiles"
    directory.mkdir(parents=True)
    (directory / "own.toml").write_text(OWN)
    (directory / "iris.toml").write_text(OWN.replace('"own"', '"iris"'))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert profile_paths()["own"] == directory / "own.toml"
    assert load("own").title == "Own"
    assert load("iris").title != "Own"
    os.chmod(directory / "own.toml", 0o666)
    with pytest.raises(AdvisorError, match="only its owner"):
        load("own", only_trusted=True)


def test_the_order_of_values_does_not_change_their_plan(host: Host) -> None:
    words = ("sysctl:vm.swappiness=11", "sysctl:net.core.rmem_max=500000", "block:sda:scheduler=none")
    made = [plan_profiles(host, list(order), {}) for order in permutations(words)]
    assert len({one.fingerprint for one in made}) == 1


@pytest.mark.parametrize(
    ("word", "tunable"),
    [
        ("vm.swappiness=10", "sysctl:vm.swappiness"),
        ("net/core/rmem_max>=8388608", "sysctl:net.core.rmem_max"),
        ("net/ipv4/conf/eth0.1/rp_filter=2", "sysctl:net.ipv4.conf.eth0/1.rp_filter"),
    ],
)
def test_a_key_alone_is_a_sysctl(word: str, tunable: str) -> None:
    assert parse_value(word).tunable == tunable


@pytest.mark.parametrize("word", ["vm.toml", "net/core.toml", "./net/core", "kernel", "numa-pinning", "sysctl:vm.x=1"])
def test_files_profiles_and_ids_keep_their_words(word: str) -> None:
    assert with_kind(word) == word


@pytest.mark.parametrize("word", ["article.conf", "./article.conf", "article"])
def test_a_sysctl_file_is_answered_with_the_command_that_judges_it(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(word).write_text("# by an article\nvm.swappiness = 1\n")
    with pytest.raises(UsageError) as caught:
        load_requested([word])
    assert caught.value.hint == f"advisor judge {word}"
    Path("kafka").write_text("vm.swappiness = 1\n")
    assert load_requested(["kafka"])[0].profile.name == "kafka"
