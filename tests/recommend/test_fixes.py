"""From findings to one plan: what is set together, what is a manual step, what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.recommend.fixes import Fix, make_fix, make_safe_fix, select_findings
from advisor.report.fix import fix_text
from advisor.rules.rule import Decide, Finding, PlanProfile, Remedy, RunShell, SetTunable, set_sysctl
from tests.cli.inside import call_inside
from tests.trees import make_tree

SWAP = set_sysctl("vm.swappiness", 10, "at-most")


def finding(identity: str, *remedy: Remedy, profile: str | None = None, intent: bool = False) -> Finding:
    return Finding(
        id=identity,
        severity="warning",
        title=f"{identity} is so",
        why="Because.",
        evidence={},
        advice="Replace it.",
        profile=profile,
        hurts_when="Never.",
        sources=("a book",),
        intent=intent,
        remedy=remedy,
    )


def words(fix: Fix) -> list[str]:
    return [word for one in fix.asked for word in one.words]


def test_values_of_several_findings_are_one_profile_with_their_reasons() -> None:
    fix = make_fix([finding("a.one", SWAP), finding("b.two", SetTunable("thp:defrag", "madvise"), SWAP)])
    assert words(fix) == ["sysctl:vm.swappiness<=10", "thp:defrag=madvise"]
    lines = fix.asked[0].profile.tunables
    assert [line.why for line in lines] == ["a.one is so. Because.", "b.two is so. Because."]
    assert lines[0].sense == "at-most"
    assert (lines[0].hurts_when, lines[0].sources) == ("Never.", ("a book",))
    assert fix.left_out == ()


def test_profiles_come_with_the_parameters_of_this_host() -> None:
    plan = PlanProfile("jumbo-frames", (("links", "eth1"),))
    fix = make_fix([finding("a.one", plan), finding("b.two", profile="socket-buffers-8m"), finding("c.three", SWAP)])
    assert words(fix) == ["jumbo-frames", "socket-buffers-8m", "sysctl:vm.swappiness<=10"]
    assert fix.settings == (("links", "eth1"),)
    other = PlanProfile("jumbo-frames", (("links", "eth2"),))
    (rest,) = make_fix([finding("a.one", plan), finding("d.four", other)]).left_out
    assert (rest.finding, "advisor plan jumbo-frames --set links=eth2" in rest.reason) == ("d.four", True)


def test_what_a_planned_profile_sets_it_sets_alone() -> None:
    own = finding("a.one", SetTunable("link:eth1:mtu", "9000"), SWAP)
    fix = make_fix([own, finding("b.two", PlanProfile("jumbo-frames", (("links", "eth1"),)))])
    assert words(fix) == ["jumbo-frames", "sysctl:vm.swappiness<=10"]
    assert [(one.finding, one.what, one.reason) for one in fix.left_out] == [
        ("a.one", "link:eth1:mtu=9000", "the profile jumbo-frames sets such values")
    ]


def test_of_a_profile_only_the_values_that_the_finding_is_about_are_planned() -> None:
    maximum = set_sysctl("net.core.rmem_max", 851_968, "at-least")
    part = finding("a.one", PlanProfile("socket-buffers-8m", only=(maximum,)))
    assert words(make_fix([part])) == ["sysctl:net.core.rmem_max>=851968"]
    larger = set_sysctl("net.core.rmem_max", 8_388_608, "at-least")
    both = make_fix([part, finding("b.two", PlanProfile("socket-buffers-8m", only=(larger,)))])
    assert words(both) == ["sysctl:net.core.rmem_max>=8388608"]
    assert both.left_out == ()
    whole = make_fix([part, finding("b.two", PlanProfile("socket-buffers-8m"))])
    assert words(whole) == ["socket-buffers-8m"]


def test_what_a_person_does_keeps_its_order_and_what_it_interrupts() -> None:
    one = finding("a.one", RunShell("mdadm --stop /dev/md1", "stop it", "everything on md1"), SWAP, Decide("Ask"))
    fix = make_fix([one, finding("b.two")])
    assert [(step.command, step.text) for step in fix.manual] == [
        ("mdadm --stop /dev/md1", "stop it"),
        (None, "Ask"),
        (None, "Replace it."),
    ]
    text = fix_text(fix, width=80, color=False)
    assert "    mdadm --stop /dev/md1\n    interrupts: everything on md1\n" in text
    assert "nothing to set" in fix_text(make_fix([finding("b.two")]), width=80, color=False)


def test_findings_that_contradict_each_other() -> None:
    fix = make_fix([finding("a.one", SWAP), finding("b.two", set_sysctl("vm.swappiness", 60))])
    assert words(fix) == ["sysctl:vm.swappiness<=10"]
    assert [(one.finding, one.reason) for one in fix.left_out] == [
        ("b.two", "sysctl:vm.swappiness<=10 is planned already")
    ]
    fix = make_safe_fix([finding("a.one", SWAP), finding("b.two", set_sysctl("vm.swappiness", 60))])
    assert fix.asked == ()
    assert [one.finding for one in fix.left_out] == ["a.one", "b.two"]


@pytest.mark.parametrize(
    ("unsafe", "reason"),
    [
        (finding("z", SetTunable("link:eth1:mtu", "9000")), "link:eth1:mtu interrupts"),
        (finding("z", SetTunable("cmdline:intel_idle.max_cstate", "1")), "takes effect later"),
        (finding("z", SWAP, RunShell("reboot")), "by hand"),
        (finding("z", SWAP, Decide("Ask")), "by hand"),
        (finding("z", PlanProfile("jumbo-frames")), "the profile jumbo-frames"),
        (finding("z", profile="jumbo-frames"), "the profile jumbo-frames"),
        (finding("z"), "by hand"),
        (finding("z", SWAP, intent=True), "what this host is for"),
    ],
)
def test_safe_is_what_interrupts_nothing_and_needs_nobody(unsafe: Finding, reason: str) -> None:
    defrag = SetTunable("thp:defrag", "madvise")
    fix = make_safe_fix([finding("a.one", defrag), unsafe])
    assert [one.id for one in fix.findings] == ["a.one"]
    assert words(fix) == ["thp:defrag=madvise"]
    assert fix.manual == ()
    assert [one.finding for one in fix.left_out] == ["z"]
    assert reason in fix.left_out[0].reason


def test_a_part_of_a_profile_is_as_safe_as_its_values() -> None:
    least = set_sysctl("net.core.rmem_default", 851968, "at-least")
    more = set_sysctl("net.core.rmem_default", 1 << 20, "at-least")
    part = finding("a.one", PlanProfile("socket-buffers-8m", only=(least,)))
    assert words(make_safe_fix([part, finding("b.two", more)])) == ["sysctl:net.core.rmem_default>=1048576"]
    mtu = finding("c.three", PlanProfile("jumbo-frames", only=(SetTunable("link:eth1:mtu", "9000"),)))
    assert [one.finding for one in make_safe_fix([part, mtu]).left_out] == ["c.three"]


def test_left_out_findings_are_listed_and_named_by_their_rule() -> None:
    by_hand = [finding(f"z.{number}", Decide("ask")) for number in range(3)]
    in_part = [finding(f"y.{number}", SWAP, Decide("ask")) for number in range(2)]
    text = fix_text(make_safe_fix([finding("a.one", SWAP), *by_hand, *in_part]), width=80, color=False)
    assert "  - z.0, z.1, z.2: to be fixed by hand\n" in text
    assert "  - y.0, y.1: a part of it is done by hand\n" in text
    found = [finding("a.one", SWAP), finding("a.one", Decide("Ask")), finding("b.two")]
    assert select_findings(found, ["a.one", "b.two"]) == tuple(found)
    with pytest.raises(UsageError, match=r"c\.three: no finding"):
        select_findings(found, ["c.three"])


def test_an_alternative_is_no_step_in_order() -> None:
    both = finding("a.both", SWAP, Decide("or lower the other"), RunShell("look", "see"))
    text = fix_text(make_fix([both]), width=80, color=False)
    steps, alternatives = (part.split("\n\n")[0] for part in text.split("\n\n")[1:3])
    assert ("lower the other" in steps, "look" in steps) == (False, True)
    assert ("lower the other" in alternatives, "look" in alternatives) == (True, False)
    assert "in this order" not in fix_text(make_fix([finding("b.two", SWAP, Decide("or wait"))]), width=80, color=False)


def test_what_needs_a_decision_first_is_not_set_where_nobody_is_asked() -> None:
    doubtful = finding("a.doubt", Decide("ask who runs it", is_prerequisite=True), SWAP)
    later = finding("b.later", set_sysctl("vm.dirty_ratio", 5), Decide("restart it"))
    assert words(make_fix([doubtful, later])) == ["sysctl:vm.swappiness<=10", "sysctl:vm.dirty_ratio=5"]
    unattended = make_fix([doubtful, later], is_unattended=True)
    assert words(unattended) == ["sysctl:vm.dirty_ratio=5"]
    (rest,) = unattended.left_out
    assert (rest.finding, rest.what, "without it prints the plan and asks" in rest.reason) == (
        *("a.doubt", "sysctl:vm.swappiness<=10"),
        True,
    )
    assert [one.text for one in unattended.manual] == ["ask who runs it", "restart it"]
    assert words(make_safe_fix([doubtful])) == []


def test_a_value_that_a_captured_part_of_a_host_does_not_have_is_left_out() -> None:
    fix = make_safe_fix(
        [finding("a.one", SWAP), finding("b.two", SetTunable("thp:defrag", "madvise"))],
        {SWAP.tunable: "the capture does not hold it"}.get,
    )
    assert words(fix) == ["thp:defrag=madvise"]
    assert [(one.finding, one.reason) for one in fix.left_out] == [("a.one", "the capture does not hold it")]


def test_a_part_of_a_host_can_be_fixed(tmp_path: Path) -> None:
    """Packets are dropped, and what would help is not in the capture."""
    drops = "".join(f"{number:08x} {1 << 20:08x} " + "00000000 " * 11 + "\n" for number in range(4))
    root = make_tree(tmp_path, {"/proc/net/softnet_stat": drops, "/proc/mounts": ""})
    done = call_inside("fix", "--all-safe", "--root", root)
    assert done.returncode == 0, done.stderr
    assert "sysctl:net.core.netdev_max_backlog" in done.stdout
    assert "the capture does not hold it" in " ".join(done.stdout.split())
