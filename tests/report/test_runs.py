"""Names in a row: a range names nothing that is not meant, and disks are in the kernel's own order."""

from __future__ import annotations

import pytest

from advisor.facts.block import natural as natural_fact
from advisor.report.format import natural, ranked, runs


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("sda1", "sdd1", "sde1"), "sda1, sdd1, sde1"),
        (("sda", "sdb", "sdc"), "sda … sdc"),
        (("sdy", "sdaa", "sdz", "sdab"), "sdy … sdab"),
        (("sdb", "sdd", "sdaa"), "sdb, sdd, sdaa"),
        (("md0", "md2", "md4"), "md0, md2, md4"),
        (("nvme9n1", "nvme10n1", "nvme11n1"), "nvme9n1 … nvme11n1"),
        (("stor09", "stor10", "stor11", "stor13"), "stor09 … stor11, stor13"),
        (("alpha", "beta", "gamma"), "alpha, beta, gamma"),
        (("sda1", "sda2", "sda3", "sdb1"), "sda1 … sda3, sdb1"),
        (("sda1", "sdb1", "sdc1", "sdc2", "sdc3"), "sda1 … sdc1, sdc2, sdc3"),
        (("sda1", "sdb1", "sdb2", "sdc2"), "sda1, sdb1, sdb2, sdc2"),
        (("sdzz", "sdaaa", "sdaab"), "sdzz … sdaab"),
    ],
)
def test_a_range_names_nothing_that_is_not_there(names: tuple[str, ...], text: str) -> None:
    assert runs(names, ranked(names)) == text


@pytest.mark.parametrize("key", [natural, natural_fact])
def test_disks_are_in_the_order_in_which_the_kernel_names_them(key: object) -> None:
    names = ["sda", "sda2", "sda10", "sdb", "sdz", "sdaa", "sdab", "vda", "vdaa"]
    assert sorted(names, key=key) == names  # type: ignore[call-overload]
