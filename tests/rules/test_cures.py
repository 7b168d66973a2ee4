"""A remedy cures: on a host whose tunables have the values that a finding asks for, the finding is gone."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.rules.judged import RULES
from advisor.rules.rule import Finding, PlanProfile, Rule, SetTunable
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.each import for_each
from tests.rules.remedied import with_values
from tests.rules.table import Seen
from tests.rules.test_commands import findings, rows


def values_of(found: tuple[Finding, ...]) -> tuple[SetTunable, ...]:
    return tuple(part for one in found for part in one.remedy if isinstance(part, SetTunable))


COUNTED = frozenset(
    {
        *("network.listen-overflows", "network.softnet-drops", "network.softnet-squeezed", "network.ring-drops"),
        *("network.neighbours-full", "vm.reclaim-stalls"),
    }
)
"""They go on as what the kernel has counted since it booted, and ask for no value any more."""
DATA = read_cases(__file__)

STAY = DATA["STAY"]
"""They stay with the same values, and why."""
BY_HAND = {
    **DATA["BY_HAND"],
    "which value is right": (
        *(
            "sysctl.overridden",
            "sysctl.names-nothing",
            "sysctl.out-of-order",
            "llt.flow-control-order",
            "llt.timer-order",
        ),
        *(
            *("vm.dirty-at-limit", "llt.window-below-path", "beegfs.buffer-memory", "beegfs.same-port"),
            *("iscsi.data-digest",),
        ),
    ),
    "the line alone does harm, and goes": (
        *(
            "sysctl.gone",
            "advice.tcp-mem-fixed",
            "advice.without-effect",
            "advice.adv-win-scale",
            "advice.optmem-large",
        ),
        *("advice.nobarrier", "advice.write-through", "advice.queue-length", "advice.old-scheduler"),
        *("advice.no-merges", "advice.bfq-for-nvme", "advice.rr-min-io", "advice.offloads-off"),
        *("disks.queue-asked-too-long", "advice.irqbalance-off"),
        *("advice.caches-dropped", "advice.modules-locked", "advice.user-namespaces-off"),
    ),
    "an array, volume or file system is made again, or a command of its own changes it": (
        *("arrays.span-nodes", "arrays.redundant-on-ebs", "arrays.linear-over-many", "arrays.parity-random-writes"),
        *("arrays.chunk-below-block", "arrays.fewer-stripes-than-devices", "controllers.parity-small-writes"),
        *("lvm.thin-chunk-apart", "arrays.unlike-blocks", "zfs.small-blocks"),
        *("controllers.two-small-arrays", "filesystems.not-aligned", "disks.partition-not-aligned", "md.no-bitmap"),
        *("disks.block-sizes-differ", "filesystems.online-discard", "disks.slower-format", "disks.crypt-queues"),
        *("lvm.thin-pool-full", "lvm.store-full", "filesystems.not-trimmed", "disks.gcp-write-cache"),
        *("ebs.few-stripes", "iris.file-system", "iris.stripe-size", "beegfs.metadata-not-mirrored"),
        *("beegfs.storage-on-parity", "beegfs.storage-on-mirror", "filesystems.strict-atime", "vxvm.one-controller"),
        *("vxvm.mirror-without-log", "vxvm.columns-share-disk", "vxfs.streams-off-stripes"),
    ),
    "something is broken or at work: repair it, or wait": (
        *("arrays.degraded", "arrays.inactive", "arrays.rebuilding", "multipath.suspended", "md.mismatches"),
        *("controllers.battery", "iscsi.session-lost", "iscsi.unequal-paths", "disks.offline"),
        *("memory.uncorrected-errors", "disks.failing", "disks.worn", "disks.link-errors", "disks.too-hot"),
        "cpu.throttled-by-heat",
        *("disks.path-lost", "memory.corrected-errors", "memory.pages-lost"),
        *("fc.port-down", "zfs.pool-degraded", "links.bond-partner", "links.speed-below-best", "fc.port-slow"),
        *("links.bond-port-down", "links.bond-port-missing"),
        *("filesystems.nearly-full", "filesystems.inodes-nearly-used", "zfs.pool-full"),
    ),
    "the tools of the drive, the adapter or the product set it": (
        *("disks.declustered-write-cache", "rdma.write-ordering", "links.ipoib-connected", "ceph.osd-capacity"),
        *("fc.queue-depth", "multipath.alua-groups", "multipath.fc-timeouts"),
        "disks.fabric-loss",
    ),
    "cards, cables, sockets or memory are moved": (
        *("numa.bond-spans-nodes", "numa.links-far-from-disks", "numa.node-without-memory", "iscsi.far-node"),
        *("pcie.below-maximum", "pcie.below-link-speed", "pcie.shared-slot", "pcie.shared-uplink"),
        *("numa.memory-uneven", "memory.modules-slow", "memory.channels-uneven"),
        *("llt.single-link", "llt.links-on-one-port", "beegfs.uneven-zones", "iscsi.paths-share-link"),
    ),
    "the bond's own configuration sets it": (
        *("links.bond-unwatched", "links.bond-slower-active", "links.bond-unequal", "links.bond-round-robin"),
    ),
    "addresses, files or services are laid out again": (
        *("llt.same-subnet", "iscsi.paths-share-subnet", "beegfs.service-spans-nodes", "beegfs.interfaces"),
        *("irqs.cloud-agent", "links.route-mtu"),
        *("beegfs.client-interfaces", "iris.journal-shared", "iris.alternate-journal-shared", "iris.wij-shared"),
    ),
    "it is a fact to know and to measure by": (
        *("infoscale.configuration", "infoscale.mirroring-cost", "iscsi.order", "iris.parts-apart"),
        "iris.mirror-round-trip",
    ),
}
"""Rules whose remedy advisor cannot set, by the reason."""

CURING = tuple(rule for rule in RULES if values_of(findings(rule.id)))


def again(rule: Rule, seen: Seen, cured: Facts) -> tuple[Finding, ...]:
    return rule(cured, parse_workload(seen.workload) if seen.workload else None)


@for_each("rule", CURING, lambda rule: rule.id)
def test_a_host_with_the_values_of_a_remedy_is_cured(rule: Rule) -> None:
    for seen in rows()[rule.id].fires:
        found = seen.findings(rule)
        values = values_of(found)
        if not values:
            continue
        left = again(rule, seen, with_values(seen.facts, values))
        if rule.id in COUNTED:
            assert values_of(left) == ()
        elif rule.id in STAY:
            assert set(values_of(left)) == set(values)
        else:
            assert left == ()


def test_rules_without_a_value_or_a_profile_are_listed_with_the_reason() -> None:
    listed = [rule_id for rules in BY_HAND.values() for rule_id in rules]
    by_hand = {
        rule.id
        for rule in RULES
        if not any(isinstance(part, SetTunable | PlanProfile) for one in findings(rule.id) for part in one.remedy)
    }
    assert len(listed) == len(set(listed))
    assert not by_hand - set(listed), f"in BY_HAND of tests/rules/test_cures.py: {sorted(by_hand - set(listed))}"
    assert not set(listed) - by_hand, f"no longer in BY_HAND: {sorted(set(listed) - by_hand)}"


def test_the_exceptions_are_rules_with_values() -> None:
    assert {*COUNTED, *STAY} <= {rule.id for rule in CURING}
