"""The quotas of the AWS account that the declared volumes count against, each with its default and its command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from advisor.facts.host_facts import Facts
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.ebs import EBS_MODEL
from advisor.rules.ebs_quotas import IOPS, LIST_COMMAND, NEAR, STORAGE, Default


class AccountQuota(msgspec.Struct, frozen=True):
    """One quota of the account in its region, by AWS' name and code.

    ``provisioned`` is what the declared volumes have of it, ``default`` what an account begins with, both in ``unit``;
    ``share`` is the one over the other. ``own`` is the account's own value where it is declared, else unknown.
    """

    name: str
    code: str
    unit: Literal["IOPS", "TiB"]
    provisioned: float
    default: int
    share: float
    own: int | None
    command: str


def account_quotas(declared: Declared) -> tuple[AccountQuota, ...]:
    """Those of the types that are declared: IOPS of io1 and io2, then storage."""
    own = declared.quota.iops if declared.quota else None
    return (*_iops_quotas(declared.volume, own), *_storage_quotas(declared.volume))


def _iops_quotas(volumes: Sequence[DeclaredVolume], own: int | None) -> Iterator[AccountQuota]:
    for kind, default in IOPS.items():
        if found := sum(one.iops or 0 for one in volumes if one.type == kind):
            yield _make_quota(default, found, own)


def _storage_quotas(volumes: Sequence[DeclaredVolume]) -> Iterator[AccountQuota]:
    for kind, default in STORAGE.items():
        if found := sum(one.gib or 0 for one in volumes if one.type == kind):
            yield _make_quota(default, round(found / 1024, 2), None)


def _make_quota(default: Default, provisioned: float, own: int | None) -> AccountQuota:
    share = round(provisioned / default.value, 4)
    return AccountQuota(
        default.name, default.code, default.unit, provisioned, default.value, share, own, default.command
    )


def account_notes(quotas: Sequence[AccountQuota]) -> Iterator[str]:
    """Provisioned IOPS always, as they are what an account has least of; storage where it is near its default."""
    for one in quotas:
        if one.own is None and (one.unit == "IOPS" or one.share >= NEAR):
            default = f"the default of {one.default:,} {one.unit}"
            if one.provisioned > one.default:
                share = f"more than {default}: AWS must have raised it, or they cannot be bought"
            else:
                share = f"{100 * one.share:.0f} % of {default}"
            yield (
                f"quota “{one.name}”: the declared volumes have {one.provisioned:,.10g} {one.unit}, "
                f"{share}. "
                "All volumes of the account in the region count together, those of a mirror's other member too. The "
                f"account's own quota is unknown; ask: {one.command}"
            )


def unknown_quota(facts: Facts, declared: Declared) -> str | None:
    """Why nothing can be said about the account's quota; None where it is declared, or no EBS volume is here."""
    in_cloud = facts.host.cloud is not None and facts.host.cloud.provider == "aws"
    if declared.quota is not None or not (in_cloud or any(disk.model == EBS_MODEL for disk in facts.disks)):
        return None
    own = f"AWS alone knows the account's own values: {LIST_COMMAND}"
    return own if declared.volume else f"no volume's type and IOPS are declared (--volumes FILE), and {own}"
