"""What holds for any fleet: the order of hosts does not matter, a majority is more than half, all hosts are named."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.fleet.compare.collected import Membership
from advisor.fleet.compare.columns import Column, Fleet
from advisor.fleet.compare.outliers import find_outliers
from advisor.fleet.compare.summary import HostSummary, tuning_words
from advisor.report.fleet.compare import comparison_document, comparison_text

VALUES: st.SearchStrategy[str | int] = st.sampled_from(["1", "2", "60", 4, 9000])
ATTRIBUTES = st.sampled_from(
    [
        *("sysctl.vm.swappiness", "sysctl.a", "host.kernel", "host.os", "host.product", "memory.installed"),
        *("link.llt-1.present", "link.llt-1.driver", "link.llt-1.ring.rx", "link.llt-1.mtu", "link.eth9.present"),
        *("link.eth9.name", "link.eth8.present", "link.eth8.name", "link.eth8.mtu", "llt.flow.highwater", "odd"),
        *("disk.A.present", "disk.A.scheduler", "owner.tuned_profile", "array.md0.state", "cmdline.x y\n\x1b[31m"),
    ]
)
PATTERNS = st.sampled_from(["sysctl.*", "link.*.ring.*", "*", "host.kernel", "disk.A.*", "link.llt-1.*"])
MEMBERSHIPS = st.builds(
    Membership,
    network=st.sampled_from(["10.0.0.0/24", "10.1.0.0/24"]),
    address=st.sampled_from(["10.0.0.1", "10.0.0.2", "10.1.0.9"]),
    link=st.sampled_from(["eth1", "eth2"]),
    role=st.sampled_from(["llt-1", "eth9"]),
    mtu=st.sampled_from([1500, 9000, None]),
    speed_mbps=st.sampled_from([10_000, None]),
    carries_llt=st.booleans(),
)


@st.composite
def summaries(draw: st.DrawFn) -> list[HostSummary]:
    count = draw(st.integers(0, 9))
    words = st.none() | st.sampled_from(["a", "b", "<i>\x07"])
    return [
        HostSummary(
            name=f"n{number}",
            hostname=draw(words),
            machine_id=draw(words),
            boot_id=draw(words),
            group=draw(st.none() | st.sampled_from(["web", "db"])),
            cluster=draw(words),
            node=draw(words),
            skew_seconds=draw(st.none() | st.floats(-400, 400)),
            values=draw(st.dictionaries(ATTRIBUTES, VALUES, max_size=8)),
            unknown=tuple(sorted(draw(st.sets(PATTERNS, max_size=2)))),
            memberships=tuple(draw(st.lists(MEMBERSHIPS, max_size=2))),
            sysctl_set=tuple(draw(st.sets(st.just("vm.swappiness")))),
        )
        for number in range(count)
    ]


def fleet(hosts: list[HostSummary]) -> Fleet:
    found = Fleet()
    for one in hosts:
        found.add(one)
    return found


@settings(max_examples=40)
@given(summaries(), st.randoms(use_true_random=False))
def test_the_order_of_the_hosts_does_not_matter(hosts: list[HostSummary], random: object) -> None:
    shuffled = list(hosts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = find_outliers(fleet(hosts)), find_outliers(fleet(shuffled))
    assert comparison_document(first) == comparison_document(second)


@settings(max_examples=40)
@given(summaries())
def test_a_majority_is_more_than_half_of_those_that_are_known(hosts: list[HostSummary]) -> None:
    comparison = find_outliers(fleet(hosts))
    for finding in comparison.findings:
        for one in finding.differences:
            others = one.outliers
            assert {*finding.hosts} <= {host.name for host in hosts}
            assert not {*others} & {*one.unknown}
            assert len({*others}) == len(others) or finding.id.startswith(("fleet.mtu", "fleet.speed"))
            if one.has_majority and finding.id not in ("fleet.clock", "fleet.llt-cluster-twice"):
                assert one.majority_count > len({*others})
    text = comparison_text(comparison, width=80, color=False)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert all(len(line) <= 80 or "# on" in line for line in text.split("\n"))


@given(st.lists(st.sampled_from(["a", "b", None, 1]), max_size=60))
def test_a_column_holds_what_was_put_in(values: list[str | int | None]) -> None:
    column = Column()
    for number, value in enumerate(values):
        column.add(number, value)
    assert [column.value(number) for number in range(len(values))] == values
    assert len(column.others) <= max(len(values) // 2 + 8, 16) or len({*values}) > 2


def test_what_names_one_host_is_no_tuning_word() -> None:
    line = "BOOT_IMAGE=/vmlinuz root=UUID=1 ip=10.0.0.1 rd.lvm.lv=vg/root quiet nvme_core.io_timeout=30 hugepages=5"
    assert tuning_words(line) == {"nvme_core.io_timeout": "30", "hugepages": "5"}
