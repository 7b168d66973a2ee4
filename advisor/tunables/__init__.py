"""What can be set: one file per kind, and the catalogue that turns an id such as ``sysctl:vm.swappiness`` into one.

A tunable is an address with four verbs: how it is read (`probe`), what to do now (`steps`), what to leave on disk
(`edit`), and when it takes effect. Probe, steps and edit are data: apply, the dry run and the rollback script use
the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.errors import UsageError
from advisor.i18n import msg
from advisor.tunables.block import BlockQueue
from advisor.tunables.cmdline import CommandLine
from advisor.tunables.cpufreq import CpuFrequency
from advisor.tunables.cpufreq_boost import CpuBoost
from advisor.tunables.edits import FileEdit, Persisted, edited, mentions
from advisor.tunables.file_key import FileKey
from advisor.tunables.intel_pstate import IntelPstate
from advisor.tunables.irq_affinity import IrqAffinity
from advisor.tunables.link_kinds import parse_link
from advisor.tunables.llt import LltFlow
from advisor.tunables.llt_timer import LltTimer
from advisor.tunables.md import MdSetting
from advisor.tunables.module import KernelModule
from advisor.tunables.module_option import ModuleOption
from advisor.tunables.module_parameter import ModuleParameter
from advisor.tunables.pm_qos import PmQos
from advisor.tunables.sched import SchedDebug
from advisor.tunables.sysctl import Sysctl
from advisor.tunables.sysfs import SysfsAttribute
from advisor.tunables.thp import HugePages
from advisor.tunables.tunable import Effect, Risk, Tunable
from advisor.tunables.unit_numa import UnitNuma
from advisor.tunables.unit_setting import UnitSetting
from advisor.tunables.unit_state import UnitState

__all__ = ["KINDS", "Effect", "FileEdit", "Persisted", "Risk", "Tunable", "edited", "mentions", "tunable"]


def _llt(rest: str) -> Tunable:
    return LltTimer.parse(rest) if rest.startswith("timer.") else LltFlow.parse(rest)


def _unit(rest: str) -> Tunable:
    if rest.endswith(":state"):
        return UnitState.parse(rest)
    return UnitNuma.parse(rest) if rest.endswith(":numa") else UnitSetting.parse(rest)


def _cpufreq(rest: str) -> Tunable:
    return CpuBoost.parse(rest) if rest == "boost" else CpuFrequency.parse(rest)


def _module(rest: str) -> Tunable:
    if ":option." in rest:
        return ModuleOption.parse(rest)
    return ModuleParameter.parse(rest) if ":" in rest else KernelModule.parse(rest)


KINDS: Final[dict[str, Callable[[str], Tunable]]] = {
    "sysctl": Sysctl.parse,
    "link": parse_link,
    "irq": IrqAffinity.parse,
    "block": BlockQueue.parse,
    "md": MdSetting.parse,
    "thp": HugePages.parse,
    "llt": _llt,
    "unit": _unit,
    "file": FileKey.parse,
    "cpufreq": _cpufreq,
    "intel_pstate": IntelPstate.parse,
    "pm-qos": PmQos.parse,
    "sched": SchedDebug.parse,
    "sysfs": SysfsAttribute.parse,
    "module": _module,
    "cmdline": CommandLine.parse,
}


def tunable(identity: str) -> Tunable:
    """The tunable with this id. Raises UsageError for a word or a form that no kind knows."""
    kind, colon, rest = identity.partition(":")
    if not colon or kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise UsageError(
            msg("{identity!r} is not a tunable", identity=identity),
            hint=msg("an id begins with one of: {known}", known=known),
        )
    return KINDS[kind](rest)
