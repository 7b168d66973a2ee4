"""CPUs: online and offline, cores, packages, and what the caller may use.

Source: Documentation/admin-guide/cputopology.rst. The kernel's sibling lists say which CPUs share a core or package, so
one CPU of each core is read and not every one of them. They count before the ids: ids are missing or -1 on POWER and
s390, and one number names two packages on some ia64 machines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial

import msgspec

from advisor.facts.network.link_claim import IRQBALANCE_OPTIONS
from advisor.facts.processors.cpulist import format_list, parse_list, parse_mask, read_allowed, read_ids, read_list
from advisor.facts.processors.power import (
    Frequency,
    Power,
    Processor,
    parse_cpuinfo,
    parse_model,
    read_frequency,
    read_power,
)
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

# CPU sets: isolated ones, those that the kernel keeps free of ticks, and the rest, which does the housekeeping.

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


# The newer name first (Linux 5.3); both mean the same mask.
_CORE_LISTS = ("core_cpus_list", "thread_siblings_list", "thread_siblings")

Groups = list[frozenset[int]]
Key = tuple[int | None, ...]
KeyOf = Callable[[int], Key | None]


class Cpu(msgspec.Struct, frozen=True):
    """``threads`` counts online logical CPUs; ``cores`` and ``packages`` those that have an online CPU.

    ``threads_per_core`` is that of the core with the most online CPUs; hybrid processors have cores with fewer.
    """

    online: str | None
    offline: str | None
    present: str | None
    threads: int | None
    cores: int | None
    packages: int | None
    threads_per_core: int | None
    model: str | None
    allowed: str | None
    """CPUs that the calling process may run on, by affinity and cpuset (kernel list string)."""
    frequency: Frequency | None = None
    """None where the kernel sets no clock."""
    power: Power | None = None
    """Turbo, idle states, SMT, clock source and heat; None where no CPU is shown."""
    sets: CpuSets = CpuSets()


def read_cpu(host: Host, unknown: Unknowns) -> Cpu:
    """CPU facts of a host. ``offline`` is the kernel's own list, which may reach beyond the CPUs that are present."""
    online = online_cpus(host)
    if isinstance(online, Missing):
        unknown.note("cpu.online", "the host shows no CPUs: neither in /sys/devices/system/cpu nor in /proc")
        return Cpu(None, None, None, None, None, None, None, _read_model(host, unknown), None)
    cores, packages = _cores_and_packages(host, online, unknown)
    listed = read_list(host, f"{_CPUS}/offline")
    # Without affinity and cpuset (a kernel that has neither, or a captured host) every online CPU is allowed.
    found = read_allowed(host, "cpus")
    if not isinstance(found, Missing):
        allowed = format_list(set(found).intersection(online))
    elif found.is_absent:
        allowed = format_list(online)
    else:
        unknown.note("cpu.allowed", found)
        allowed = None
    return Cpu(
        online=format_list(online),
        offline=format_list(
            set(_read_present(host, online)).difference(online) if isinstance(listed, Missing) else listed
        ),
        present=format_list(_read_present(host, online)),
        threads=len(online),
        cores=len(cores) if cores else None,
        packages=len(packages) if packages else None,
        threads_per_core=max(map(len, cores)) if cores else None,
        model=_read_model(host, unknown),
        allowed=allowed,
        frequency=read_frequency(host, unknown),
        power=read_power(host, tuple(sorted(min(one) for one in packages)) if packages else online[:1]),
        sets=read_cpu_sets(host, online, unknown),
    )


def online_cpus(host: Host) -> tuple[int, ...] | Missing:
    """Ids of the online CPUs, sorted.

    Old kernels (2.6.18 of RHEL 5) have no list: there it follows from the CPUs' own directories, or from /proc/stat.
    """
    listed = read_list(host, f"{_CPUS}/online")
    if not isinstance(listed, Missing) and listed:
        return listed
    return _online_directories(host) or _online_in_proc(host) or Missing("absent", "no CPUs are shown")


