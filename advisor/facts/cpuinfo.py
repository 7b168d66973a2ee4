"""/proc/cpuinfo, whose words differ from architecture to architecture (``arch/*/kernel/`` show_cpuinfo)."""

from __future__ import annotations

import re

import msgspec

from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

# x86 prints "processor : 0", s390 "processor 0: version = ..." and in its second part "cpu number : 0".
_ENTRY = lazy_regex(r"^(?:processor|cpu number)[ \t]*(?::[ \t]*(\d{1,6})\s*$|[ \t](\d{1,6}):)", re.MULTILINE | re.ASCII)
_MACHINE = lazy_regex(r"^processor[ \t]+[0-9]+:.*\bmachine = (\w+)", re.MULTILINE)

# In this order: "cpu" is POWER's and SPARC's name for the model, "Processor" that of 32-bit ARM, "family" of old ia64.
_MODEL_FIELDS = ("model name", "Model Name", "cpu model", "cpu", "Processor", "uarch", "family")

# Server and cloud cores by (implementer, part) of MIDR_EL1; Arm's, Cavium's, HiSilicon's and Ampere's own lists.
_ARM_CORES = {
    ("0x41", "0xd03"): "ARM Cortex-A53",
    ("0x41", "0xd07"): "ARM Cortex-A57",
    ("0x41", "0xd08"): "ARM Cortex-A72",
    ("0x41", "0xd0c"): "ARM Neoverse-N1",
    ("0x41", "0xd40"): "ARM Neoverse-V1",
    ("0x41", "0xd49"): "ARM Neoverse-N2",
    ("0x41", "0xd4f"): "ARM Neoverse-V2",
    ("0x43", "0x0a1"): "Cavium ThunderX",
    ("0x43", "0x0af"): "Cavium ThunderX2",
    ("0x48", "0xd01"): "HiSilicon TaiShan-v110",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
}


class Processor(msgspec.Struct, frozen=True):
    """One logical CPU: number, ``physical id`` and ``core id``; None where the architecture does not print them."""

    number: int
    package: int | None
    core: int | None


def parse_cpuinfo(text: str) -> tuple[Processor, ...]:
    """The logical CPUs, sorted by number. The kernel lists online CPUs only."""
    found: dict[int, Processor] = {}
    starts = list(_ENTRY.finditer(text))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for start, end in zip(starts, ends, strict=False):
        number, block = int(start[1] or start[2]), text[start.end() : end]
        known = found.get(number, Processor(number, None, None))
        package = _parse_number(block, "physical id")
        core = _parse_number(block, "core id")
        found[number] = Processor(
            number, known.package if package is None else package, known.core if core is None else core
        )
    return tuple(found[number] for number in sorted(found))


def parse_model(text: str) -> str | None:
    """The model of the first CPU in the vendor's words; None where the text has none."""
    fields = _first_fields(text)
    for name in _MODEL_FIELDS:
        if fields.get(name) and not is_count(fields[name]):
            return fields[name]
    if machine := _MACHINE.search(text):
        return f"{fields.get('vendor_id', 'IBM/S390')} machine {machine[1]}"
    implementer, part = fields.get("CPU implementer"), fields.get("CPU part")
    if not implementer or not part:
        return None
    return _ARM_CORES.get((implementer.lower(), part.lower())) or f"ARM implementer {implementer} part {part}"


def parse_flags(text: str) -> frozenset[str]:
    """Feature words of the first CPU (``flags`` of x86, ``Features`` of ARM, ``features`` of s390)."""
    found = re.search(r"^(?:flags|[Ff]eatures)[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def _parse_number(block: str, name: str) -> int | None:
    found = re.search(rf"^{name}[ \t]*:[ \t]*(\d{{1,9}})[ \t\r]*$", block, re.MULTILINE | re.ASCII)
    return int(found[1]) if found else None


def _first_fields(text: str) -> dict[str, str]:
    # 32-bit ARM prints what is common to all CPUs after the last one; hundreds of CPUs between are not looked at.
    ends = text if len(text) < 16384 else f"{text[:8192]}\n{text[-4096:]}"
    fields: dict[str, str] = {}
    for line in ends.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields
