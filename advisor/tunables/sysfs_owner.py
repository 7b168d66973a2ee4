"""Which kind of tunable has a file below /sys, so that one thing has one id."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from advisor.errors import UsageError
from advisor.host import Host
from advisor.tunables.block import BlockQueue
from advisor.tunables.cpufreq import CpuFrequency
from advisor.tunables.cpufreq_boost import CpuBoost
from advisor.tunables.intel_pstate import IntelPstate
from advisor.tunables.link_kinds import parse_link
from advisor.tunables.md import MdSetting
from advisor.tunables.module_parameter import ModuleParameter
from advisor.tunables.thp import HugePages
from advisor.tunables.tunable import Tunable

_BLOCK: Final = r"/sys/(?:block|class/block|devices/.*/block)/([^/]+)"
_LINK: Final = r"/sys/(?:class|devices/.*)/net/([^/]+)"
_FORMS: Final[tuple[tuple[str, Callable[[re.Match[str]], Tunable]], ...]] = (
    (rf"{_BLOCK}/queue/([^/]+)", lambda found: BlockQueue.parse(f"{found[1]}:{found[2]}")),
    (rf"{_BLOCK}/md/([^/]+)", lambda found: MdSetting.parse(f"{found[1]}:{found[2]}")),
    (r"/sys/kernel/mm/transparent_hugepage/(.+)", lambda found: HugePages.parse(found[1])),
    (
        r"/sys/devices/system/cpu/cpufreq/(policy\d+)/(?:scaling_)?(governor|energy_performance_preference)",
        lambda found: CpuFrequency.parse(f"{found[1]}:{found[2]}"),
    ),
    (
        r"/sys/devices/system/cpu/cpufreq/(policy\d+)/(scaling_(?:min|max)_freq)",
        lambda found: CpuFrequency.parse(f"{found[1]}:{found[2]}"),
    ),
    (r"/sys/devices/system/cpu/cpufreq/(boost)", lambda found: CpuBoost.parse(found[1])),
    (r"/sys/devices/system/cpu/intel_pstate/([^/]+)", lambda found: IntelPstate.parse(found[1])),
    (r"/sys/module/([^/]+)/parameters/([^/]+)", lambda found: ModuleParameter.parse(f"{found[1]}:{found[2]}")),
    (rf"{_LINK}/mtu", lambda found: parse_link(f"{found[1]}:mtu")),
    (rf"{_LINK}/tx_queue_len", lambda found: parse_link(f"{found[1]}:txqueuelen")),
)


def owner_of(path: str, host: Host) -> str | None:
    """The id of another kind for this file; None where none has it."""
    real = host.real(path)
    for place in (path, real if isinstance(real, str) else path):
        for pattern, made in _FORMS:
            found = re.fullmatch(pattern, place)
            if found:
                try:
                    return made(found).id
                except UsageError:
                    break
    return None
