"""From findings to one plan: what is set together, what is left to a person, what is left out."""

from __future__ import annotations

import pytest

from advisor.errors import UsageError
from advisor.recommend.fixes import Fix, make_fix, make_safe_fix, select_findings
from advisor.report.fix import fix_text
from advisor.rules.finding import Finding
from advisor.rules.remedy import Decide, PlanProfile, Remedy, RunShell, SetTunable, set_sysctl

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


def test_of_two_that_contradict_each_other_the_second_is_left_out() -> None:
    fix = make_fix([finding("a.one", SWAP), finding("b.two", set_sysctl("vm.swappiness", 60))])
    assert words(fix) == ["sysctl:vm.swappiness<=10"]
    assert [(one.finding, one.reason) for one in fix.left_out] == [
        ("b.two", "sysctl:vm.swappiness<=10 is planned already")
    ]


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


def test_findings_that_contradict_each_other_are_both_not_safe() -> None:
    fix = make_safe_fix([finding("a.one", SWAP), finding("b.two", set_sysctl("vm.swappiness", 60))])
    assert fix.asked == ()
    assert [one.finding for one in fix.left_out] == ["a.one", "b.two"]


def test_findings_are_named_by_their_rule() -> None:
    found = [finding("a.one", SWAP), finding("a.one", Decide("Ask")), finding("b.two")]
    assert select_findings(found, ["a.one", "b.two"]) == tuple(found)
    with pytest.raises(UsageError, match=r"c\.three: no finding"):
        select_findings(found, ["c.three"])