def _online_directories(host: Host) -> tuple[int, ...]:
    cpus = _list_directories(host)
    with_topology = {cpu for cpu in cpus if host.is_dir(f"{_CPUS}/cpu{cpu}/topology")}

    def is_online(cpu: int) -> bool:
        state = host.read(f"{_CPUS}/cpu{cpu}/online")
        # CPU 0 often has no such file; a CPU that was taken offline loses its topology.
        return (cpu in with_topology or not with_topology) if isinstance(state, Missing) else state != "0"

    return tuple(cpu for cpu in cpus if is_online(cpu))


def _online_in_proc(host: Host) -> tuple[int, ...]:
    stat = host.read("/proc/stat")
    if not isinstance(stat, Missing) and (found := re.findall(r"^cpu(\d{1,5}) ", stat, re.MULTILINE | re.ASCII)):
        return tuple(sorted(set(map(int, found))))
    return tuple(processor.number for processor in _read_processors(host))


def _list_directories(host: Host) -> tuple[int, ...]:
    found = (re.fullmatch(r"cpu(\d{1,5})", name, re.ASCII) for name in host.names(_CPUS))
    return tuple(sorted(int(name[1]) for name in found if name))


def _read_present(host: Host, online: tuple[int, ...]) -> tuple[int, ...]:
    listed = read_list(host, f"{_CPUS}/present")
    return (_list_directories(host) or online) if isinstance(listed, Missing) else listed


def _read_model(host: Host, unknown: Unknowns) -> str | None:
    text = host.read("/proc/cpuinfo")
    model = None if isinstance(text, Missing) else parse_model(text)
    if model is None:
        unknown.note("cpu.model", text if isinstance(text, Missing) else "/proc/cpuinfo names no model")
    return model


def _read_processors(host: Host) -> tuple[Processor, ...]:
    text = host.read("/proc/cpuinfo")
    return () if isinstance(text, Missing) else parse_cpuinfo(text)


def _cores_and_packages(host: Host, online: tuple[int, ...], unknown: Unknowns) -> tuple[Groups | None, Groups | None]:
    """The online CPUs grouped by core and by package; None, and noted, where the host does not report it."""
    if len(online) == 1:
        return [frozenset(online)], [frozenset(online)]
    processors = cache(partial(_read_processors, host))
    groups = _sibling_groups(host, online, ("package_cpus_list", "core_siblings_list", "core_siblings"))
    packages = (
        (groups and _join_groups(host, groups))
        or _group_by(online, _ids_by_files(host, online, "physical_package_id", "book_id", "drawer_id"))
        or _group_by(online, {processor.number: processor.package for processor in processors()}.get)
    )
    package_of = {cpu: number for number, group in enumerate(packages or ()) for cpu in group}
    cores = (
        _core_groups(host, online)
        or _group_by(online, _key_within(package_of, _ids_by_files(host, online, "core_id", "die_id")))
        or _group_by(online, _key_within(package_of, _cpuinfo_ids(host, online, processors())))
    )
    for fact, groups in (("cpu.cores", cores), ("cpu.packages", packages)):
        if groups is None:
            unknown.note(fact, "neither sibling lists nor ids in /sys/devices/system/cpu, and none in /proc/cpuinfo")
    return cores, packages


def _core_groups(host: Host, online: tuple[int, ...]) -> Groups | None:
    groups = _sibling_groups(host, online, _CORE_LISTS)
    shared = next((sorted(group) for group in groups or () if len(group) > 1), None)
    if shared is None:
        return groups
    # Kernels of 2011 to 2016 list the two cores of an AMD compute unit (family 15h) as siblings, each with a core id.
    ids = {_read_id(host, cpu, "core_id") for cpu in shared[:2]}
    return [frozenset([cpu]) for cpu in online] if len(ids) == 2 and None not in ids else groups


