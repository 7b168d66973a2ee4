"""The quotas of the AWS account: named for what is declared, and said to be unknown."""

from __future__ import annotations

from advisor.limits.declared import Declared, DeclaredVolume, Quota
from advisor.limits.paths import limits_of
from advisor.limits.records import AccountQuota, Limits
from advisor.report.limits import limits_text
from tests.limits.hosts import EBS, disk, facts

WIJ = DeclaredVolume("io2", device="nvme1n1", gib=1000, iops=256_000)
DATABASE = DeclaredVolume("io2", device="nvme2n1", gib=2000, iops=100_000)
JOURNAL = DeclaredVolume("gp3", device="nvme3n1", gib=500)


def limits(*volumes: DeclaredVolume, quota: Quota | None = None, model: str = EBS) -> Limits:
    names = [f"nvme{n}n1" for n in range(1, 4)]
    host = facts([disk(name, model=model) for name in names], instance_type="r5b.24xlarge" if model == EBS else None)
    return limits_of(host, None, Declared(volumes, quota))


def quota(found: Limits, name: str) -> AccountQuota:
    (one,) = [one for one in found.account_quotas if name in one.name]
    return one


def text(found: Limits) -> str:
    return " ".join(limits_text(found, width=100, color=False).split())


def test_the_provisioned_iops_of_the_article_are_more_than_an_account_begins_with() -> None:
    """Test 1 of S002: 256,000 + 100,000 IOPS of io2; the account had to be raised to 600,000 for it."""
    found = limits(WIJ, DATABASE, JOURNAL)
    one = quota(found, "IOPS for Provisioned IOPS SSD (io2)")
    assert (one.code, one.provisioned, one.default, one.share, one.own) == ("L-8D977E7E", 356_000, 100_000, 3.56, None)
    words = text(found)
    assert "356,000 IOPS, more than the default of 100,000 IOPS" in words
    assert "The account's own quota is unknown" in words
    assert "--quota-code L-8D977E7E" in words


def test_a_quota_that_is_declared_is_not_called_unknown() -> None:
    found = limits(WIJ, DATABASE, quota=Quota(iops=600_000))
    assert quota(found, "IOPS for").own == 600_000
    words = text(found)
    assert "quota of 600,000; 244,000 are left" in words
    assert "quota is unknown" not in words
    assert not [one for one in found.unknown if "quota" in one.what]


def test_quotas_that_are_not_known() -> None:
    """The types of the volumes cannot be seen from inside."""
    (one,) = [one for one in limits().unknown if "quota" in one.what]
    assert "--volumes FILE" in one.why
    assert "aws service-quotas list-service-quotas --service-code ebs" in one.why
    assert not [one for one in limits(model="Dell Ent NVMe").unknown if "quota" in one.what]
    assert limits(model="Dell Ent NVMe").account_quotas == ()
