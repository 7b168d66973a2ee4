"""``[cpu]``: frequency, energy preferences and the latency of idle states."""

from __future__ import annotations

import itertools
import re

from advisor.host import Host, Missing
from advisor.importers.made import Found
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned.context import Given

_CPUS = "/sys/devices/system/cpu"
_STATES = f"{_CPUS}/cpu0/cpuidle"
_DYNAMIC = ("load_threshold", "latency_low", "latency_high")
_FIRST_ONLY = ("force_latency", "min_perf_pct", "max_perf_pct", "no_turbo")
# The kernel's numbers for the words of its energy_perf_bias files (arch/x86/kernel/cpu/intel_epb.c).
_BIAS = {"performance": 0, "balance-performance": 4, "normal": 6, "balance-power": 8, "power": 15}
_OLD_BIAS = {"powersave": 15}
OPTIONS = frozenset(
    {*_DYNAMIC, *_FIRST_ONLY, "governor", "sampling_down_factor", "energy_perf_bias"}
    | {"pm_qos_resume_latency_us", "energy_performance_preference", "boost"}
)


def convert_cpu(given: Given) -> Found:
    key = given.key
    if key in _DYNAMIC:
        return given.line.ignored("it steers what TuneD does by itself while it runs", "dynamic")
    if key in _FIRST_ONLY and not given.instance.is_first and given.is_faithful:
        return given.line.ignored("TuneD takes this from the first section of the plugin alone", "inert")
    if given.instance.unit.devices != "*" and key not in _FIRST_ONLY:
        return given.line.manual("it is for some CPUs only, and our tunable is for all of them")
    if key == "governor":
        if "" in _split_alternatives(given.text):
            governor = given.swallowed("one of its alternatives is empty, and TuneD then sets none")
        else:
            governor = _first_offered(given, "scaling_available_governors", "governor")
        return governor
    if key == "energy_performance_preference":
        return _first_offered(given, "energy_performance_available_preferences", "energy_performance_preference")
    if key == "energy_perf_bias":
        return _bias(given)
    if key == "force_latency":
        return _latency(given)
    if key == "pm_qos_resume_latency_us":
        path = f"{_CPUS}/cpu*/power/pm_qos_resume_latency_us"
        return given.line.wanted((f"sysfs:{path}",), given.text)
    if key in ("min_perf_pct", "max_perf_pct"):
        return given.line.wanted(f"intel_pstate:{key}", given.text)
    if key == "no_turbo":
        return _no_turbo(given)
    if key == "boost":
        return given.line.wanted(("cpufreq:boost", f"sysfs:{_CPUS}/cpufreq/boost"), given.text)
    return given.line.manual("it belongs to one governor, and which of them runs is known only while it does")


def _split_alternatives(text: str) -> list[str]:
    return [word.strip() for word in text.split("|")]


def _first_offered(given: Given, file: str, attribute: str) -> ImportedSetting:
    """With all of its alternatives, of which a plan takes the first that the CPUs of its host offer."""
    wanted = _split_alternatives(given.text)
    # What CPU 0 offers; None where nothing says so.
    text = given.host.read(f"{_CPUS}/cpu0/cpufreq/{file}")
    if isinstance(text, Missing):
        text = given.host.read(f"{_CPUS}/cpufreq/policy0/{file}")
    offered = None if isinstance(text, Missing) else text.split()
    if offered and not set(wanted) & set(offered):
        return given.swallowed(f"these CPUs offer {', '.join(offered)}, and none of what is wanted")
    note = "this host shows no such setting of its CPUs: TuneD and a plan pass over it" if offered is None else ""
    return given.line.wanted(f"cpufreq:*:{attribute}", "|".join(wanted), note=note)


def _bias(given: Given) -> ImportedSetting:
    known = _BIAS if _has_flag(given.host, "hwp_epp") else {**_OLD_BIAS, **_BIAS}
    chosen = next(
        (word for word in _split_alternatives(given.text) if word in known or re.fullmatch(r"[0-9]{1,2}", word)), None
    )
    if chosen is None:
        return given.swallowed("none of its words is one of the kernel's for it")
    value = str(known.get(chosen, chosen))
    note = f"{chosen} is {value} in the kernel's file" if chosen != value else ""
    return given.line.wanted((f"sysfs:{_CPUS}/cpu*/power/energy_perf_bias",), value, note=note)


def _has_flag(host: Host, flag: str) -> bool:
    text = host.read("/proc/cpuinfo")
    return isinstance(text, str) and re.search(rf"^flags\s*:.*\b{flag}\b", text, re.MULTILINE) is not None


def _no_turbo(given: Given) -> ImportedSetting:
    word = given.text.strip().lower()
    if re.fullmatch(r"[01]", word):
        return given.line.wanted("intel_pstate:no_turbo", word)
    value = {"true": "1", "yes": "1", "y": "1", "false": "0", "no": "0", "n": "0"}.get(word)
    why = f"TuneD writes the word {given.text[:20]!r}, where intel_pstate takes a number, and passes over the error"
    if given.is_faithful or value is None:
        return given.swallowed(why)
    return given.line.wanted("intel_pstate:no_turbo", value, note=why, departs="refused")


def _latency(given: Given) -> ImportedSetting:
    latency, note = latency_of(given.text, given.host)
    if note == "none":
        return given.line.ignored("none: TuneD sets no latency")
    if latency is None:
        return given.swallowed(f"no latency follows from it here: {note}")
    if given.is_faithful and _breaks_off(given.text, given.host):
        why = f"these CPUs show no idle states: TuneD breaks off where it looks for the name of one, and sets no {note}"
        return given.line.ignored(why, "refused")
    return given.line.wanted("pm-qos:cpu_dma_latency", str(latency), note=note)


def latency_of(text: str, host: Host) -> tuple[int | None, str]:
    """Microseconds from ``cstate.id:1|cstate.name:C1|3``: the first alternative that holds on this host; and how."""
    for word in text.split("|"):
        if word in ("none", "None"):
            return None, "none"
        if re.fullmatch(r"\s*[+-]?\d{1,10}\s*", word, re.ASCII):
            return int(word), "" if word == text else f"{word.strip()} of {text[:60]}"
        found = re.fullmatch(r"cstate\.(id|name)(_no_zero)?:(.*)", word, re.DOTALL)
        if found is None:
            continue
        latency = _of_state(host, found[1], found[3])
        if latency is not None and not (found[2] and latency == 0):
            return latency, f"{word} is {latency} on this host"
    return None, "this host has no such idle state"


def _breaks_off(text: str, host: Host) -> bool:
    """Whether TuneD lists idle states that are not there, which it does not expect; alternatives before have failed."""
    if host.is_dir(_STATES):
        return False
    reached = itertools.takewhile(
        lambda word: not re.fullmatch(r"\s*[+-]?[0-9]{1,10}\s*|none|None", word), text.split("|")
    )
    return any(re.match(r"cstate\.name(_no_zero)?:", word) for word in reached)


def _of_state(host: Host, by: str, wanted: str) -> int | None:
    if by == "id":
        found = host.read_int(f"{_STATES}/state{wanted}/latency") if re.fullmatch(r"[0-9]{1,4}", wanted) else None
        return found if isinstance(found, int) else None
    for state in host.names(_STATES):
        if host.read(f"{_STATES}/{state}/name") == wanted:
            found = host.read_int(f"{_STATES}/{state}/latency")
            return found if isinstance(found, int) else None
    return None
