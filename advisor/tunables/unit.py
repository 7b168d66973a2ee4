"""Kind ``unit:``: settings, NUMA placement and state of a unit of systemd."""

from __future__ import annotations

from advisor.tunables.kind import Capture, Kind
from advisor.tunables.tunable import Tunable
from advisor.tunables.unit_numa import UnitNuma
from advisor.tunables.unit_setting import UnitSetting
from advisor.tunables.unit_state import UnitState


def parse_unit(rest: str) -> Tunable:
    """The tunable of ``UNIT:state``, ``UNIT:numa`` or ``UNIT:DIRECTIVE``. Raises UsageError for what names none."""
    if rest.endswith(":state"):
        return UnitState.parse(rest)
    return UnitNuma.parse(rest) if rest.endswith(":numa") else UnitSetting.parse(rest)


KIND = Kind(
    name="unit",
    order=80,
    parse=parse_unit,
    noun="service",
    examples=(
        ("unit:beegfs-storage.service:numa", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
        ("unit:beegfs-storage.service:LimitNOFILE", "1048576"),
        ("unit:irqbalance.service:state", "disabled inactive"),
    ),
    capture=Capture(
        unit_properties=(
            *("NUMAPolicy", "NUMAMask", "CPUAffinity", "CPUAffinityFromNUMA", "UnitFileState", "ActiveState"),
            *("LimitNOFILE", "LimitNOFILESoft", "LimitMEMLOCK", "LimitMEMLOCKSoft", "LimitNPROC", "LimitNPROCSoft"),
            *("LimitSTACK", "LimitSTACKSoft", "LimitCORE", "LimitCORESoft"),
            *("CPUWeight", "IOWeight", "Nice", "OOMScoreAdjust", "TasksMax"),
        )
    ),
    namespaces=((".+", "mnt"),),
    written_by=frozenset({"tuned", "saptune"}),
    harms=((r".*", "Whoever needs the service misses it, or its load disturbs the others."),),
)
