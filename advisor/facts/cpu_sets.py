"""CPU sets: isolated ones, those that the kernel keeps free of ticks, and the rest, which does the housekeeping.

Sources: Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full, irqaffinity), admin-guide/cgroup-v2.rst
(cpuset.cpus.partition), core-api/irq/irq-affinity.rst (default_smp_affinity), irqbalance(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from advisor.facts.cpulist import format_list, parse_list, parse_mask, read_ids, read_list
from advisor.facts.owners import IRQBALANCE_OPTIONS
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

_CPUS = "/sys/devices/system/cpu"
_CGROUPS = "/sys/fs/cgroup"
_DIGITS = "0123456789"
_BANNED = lazy_regex(r"^[ \t]*IRQBALANCE_BANNED_CPU(S|LIST)[ \t]*=[ \t]*[\"']?([0-9a-fA-F,:/-]*)", re.MULTILINE)


class CpuSets(msgspec.Struct, frozen=True):
    """Kernel list strings of online CPUs; "" for none."""

    isolated: str = ""
    """By isolcpus= and by isolated partitions of cpusets: no task runs there but one that is bound to it."""
    nohz_full: str = ""
    interrupts: str = ""
    """Where a new interrupt may go (irqaffinity=, default_smp_affinity); "" where the kernel restricts nothing."""
    banned: str = ""
    """CPUs that irqbalance's configuration excludes."""
    housekeeping: str = ""
    """Online CPUs that are neither isolated nor free of ticks."""


def read_cpu_sets(host: Host, online: Iterable[int], unknown: Unknowns) -> CpuSets:
    """The sets of a host. The command line counts where an old kernel or a capture shows no set of its own."""
    there = frozenset(online)
    words = _command_line(host)

    def listed(fact: str, found: tuple[int, ...] | Missing, option: str) -> frozenset[int]:
        if isinstance(found, Missing) and not found.is_absent:
            unknown.note(f"cpu.sets.{fact}", found)
        if isinstance(found, Missing):
            found = _parse_option(words.get(option, ""))
        return there.intersection(found)

    isolated = listed("isolated", _read_shown(host, "isolated"), "isolcpus") | there.intersection(_partitions(host))
    ticks = listed("nohz_full", _read_shown(host, "nohz_full"), "nohz_full")
    default = listed("interrupts", read_ids(host, "/proc/irq/default_smp_affinity"), "irqaffinity")
    banned = {cpu for path in IRQBALANCE_OPTIONS for cpu in _read_banned(host.read_or_empty(path))}
    free = there - isolated - ticks
    return CpuSets(
        isolated=format_list(isolated),
        nohz_full=format_list(ticks),
        interrupts="" if default >= there else format_list(default),
        banned=format_list(there & banned),
        housekeeping=format_list(free or there),
    )


def _read_shown(host: Host, name: str) -> tuple[int, ...] | Missing:
    text = host.read(f"{_CPUS}/{name}")
    # The kernel prints a mask that was never made as a null pointer.
    return () if isinstance(text, str) and text.strip(" ()\n") in ("", "null") else read_list(host, f"{_CPUS}/{name}")


def _partitions(host: Host) -> tuple[int, ...]:
    """CPUs of isolated partitions, by the kernel's own list (Linux 6.7), else by the cgroups below the root."""
    found = read_list(host, f"{_CGROUPS}/cpuset.cpus.isolated")
    if not isinstance(found, Missing):
        return found
    groups = (f"{_CGROUPS}/{name}" for name in host.names(_CGROUPS))
    lists = (
        read_list(host, f"{group}/cpuset.cpus.effective")
        for group in groups
        if host.read_or_empty(f"{group}/cpuset.cpus.partition").strip() == "isolated"
    )
    return tuple(cpu for cpus in lists if not isinstance(cpus, Missing) for cpu in cpus)


def _command_line(host: Host) -> dict[str, str]:
    pairs = (word.partition("=") for word in host.read_or_empty("/proc/cmdline").split())
    return {name: value for name, equals, value in pairs if equals}


def _parse_option(text: str) -> tuple[int, ...]:
    """The list of ``isolcpus=managed_irq,domain,2-15``: flags come first."""
    parts = [part for part in text.split(",") if part[:1] in _DIGITS and part]
    return _parsed(parse_list, ",".join(parts))


def _read_banned(text: str) -> tuple[int, ...]:
    """The last line counts, as for a shell. An empty list bans nothing."""
    found = _BANNED.findall(text)
    kind, value = found[-1] if found else ("LIST", "")
    return _parsed(parse_mask if kind == "S" else parse_list, value)


def _parsed(parse: Callable[[str], tuple[int, ...]], text: str) -> tuple[int, ...]:
    try:
        return parse(text)
    except ValueError:
        return ()
