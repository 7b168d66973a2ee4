"""Facts → findings: pure functions, each with its citation; one file per topic."""

from __future__ import annotations

from advisor.facts.whole import Facts
from advisor.rules import (
    arrays,
    bad_advice_files,
    bad_advice_sysctl,
    beegfs,
    beegfs_client,
    beegfs_links,
    beegfs_settings,
    boot,
    buffers,
    controllers,
    ebs,
    ebs_purchase,
    ebs_quotas,
    geometry,
    infoscale,
    iris,
    iris_memory,
    iscsi,
    iscsi_sessions,
    llt,
    llt_cluster,
    locality,
    md,
    mtu,
    network,
    pcie,
    queues,
    requests,
    tcp,
    vm,
    vxvm,
)
from advisor.rules.finding import SEVERITIES, Evidence, Finding, Severity
from advisor.rules.llt_path import as_seen
from advisor.rules.rule import Rule
from advisor.rules.whole_profile import sent_whole
from advisor.rules.workload import WORKLOADS, Workload, parse_workload

__all__ = [
    "RULES",
    "SEVERITIES",
    "WORKLOADS",
    "Evidence",
    "Finding",
    "Rule",
    "Severity",
    "Workload",
    "judge",
    "judge_singly",
    "parse_workload",
]

RULES: tuple[Rule, ...] = (
    *mtu.RULES,
    *buffers.RULES,
    *network.RULES,
    *tcp.RULES,
    *vm.RULES,
    *boot.RULES,
    *llt.RULES,
    *llt_cluster.RULES,
    *infoscale.RULES,
    *vxvm.RULES,
    *locality.RULES,
    *arrays.RULES,
    *controllers.RULES,
    *iscsi.RULES,
    *iscsi_sessions.RULES,
    *geometry.RULES,
    *md.RULES,
    *pcie.RULES,
    *queues.RULES,
    *requests.RULES,
    *ebs.RULES,
    *ebs_purchase.RULES,
    *ebs_quotas.RULES,
    *iris_memory.RULES,
    *iris.RULES,
    *bad_advice_sysctl.RULES,
    *bad_advice_files.RULES,
    *beegfs.RULES,
    *beegfs_links.RULES,
    *beegfs_settings.RULES,
    *beegfs_client.RULES,
)


def _importance(finding: Finding) -> tuple[int, bool, str, str]:
    return -SEVERITIES.index(finding.severity), finding.intent, finding.id, repr(sorted(finding.evidence.items()))


def judge(facts: Facts, workload: Workload | None = None) -> tuple[Finding, ...]:
    """Every rule's findings: warnings first, matters of intent last among their like, then by id.

    Where a recognised system has a profile of its own, its findings name that one.
    """
    return sent_whole(facts, workload, judge_singly(facts, workload))


def judge_singly(facts: Facts, workload: Workload | None = None) -> tuple[Finding, ...]:
    """As `judge`, each finding with the profile that its rule names.

    What was seen outranks what is declared: all rules but those that recognise the configuration get both together.
    """
    seen = as_seen(facts, workload)
    found = (
        finding for rule in RULES for finding in rule.function(facts, workload if rule in infoscale.RULES else seen)
    )
    return tuple(sorted(found, key=_importance))
