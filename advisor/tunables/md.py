"""``md:DEV:ATTRIBUTE`` — a setting of an md array, persisted in a udev rule that knows it by its UUID.

The attributes are those of the kernel's Documentation/admin-guide/md: stripe_cache_size (in pages of each member, RAID
4, 5 and 6 only), group_thread_cnt, preread_bypass_threshold, skip_copy, sync_speed_min and sync_speed_max (KiB/s, or
``system`` for what the sysctls dev.raid.speed_limit_* say).
"""

from __future__ import annotations

import re

from advisor.host import Host
from advisor.tunables.block import BLOCK_PATHS, BlockValue, example_files, identity_of, identity_refusal, later_rules
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.preflight import Preflight

# Bounds of the kernel's own (drivers/md/raid5.c, md.c); what it takes beyond is bounded by the array.
_BOUNDS = {
    "stripe_cache_size": (17, 32768),
    "group_thread_cnt": (0, 8192),
    "preread_bypass_threshold": (0, 32768),
    "skip_copy": (0, 1),
    "sync_speed_min": (1, 2_000_000_000),
    "sync_speed_max": (1, 2_000_000_000),
}
ATTRIBUTES = tuple(_BOUNDS)


class MdSetting(BlockValue, frozen=True):
    kind = "md"
    example = "md0"
    directory = "md"
    attributes = ATTRIBUTES

    def can_read(self, live: str) -> bool:
        return live == "system" or super().can_read(live)

    @property
    def _is_speed(self) -> bool:
        return self.attribute.startswith("sync_speed_")

    @property
    def value_form(self) -> str:
        return "md-speed" if self._is_speed else "words"

    def check_value(self, value: str) -> str | None:
        if self._is_speed and value == "system":
            return None
        low, high = _BOUNDS[self.attribute]
        if re.fullmatch(r"0|[1-9][0-9]{0,9}", value) and low <= int(value) <= high:
            return None
        if self._is_speed:
            return f"is not a whole number from {low} to {high} or the word system"
        return f"is not a whole number from {low} to {high}"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        identity = identity_of(host, self.device)
        return Preflight(
            refusal=identity_refusal(identity),
            state="incapable",
            identity=identity,
            notes=later_rules(host, f"md/{self.attribute}"),
        )


KIND = Kind(
    name="md",
    order=50,
    parse=MdSetting.parse,
    devices=lambda host: (name for name in host.names("/sys/block") if host.exists(f"/sys/block/{name}/md")),
    noun="md array setting",
    examples=(("md:md0:stripe_cache_size", "4096"),),
    capture=Capture(files=(("/sys/block/*/md", ATTRIBUTES),)),
    written_by=frozenset(),
    sysfs=((rf"{BLOCK_PATHS}/md/([^/]+)", r"md:\1:\2"),),
    example_files=example_files,
)
