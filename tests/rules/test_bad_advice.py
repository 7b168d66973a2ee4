"""Bad advice: each rule fires on a host that follows it, names file and line, and is silent on one that does not."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.host_facts import Facts, scan
from advisor.facts.system.memory import Counters
from advisor.host import Host, tree_host
from advisor.planning.comparison import combine_values
from advisor.report.explain import explain_id
from advisor.rules.judged import judge
from advisor.rules.rule import Finding, PlanProfile, SetTunable
from advisor.snapshot.archive import capture_host, open_snapshot, save_snapshot
from tests.cases import read_cases
from tests.rules.build import facts, identity, origin, replaced
from tests.rules.cases_advice import ALL, BASE, FILES, RC_LOCAL, SITE, SYSCTLS, UDEV
from tests.trees import make_tree

LINE_OF = {"/proc/cmdline": 1}


def host_with(root: Path, path: str, text: str) -> Host:
    lead = "" if path in LINE_OF else "# written by hand\n\n"
    return tree_host(str(make_tree(root, {**BASE, path: f"{lead}{text}\n"})))


def bad_advice(found: Facts) -> list[Finding]:
    return [finding for finding in judge(found) if finding.id.startswith("advice.")]


@pytest.mark.parametrize(("rule", "path", "bad", "good"), ALL)
def test_fires_with_file_and_line_and_is_silent_without(
    rule: str, path: str, bad: str, good: str, tmp_path: Path
) -> None:
    fired = bad_advice(scan(host_with(tmp_path / "bad", path, bad)))
    assert [finding.id for finding in fired if finding.id == f"advice.{rule}"] == [f"advice.{rule}"]
    (finding,) = (finding for finding in fired if finding.id == f"advice.{rule}")
    first = LINE_OF.get(path) or 3 + next(n for n, line in enumerate(bad.split("\n")) if _is_the_line(line))
    detail = finding.evidence["detail"]
    assert isinstance(detail, tuple)
    assert detail[0].startswith(f"{path}:{first}: ")
    assert f"advice.{rule}" not in {one.id for one in bad_advice(scan(host_with(tmp_path / "good", path, good)))}


def _is_the_line(line: str) -> bool:
    """Whether it is the one that counts, and not a section's head or another of its lines."""
    return not line.endswith("{") and not line.startswith("[") and "vendor" not in line


@pytest.mark.parametrize("rule", sorted({f"advice.{row[0]}" for row in ALL}))
def test_each_can_be_explained(rule: str) -> None:
    found = explain_id(rule)
    assert found.why
    assert found.hurts_when
    assert found.sources


@pytest.mark.parametrize("rule", ["advice.zone-reclaim", "advice.huge-pages-for-all", "advice.dirty-ratio-high"])
def test_where_vendors_disagree_both_are_named(rule: str) -> None:
    assert len(explain_id(rule).sources) >= 3


def test_no_file_no_finding(tmp_path: Path) -> None:
    assert bad_advice(scan(tree_host(str(make_tree(tmp_path, BASE))))) == []
    assert judge(facts()) == ()


def test_what_a_profile_of_ours_set_is_no_bad_advice() -> None:
    def with_path(path: str) -> Facts:
        return facts(sysctl_origin={"net.core.rmem_default": origin("net.core.rmem_default", "8388608", path=path)})

    assert [one.id for one in bad_advice(with_path("/etc/sysctl.d/{}-site.conf"))] == ["advice.large-by-default"]
    for name in ("90-advisor-socket-buffers-8m", "90-advisor.0001-socket-buffers-8m"):
        assert bad_advice(with_path(f"/etc/sysctl.d/{name}.conf")) == []
    # What a person asked for alone, or by a profile of their own, is judged like any other line.
    for name in ("90-advisor-set-net-core-rmem-default", "90-advisor-our-site"):
        assert len(bad_advice(with_path(f"/etc/sysctl.d/{name}.conf"))) == 1


