"""What the rules about memory, the receive path, md and geometry advise, and where that has a bound."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.rules.rule import Finding, SetTunable, set_sysctl
from tests.cases import read_cases
from tests.rules.build import GIB, array, disk, filesystem, link, replaced
from tests.rules.cases_storage import counted, memory, parity, ringed, sysctl
from tests.rules.test_rules import findings_of


def only(rule: str, workload: str | None = None, **parts: Any) -> Finding:
    (found,) = findings_of(rule, workload, parts)
    return found


DATA = read_cases(__file__)


@pytest.mark.parametrize(("rx", "command"), DATA["a_ring_is_made_longer_only_where_it"])
def test_a_ring_is_made_longer_only_where_it_is_short(rx: int, command: str) -> None:
    assert only("network.ring-drops", links=(ringed(rx, 5000),)).advice.startswith(command)


def test_losses_that_several_names_count_are_not_added_up() -> None:
    counters = {"rx_packets": 100, "rx_missed_errors": 7, "rx_fifo_errors": 7, "rx_over_errors": 2}
    assert "lost 7 packets" in only("network.ring-drops", links=(link("eth1", counters=counters),)).title


@pytest.mark.parametrize(("total", "wanted"), [(64 * GIB, 262_144), (4 * GIB, 125_829)])
def test_the_reserve_is_never_advised_above_three_per_cent(total: int, wanted: int) -> None:
    stalls = counted(reclaimed_directly_pages=50_000, reclaimed_by_kswapd_pages=150_000)
    parts = {**stalls, **sysctl(vm__min_free_kbytes="67584"), **memory(total_bytes=total)}
    remedy = (set_sysctl("vm.min_free_kbytes", wanted, "at-least"),)
    assert only("vm.reclaim-stalls", **parts).remedy == remedy


@pytest.mark.parametrize(("available", "entries"), [(48 * GIB, 4096), (2 * GIB, 2048), (1 * GIB, 1024)])
def test_the_stripe_cache_fits_into_a_share_of_the_memory(available: int, entries: int) -> None:
    parts = {"arrays": (parity(stripe_cache_size="256"),), **memory(available_bytes=available)}
    found = only("md.stripe-cache-small", "backup", **parts)
    assert found.evidence["memory_cost_bytes"] == entries * 4096 * 4
    assert found.remedy == (SetTunable("md:md0:stripe_cache_size", str(entries), "at-least"),)


def test_a_file_system_on_a_volume_on_an_array_is_told_the_stripes_of_the_array() -> None:
    arrays = (
        array(level="raid6", data_disks=2, chunk_bytes=64 << 10),
        array("vg0/data", "md0", manager="lvm", device="dm-0", level="linear"),
    )
    system = filesystem("dm-0", kind="ext4", stripe_unit_bytes=0, stripe_width_bytes=0)
    found = only("filesystems.not-aligned", arrays=arrays, filesystems=(system,))
    assert found.commands == ("tune2fs -E stride=16,stripe_width=32 /dev/dm-0",)


def test_volumes_that_lie_on_each_other_in_a_ring_end() -> None:
    one = array("vg0/a", "dm-1", manager="lvm", device="dm-0", level="linear")
    other = array("vg0/b", "dm-0", manager="lvm", device="dm-1", level="linear")
    system = filesystem("dm-0", stripe_unit_bytes=0, stripe_width_bytes=0)
    assert findings_of("filesystems.not-aligned", None, {"arrays": (one, other), "filesystems": (system,)}) == ()


@pytest.mark.parametrize("text", ["", "many", "-1", "9" * 40, "4096"])
def test_odd_attributes_of_a_queue_say_nothing(text: str) -> None:
    queue = dict.fromkeys(("physical_block_size", "optimal_io_size", "nr_requests", "max_sectors_kb"), text)
    odd = replaced(disk("sda", partition_offsets={"sda1": 1 << 20}), {"queue": queue})
    assert findings_of("disks.partition-not-aligned", None, {"disks": (odd,)}) == ()
    assert findings_of("disks.requests-below-chunk", None, {"disks": (odd,), "arrays": (array("md0", "sda"),)}) == ()


@pytest.mark.parametrize("limit", ["none", "0 (local)", "", "fast"])
def test_a_rebuild_without_a_known_limit_says_nothing(limit: str) -> None:
    rebuilt = replaced(parity(sync_speed="199000", sync_speed_max=limit), {"state": "recovering"})
    assert findings_of("md.rebuild-limited", None, {"arrays": (rebuilt,)}) == ()
