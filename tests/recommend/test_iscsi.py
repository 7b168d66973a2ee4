"""What is recommended of the iSCSI profiles: by symptoms of the paths, by the workload, and never without sessions."""

from __future__ import annotations

from pathlib import Path

from advisor.facts.host_facts import scan
from advisor.recommend import Recommendation, declared, outlooks, recommend
from tests.planning.system import system
from tests.planning.test_iscsi_profiles import LINKS, initiator


def judged(where: Path, workload: str | None = None, *, mapped: bool = False) -> dict[str, Recommendation]:
    host = initiator(where, mapped=mapped)
    facts = scan(host)
    made = recommend(facts, declared(workload) if workload else None, outlooks(host, facts))
    return {one.profile: one for one in made}


def test_without_sessions_it_does_not_apply(tmp_path: Path) -> None:
    host = system(tmp_path, LINKS)
    facts = scan(host)
    made = {one.profile: one for one in recommend(facts, None, outlooks(host, facts))}
    for name in ("iscsi", "iscsi-multipath"):
        assert (made[name].fits, made[name].standing) == ("no", "not-applicable")
        assert not [reason for reason in made[name].why if reason.rule == "iscsi.order"]
    assert {case.text: case.holds for case in made["iscsi"].cases}["storage is reached over iSCSI"] is False


def test_with_sessions_the_order_is_told_with_its_commands(tmp_path: Path) -> None:
    one = judged(tmp_path)["iscsi"]
    assert one.fits == "perhaps"
    (order,) = [reason for reason in one.why if reason.rule == "iscsi.order"]
    steps = (
        "advisor bench --target DIR",
        "advisor limits --bench",
        "advisor prove iscsi",
        "STOP here",
        "fio --name=disks",
    )
    assert sorted(steps, key=order.text.index) == list(steps)
    for command in steps:
        assert command in order.text
    assert one.measured[0].text.startswith("128.0 MB/s before and 394.5")
    assert one.command == "advisor plan iscsi"


def test_a_long_timeout_below_multipath_is_a_symptom(tmp_path: Path) -> None:
    made = judged(tmp_path, mapped=True)
    one = made["iscsi-multipath"]
    assert (one.fits, one.standing) == ("yes", "symptom")
    (why,) = [reason.text for reason in one.why if reason.rule == "iscsi.replacement-timeout"]
    assert "then log out and in, one path after the other" in why
    assert one.command == "advisor plan iscsi-multipath"
    assert "iscsi.replacement-timeout" not in {reason.rule for reason in made["iscsi"].why}


def test_workloads_of_the_article_and_of_another(tmp_path: Path) -> None:
    one = judged(tmp_path, "iris")["iscsi"]
    assert (one.fits, one.standing) == ("no", "unfit")
    cases = {case.text: case.holds for case in judged(tmp_path / "again", "iscsi-vm")["iscsi"].cases}
    assert cases == {
        "storage is reached over iSCSI": True,
        "two paths and more below multipath": False,
        "requests larger than a frame of today (8,192 against 1,500 bytes)": True,
    }