@given(
    st.sampled_from(["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]),
    st.lists(st.sampled_from([1, 7, 8, 9, 4096, 65_536, 131_072, 4_194_304, 50_000_000]), min_size=3, max_size=3),
)
def test_what_is_set_in_place_of_three_sizes_rises(key: str, sizes: list[int]) -> None:
    value = " ".join(map(str, sizes))
    host = facts(
        host=identity(kernel="6.1.0"),
        sysctl={key: value},
        sysctl_origin={key: origin(key, value)},
        counters=Counters(tcp_pruned=4),
    )
    own = {"net.ipv4.tcp_rmem": 6_291_456, "net.ipv4.tcp_wmem": 4_194_304}[key]
    for one in judge(host):
        parts = (step.only if isinstance(step, PlanProfile) else (step,) for step in one.remedy)
        for step in chain.from_iterable(parts):
            if isinstance(step, SetTunable) and step.tunable == f"sysctl:{key}":
                low, initial, most = map(int, combine_values(value, step.value, step.operator).split())
                assert 0 < low <= initial <= most
                assert most >= {"advice.maxima-lowered": own, "buffers.tcp-pruned": 8 << 20}.get(one.id, 0)


DATA = read_cases(__file__)


@pytest.mark.parametrize(("kernel", "key", "value", "fires"), DATA["limits_are_judged_by_the_kernel"])
def test_limits_are_judged_by_the_kernel_that_runs(kernel: str | None, key: str, value: str, *, fires: bool) -> None:
    host = facts(host=identity(kernel=kernel), sysctl_origin={key: origin(key, value)})
    assert ("advice.maxima-lowered" in {one.id for one in bad_advice(host)}) is fires


def test_on_a_small_host_the_kernels_own_tcp_limits_are_small_too() -> None:
    memory = replaced(facts().memory, {"total_bytes": 1 << 30})
    lowered = {"net.ipv4.tcp_rmem": origin("net.ipv4.tcp_rmem", "4096 87380 4194304")}
    assert "advice.maxima-lowered" in {one.id for one in bad_advice(facts(sysctl_origin=lowered))}
    assert "advice.maxima-lowered" not in {one.id for one in bad_advice(facts(sysctl_origin=lowered, memory=memory))}


@pytest.mark.parametrize(("first", "second", "named"), DATA["a_line_that_loses_makes_no_rule_fire"])
def test_a_line_that_loses_makes_no_rule_fire(first: str, second: str, named: list[str] | None, tmp_path: Path) -> None:
    tree = {**BASE, "/proc/sys/vm/swappiness": "10\n"}
    files = {"/etc/sysctl.d/30-site.conf": first, "/etc/sysctl.d/99-zz-local.conf": second}
    found = bad_advice(scan(tree_host(str(make_tree(tmp_path, {**tree, **files})))))
    details = [finding.evidence["detail"] for finding in found]
    expected = [tuple(f"/etc/sysctl.d/{name}.conf:1: vm.swappiness = 0" for name in named)] if named else []
    assert details == expected


def test_a_line_that_a_profile_of_ours_overrides_makes_no_rule_fire() -> None:
    lost = origin("vm.swappiness", "0", "10")
    ours = replaced(lost, {"winner": replaced(lost.winner, {"path": "/etc/sysctl.d/90-advisor-iris.conf"})})
    assert bad_advice(facts(sysctl_origin={"vm.swappiness": ours})) == []


def test_a_line_that_only_a_later_reading_puts_in_force_counts() -> None:
    one = origin("vm.swappiness", "10")
    later = replaced(one.winner, {"value": "0", "path": "/etc/sysctl.conf"})
    (found,) = bad_advice(facts(sysctl_origin={"vm.swappiness": replaced(one, {"later": later})}))
    assert found.evidence["detail"] == ("/etc/sysctl.conf:3: vm.swappiness = 0",)


def _written(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key.strip(), value.strip()


@pytest.mark.parametrize("row", SYSCTLS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_a_bad_value_is_the_same_finding_wherever_it_is(row: tuple[str, str, str]) -> None:
    (key, bad), (other, good) = _written(row[1]), _written(row[2])
    kernel = identity(kernel="6.18.44")
    live = bad_advice(facts(host=kernel, sysctl={key: bad}))
    in_file = bad_advice(facts(host=kernel, sysctl={}, sysctl_origin={key: origin(key, bad)}))
    assert [(one.id, one.severity) for one in live] == [(one.id, one.severity) for one in in_file]
    assert f"advice.{row[0]}" in {one.id for one in live}
    line = f"/etc/sysctl.d/10-site.conf:3: {key} = {bad}"
    both = facts(host=kernel, sysctl={key: bad}, sysctl_origin={key: origin(key, bad)})
    for one in bad_advice(both):
        assert one.evidence["detail"] == (line, f"live: {key} = {bad}")
    assert f"advice.{row[0]}" not in {one.id for one in bad_advice(facts(host=kernel, sysctl={other: good}))}


def test_the_live_value_that_a_profile_of_ours_set_is_no_bad_advice() -> None:
    ours = origin("net.core.rmem_default", "8388608", path="/etc/sysctl.d/90-advisor-socket-buffers-8m.conf")
    host = facts(sysctl={"net.core.rmem_default": "8388608"}, sysctl_origin={"net.core.rmem_default": ours})
    assert bad_advice(host) == []
    assert bad_advice(replaced(host, {"sysctl": {"net.core.rmem_default": "16777216"}})) != []


@pytest.mark.parametrize(
    ("memory", "kept", "fires"),
    [(1 << 30, 50_000, False), (1 << 30, 60_000, True), (64 << 30, 270_336, False), (64 << 30, 2_097_152, True)],
)
def test_what_the_kernel_keeps_free_for_huge_pages_is_its_own(memory: int, kept: int, *, fires: bool) -> None:
    host = facts(memory=replaced(facts().memory, {"total_bytes": memory}), sysctl={"vm.min_free_kbytes": str(kept)})
    assert ("advice.min-free-large" in {one.id for one in bad_advice(host)}) is fires


@pytest.mark.parametrize(
    ("kernel", "severity", "says"),
    [
        ("3.10.0-1160.el7", "warning", "is switched on"),
        ("4.11.12", "warning", "is switched on"),
        (None, "warning", "is switched on"),
        ("4.12.0", "info", "which is gone"),
        ("6.18.44", "info", "which is gone"),
    ],
)
def test_a_key_that_the_kernel_has_lost_is_no_danger(kernel: str | None, severity: str, says: str) -> None:
    key = "net.ipv4.tcp_tw_recycle"
    (found,) = bad_advice(facts(host=identity(kernel=kernel), sysctl_origin={key: origin(key, "1")}))
    assert (found.severity, says in found.title) == (severity, True)
    assert ("drops connections" in found.why) is (severity == "warning")


@pytest.mark.parametrize("value", ["", "x", "0x", "0 0 0 " * 50, "٠", "-", "9" * 30, '"0"'])
def test_a_value_that_is_no_number_is_left_to_the_rule_about_refusals(value: str) -> None:
    keys = [key for row in SYSCTLS for key in [row[1].partition("=")[0].strip()]]
    host = facts(sysctl_origin={key: origin(key, value) for key in keys})
    judge(host)


def test_a_masked_irqbalance(tmp_path: Path) -> None:
    links = {"/etc/systemd/system/irqbalance.service": "/dev/null"}
    found = bad_advice(scan(tree_host(str(make_tree(tmp_path, BASE, links)))))
    assert [finding.id for finding in found] == ["advice.irqbalance-off"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (RC_LOCAL, "ifconfig a " * 50_000),
        (RC_LOCAL, "echo " * 100_000 + "> /sys/block/sda/queue/nomerges"),
        (UDEV, "A" * 200_000 + '=="x"'),
        (UDEV, 'KERNEL=="x", \\\n' * 20_000 + 'ATTR{queue/nomerges}="1"'),
        ("/etc/fstab", "a b c " + "," * 300_000 + "barrier=0"),
        ("/etc/multipath.conf", "a {\n" * 10_000),
        ("/proc/cmdline", "=" * 100_000),
    ],
)
def test_files_made_to_cost_time_are_passed_over(path: str, text: str, tmp_path: Path) -> None:
    assert bad_advice(scan(host_with(tmp_path, path, text))) == []


def everything(root: Path) -> Host:
    texts: dict[str, Any] = {**BASE, SITE: "\n".join(bad for _, bad, _ in SYSCTLS)}
    for _, path, bad, _ in FILES:
        texts[path] = f"{texts.get(path, '')}{bad}\n"
    texts["/proc/cmdline"] = texts["/proc/cmdline"].replace("\n", " ")
    texts["/proc/cmdline"] = f"{texts['/proc/cmdline'].strip()} rd.iscsi.password=Tr0ub4dor "
    "netroot=iscsi:a:Tr0ub4dor@x\n"
    texts["/etc/fstab"] += "//nas/s /mnt/s cifs username=bob,password=Tr0ub4dor,uid=5 0 0\n"
    texts["/etc/tmpfiles.d/secret.conf"] = "f /etc/token 0600 - - - Tr0ub4dor\n# w\n"
    texts[RC_LOCAL] += "echo Tr0ub4dor > /sys/kernel/config/target/iscsi/iqn.x/tpgt_1/auth/password\n"
    texts[RC_LOCAL] += "mysql -pTr0ub4dor -e 'show tables'\nexport TOKEN=Tr0ub4dor\n"
    return tree_host(str(make_tree(root, texts)))


def test_a_snapshot_answers_the_same_and_carries_no_secret(tmp_path: Path) -> None:
    host = everything(tmp_path / "host")
    save_snapshot(capture_host(host, scan), tmp_path / "snapshot.tar.gz")
    again = scan(open_snapshot(tmp_path / "snapshot.tar.gz"))
    assert [finding.id for finding in bad_advice(again)] == [finding.id for finding in bad_advice(scan(host))]
    assert "Tr0ub4dor" not in str(again)
    opened = open_snapshot(tmp_path / "snapshot.tar.gz")
    for path in ("/etc/fstab", RC_LOCAL, "/proc/cmdline", "/etc/tmpfiles.d/secret.conf"):
        assert opened.exists(path)
        assert "Tr0ub4dor" not in str(opened.read(path))