def _join_groups(host: Host, groups: Groups) -> Groups:
    """Groups of one package joined: kernels such as RHEL 7.0's split a package with two NUMA nodes (cluster on die).

    The parts have one package id and different core ids. Where a core id repeats (SGI ia64 boards, whose packages share
    an id) they are packages of their own, as are those in different books or drawers of s390.
    """
    by_id: dict[Key, Groups] = {}
    for group in groups:
        package = _read_id(host, min(group), "physical_package_id")
        by_id.setdefault((package,) if package is not None else (None, min(group)), []).append(group)
    return [joined for same in by_id.values() for joined in _joined_same(host, same)]


def _joined_same(host: Host, groups: Groups) -> Groups:
    if len(groups) == 1:
        return groups
    places = {tuple(_read_id(host, min(group), name) for name in ("book_id", "drawer_id")) for group in groups}
    parts = [{_read_id(host, cpu, "core_id") for cpu in group} for group in groups]
    cores = set[int | None]().union(*parts)
    is_one = len(places) == 1 and None not in cores and len(cores) == sum(map(len, parts))
    return [frozenset[int]().union(*groups)] if is_one else groups


def _sibling_groups(host: Host, online: tuple[int, ...], names: tuple[str, ...]) -> Groups | None:
    """A partition of the CPUs by their sibling lists, reading one CPU of each group; None where a list is missing."""
    name = next((name for name in names if host.exists(f"{_CPUS}/cpu{online[0]}/topology/{name}")), None)
    if name is None:
        return None
    groups: Groups = []
    left = set(online)
    for cpu in online:
        if cpu not in left:
            continue
        siblings = read_ids(host, f"{_CPUS}/cpu{cpu}/topology/{name}")
        if isinstance(siblings, Missing):
            return None
        group = frozenset(left.intersection(siblings)) | {cpu}
        left -= group
        groups.append(group)
    return groups


def _ids_by_files(host: Host, online: tuple[int, ...], first: str, *more: str) -> KeyOf:
    """Ids of a CPU by those of the named files that exist; none where the first does not, or is -1."""
    there = set(host.names(f"{_CPUS}/cpu{online[0]}/topology"))
    used = [first, *(name for name in more if name in there)]

    def key(cpu: int) -> Key | None:
        ids = tuple(_read_id(host, cpu, name) for name in used)
        return None if ids[0] is None else ids

    return key if first in there else lambda cpu: None


def _cpuinfo_ids(host: Host, online: tuple[int, ...], processors: tuple[Processor, ...]) -> KeyOf:
    """Core id of /proc/cpuinfo, and the die where sysfs has it: core ids start at 0 again in each die."""
    known = {processor.number: processor.core for processor in processors}
    dies = _sibling_groups(host, online, ("die_cpus_list",)) or []
    # Architectures without dies show each CPU as its own one.
    die_of = {cpu: min(die) for die in dies if len(dies) < len(online) for cpu in die}

    def key(cpu: int) -> Key | None:
        core = known.get(cpu)
        return None if core is None else (core, die_of.get(cpu))

    return key


def _key_within(package_of: dict[int, int], key: KeyOf) -> KeyOf:
    def whole(cpu: int) -> Key | None:
        ids = key(cpu)
        return None if ids is None else (package_of.get(cpu), *ids)

    return whole


def _group_by(cpus: tuple[int, ...], key: Callable[[int], object]) -> Groups | None:
    groups: dict[object, set[int]] = {}
    for cpu in cpus:
        value = key(cpu)
        if value is None:
            return None
        groups.setdefault(value, set()).add(cpu)
    return [frozenset(group) for group in groups.values()]


def _read_id(host: Host, cpu: int, name: str) -> int | None:
    number = host.read_int(f"{_CPUS}/cpu{cpu}/topology/{name}")
    return None if isinstance(number, Missing) or number < 0 else number
