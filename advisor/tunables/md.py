"""``md:DEV:ATTRIBUTE`` — a setting of an md array, persisted in a udev rule that knows it by its UUID.

The attributes are those of the kernel's Documentation/admin-guide/md: stripe_cache_size (in pages of each member, RAID
4, 5 and 6 only), group_thread_cnt, preread_bypass_threshold, skip_copy, sync_speed_min and sync_speed_max (KiB/s, or
``system`` for what the sysctls dev.raid.speed_limit_* say).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from advisor.errors import UsageError
from advisor.host import Host, Missing
from advisor.i18n import msg, noun
from advisor.tunables.block_identity import (
    BLOCK_PATHS,
    device_rule,
    disk_files,
    identity_of,
    identity_refusal,
    is_device_name,
    later_rules,
)
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.preflight import Preflight
from advisor.tunables.tunable import Tunable

# Bounds of the kernel's own (drivers/md/raid5.c, md.c); what it takes beyond is bounded by the array.
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "stripe_cache_size": (17, 32768),
    "group_thread_cnt": (0, 8192),
    "preread_bypass_threshold": (0, 32768),
    "skip_copy": (0, 1),
    "sync_speed_min": (1, 2_000_000_000),
    "sync_speed_max": (1, 2_000_000_000),
}
ATTRIBUTES: Final = tuple(_BOUNDS)


class MdSetting(KernelFile, frozen=True):
    device: str
    attribute: str

    @classmethod
    def parse(cls, rest: str) -> MdSetting:
        device, _, attribute = rest.rpartition(":")
        if attribute not in _BOUNDS or not is_device_name(device):
            raise UsageError(
                msg("'md:{rest}' is not a tunable", rest=rest),
                hint=msg("write md:md0:ATTRIBUTE, one of {bounds}", bounds=", ".join(_BOUNDS)),
            )
        return cls(device, attribute)

    @property
    def id(self) -> str:
        return f"md:{self.device}:{self.attribute}"

    @property
    def path(self) -> str:
        return f"/sys/block/{self.device}/md/{self.attribute}"

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
        return f"is not a whole number from {low} to {high}" + (" or the word system" if self._is_speed else "")

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return device_rule(host, self.device, f"md/{self.attribute}", value)

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        identity = identity_of(host, self.device)
        return Preflight(
            refusal=identity_refusal(identity),
            state="incapable",
            identity=identity,
            notes=later_rules(host, f"md/{self.attribute}"),
        )


def _example_files(one: Tunable) -> Mapping[str, bytes]:
    return disk_files(one.device, one.path) if isinstance(one, MdSetting) else {}


KIND: Final = Kind(
    name="md",
    order=50,
    parse=MdSetting.parse,
    noun=noun("md array setting"),
    examples=(("md:md0:stripe_cache_size", "4096"),),
    capture=Capture(files=(("/sys/block/*/md", ATTRIBUTES),)),
    written_by=frozenset(),
    sysfs=((rf"{BLOCK_PATHS}/md/([^/]+)", r"md:\1:\2"),),
    example_files=_example_files,
)
