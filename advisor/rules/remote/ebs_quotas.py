"""What an AWS account may have of EBS volumes in one region by default, and the scan's word on it.

Service Quotas, service ``ebs``: each quota is of the account and the region, for all volumes of a type together. The
account's own value is known to AWS alone. A few regions have larger defaults of storage (300 TiB).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.rules import sources
from advisor.rules.queries import ebs_disks
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 230

NEAR = 0.8
"""The share of a default from which a sum is near it."""
LIST_COMMAND = "aws service-quotas list-service-quotas --service-code ebs"
_TIB = 1 << 40


class Default(msgspec.Struct, frozen=True):
    """A quota by AWS' name and code; ``value`` in ``unit`` is what an account begins with."""

    name: str
    code: str
    unit: Literal["IOPS", "TiB"]
    value: int

    @property
    def command(self) -> str:
        """What prints the account's own value."""
        return f"aws service-quotas get-service-quota --service-code ebs --quota-code {self.code}"


IOPS: Mapping[str, Default] = {
    "io1": Default("IOPS for Provisioned IOPS SSD (io1) volumes", "L-B3A130E6", "IOPS", 300_000),
    "io2": Default("IOPS for Provisioned IOPS SSD (io2) volumes", "L-8D977E7E", "IOPS", 100_000),
}
STORAGE: Mapping[str, Default] = {
    "gp2": Default("Storage for General Purpose SSD (gp2) volumes, in TiB", "L-D18FCD1D", "TiB", 50),
    "gp3": Default("Storage for General Purpose SSD (gp3) volumes, in TiB", "L-7A658B76", "TiB", 50),
    "io1": Default("Storage for Provisioned IOPS SSD (io1) volumes, in TiB", "L-FD252861", "TiB", 50),
    "io2": Default("Storage for Provisioned IOPS SSD (io2) volumes, in TiB", "L-09BD8365", "TiB", 20),
    "st1": Default("Storage for Throughput Optimized HDD (st1) volumes, in TiB", "L-82ACEF56", "TiB", 50),
    "sc1": Default("Storage for Cold HDD (sc1) volumes, in TiB", "L-17AF77E8", "TiB", 50),
    "standard": Default("Storage for Magnetic (standard) volumes, in TiB", "L-9CF3C2EB", "TiB", 50),
}


@rule(
    id="ebs.account-quota",
    severity="info",
    title="EBS quotas hold for all volumes of a region",
    what="EBS volumes of 16 TiB and more together, or with InterSystems IRIS on them.",
    why="A volume beyond the quota cannot be created and no more IOPS can be bought, whatever the instance carries: "
    "the article's tests needed 600,000 IOPS and had to ask for them.",
    helps_when="Sizing: volumes of io2 with hundreds of thousands of IOPS, or a mirror, which doubles all of it.",
    hurts_when="Nothing is changed by asking; a raised quota is only the right to buy more.",
    sources=(sources.IRIS_GP3, sources.AWS_EBS_QUOTAS),
)
def account_quota(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    volumes = ebs_disks(facts)
    size = sum(disk.size_bytes or 0 for disk in facts.disks if disk.name in volumes)
    smallest = min(one.value for one in STORAGE.values()) * _TIB
    with_iris = any(volumes.intersection(place.disks) for one in facts.iris for place in one.places)
    if not volumes or (size < NEAR * smallest and not with_iris):
        return None
    mirrored = any(one.mirror for one in facts.iris)
    return account_quota.found(
        why=f"AWS gives an account {IOPS['io2'].value:,} provisioned IOPS of io2 volumes and {IOPS['io1'].value:,} of "
        "io1 in a region unless it is asked for more, and 20 TiB of io2, 50 TiB of the other types (300 in a few "
        "regions). All volumes of the region count together"
        + (", those of this instance's mirror members too." if mirrored else ", those of a mirror's other member too.")
        + " What the volumes of this host have, and what the account may have, cannot be seen from inside.",
        evidence={
            "disks": tuple(sorted(volumes)),
            "bytes": size,
            **{f"{kind}_iops_default": one.value for kind, one in IOPS.items()},
        },
        remedy=(
            RunShell(LIST_COMMAND, "see what the account may have"),
            "advisor limits --volumes FILE adds up what was bought",
        ),
        intent=True,
    )
