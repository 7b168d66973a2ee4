"""``thp:NAME`` — a setting of transparent huge pages, persisted in a line of tmpfiles.d (tmpfiles.d(5)).

NAME is a file below /sys/kernel/mm/transparent_hugepage: enabled, defrag, shmem_enabled, use_zero_page, or one of
khugepaged/. What is mapped already keeps its pages.
"""

from __future__ import annotations

import re

import msgspec

from advisor.host import Host
from advisor.tunables.kernel_file import NamedAttribute
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.preflight import Preflight

_BASE = "/sys/kernel/mm/transparent_hugepage"
_CHOICES = ("enabled", "defrag", "shmem_enabled")
_SWITCHES = ("use_zero_page", "khugepaged/defrag")
_NUMBERS = (
    *("khugepaged/alloc_sleep_millisecs", "khugepaged/scan_sleep_millisecs", "khugepaged/pages_to_scan"),
    *("khugepaged/max_ptes_none", "khugepaged/max_ptes_swap", "khugepaged/max_ptes_shared"),
)


class HugePages(NamedAttribute, frozen=True):
    kind = "thp"
    directory = _BASE
    names = (*_CHOICES, *_SWITCHES, *_NUMBERS)
    about = "Transparent huge pages"
    holds_count = True

    @property
    def value_form(self) -> str:
        return "selected" if self.name in _CHOICES else "words"

    def check_value(self, value: str) -> str | None:
        if self.name in _CHOICES:
            return None if re.fullmatch(r"[a-z_]+(\+[a-z_]+)?", value) else "is not a word such as madvise"
        if self.name in _SWITCHES:
            return None if value in ("0", "1") else "is not 0 or 1"
        return None if re.fullmatch(r"0|[1-9][0-9]{0,9}", value) else "is not a whole number"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        found = super().run_preflight(host, before, after)
        return msgspec.structs.replace(found, notes=self._command_line(host))

    def _command_line(self, host: Host) -> tuple[str, ...]:
        words = host.read_or_empty("/proc/cmdline").split() if self.name == "enabled" else ()
        said = [word for word in words if word.startswith("transparent_hugepage=")]
        after = "which holds from boot until systemd-tmpfiles carries our line out"
        return (f"the kernel's command line says {said[-1]}, {after}",) if said else ()


KIND = Kind(
    name="thp",
    order=60,
    parse=HugePages.parse,
    noun="huge page setting",
    examples=(("thp:enabled", "madvise"),),
    capture=Capture(files=((_BASE, _CHOICES),)),
    written_by=frozenset({"tuned", "saptune"}),
    sysfs=((rf"{_BASE}/(.+)", r"thp:\1"),),
    slow=r".*",
    harm="Databases with huge pages of their own stall on allocations; programs with large heaps lose without them.",
)
