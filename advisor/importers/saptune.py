"""saptune's notes → imported profiles: tags are judged on the host, what saptune only checks is a manual step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.system.identity import Identity, read_identity
from advisor.facts.tuned.files import decode_text
from advisor.facts.tuned.regex import UnsafePatternError, search_text
from advisor.facts.unknown import Unknowns
from advisor.facts.writers.tuners import REMINDER, SECTIONS, NoteEntry, SaptuneNote, parse_saptune_note
from advisor.host import Host, Missing
from advisor.host.kernel_text import SET
from advisor.importers.records import (
    Found,
    Imported,
    ImportedSense,
    ImportedSetting,
    Mode,
    SourceLine,
    flatten_found,
    is_growing,
    without_rivals,
)
from advisor.importers.to_profile import last_wins, made_of, make_disjoint, profile_name
from advisor.importers.tuned.plugin_boot import state_of
from advisor.profiles.profile import Only

WORKING = "/var/lib/saptune/working/notes"
PACKAGED = "/usr/share/saptune/notes"
EXTRA = "/etc/saptune/extra"
OVERRIDE = "/etc/saptune/override"
_SENSES: Mapping[str, ImportedSense] = {"<": "at-most", "<=": "at-most", ">": "at-least", ">=": "at-least"}
_BLOCK = {
    "IO_SCHEDULER": "scheduler",
    "NRREQ": "nr_requests",
    "READ_AHEAD_KB": "read_ahead_kb",
    "MAX_SECTORS_KB": "max_sectors_kb",
}
_DEVICE_TAGS = ("blkvendor", "blkmodel", "blkpat")
# Tags whose value is no regular expression.
_PLAIN_TAGS = ("os", "arch", "csp", "virt", "pmu_name")
# How saptune names a cloud (csp.go): the first file of the firmware whose content fits one of its expressions.
_CLOUDS = (
    ("chassis_asset_tag", (("azure", "7783-7084-3265-9085-8269-3286-77|MSFT AZURE VM"), ("ibmVPC", "ibmcloud"))),
    (
        "sys_vendor",
        (
            ("azure", "[mM]icrosoft [cC]orporation"),
            ("aws", "[aA]mazon"),
            ("google", "[gG]oogle"),
            ("alibaba", "[aA]libaba"),
        ),
    ),
    ("board_vendor", (("aws", "[aA]mazon"),)),
    ("bios_version", (("aws", "[aA]mazon"), ("google", "[gG]oogle"), ("ovm", "OVM"))),
    ("bios_vendor", (("google", "[gG]oogle"), ("aws", "[aA]mazon"))),
    ("product_version", (("aws", "[aA]mazon"),)),
    ("chassis_vendor", (("ibmVPC", "IBM:Cloud Compute Server 1\\.0:"),)),
)
_CONTAINERS = frozenset({"docker", "podman", "lxc", "systemd-nspawn", "openvz", "rkt", "wsl", "container-other"})
_CPUS = "/sys/devices/system/cpu"
_BIAS = {"performance": "0", "normal": "6", "powersave": "15"}
# What saptune checks, or does with a program of its own.
_BY_HAND = {
    "filesystem": "saptune only checks options of mounts: /etc/fstab",
    "limits": "limits of login sessions: a file in /etc/security/limits.d",
    "login": "limits of users' slices: /etc/systemd/logind.conf.d",
    "mem": "the size of /dev/shm: /etc/fstab",
    "pagecache": "only kernels of SLES 12 have a limit of the page cache",
    "rpm": "saptune only checks versions of packages",
    "reminder": "saptune only reminds of it",
}


def installed_notes(files: Host) -> Mapping[str, str]:
    """Note → file of every note that is installed, sorted; a vendor's or customer's own before those in use before
    those of the package."""
    found = {}
    for directory in (PACKAGED, WORKING, EXTRA):
        for name in files.names(directory):
            if directory != EXTRA or name.endswith(".conf"):
                found[name.removesuffix(".conf")] = f"{directory}/{name}"
    return dict(sorted(found.items()))


def import_saptune(
    note: str, host: Host, mode: Mode, *, files: Host | None = None, path: str | None = None
) -> Imported:
    """A note as it comes over to ``host``; ``files`` and ``path`` as for `from_tuned.import_tuned`.

    Raises UsageError for a note that is not there, InvalidInputError for a file that is none.
    """
    source = host if files is None else files
    place = path or installed_notes(source).get(note)
    if place is None:
        raise UsageError(f"there is no saptune note {note[:80]!r}", hint=f"looked in {EXTRA}, {WORKING} and {PACKAGED}")
    read = _read_note(source, place)
    override = f"{OVERRIDE}/{note}"
    own = _read_note(source, override) if path is None and source.exists(override) else None
    judge = _Judge(host, mode)
    lines = _merge_override(read, place, own, override)
    settings = flatten_found(judge.converted(*line) for line in lines)
    version = f" (version {read.version}, {read.date})" if read.version else ""
    return Imported(
        name=profile_name(f"saptune-{note}"),
        origin=f"saptune:{note}",
        mode=mode,
        title=f"saptune's note {note}",
        about=read.name,
        sources=(f"{place}{version}", *((override,) if own is not None else ()), *read.references),
        settings=without_rivals(make_disjoint(last_wins(settings), host)),
        notes=("Which sections are for this host was judged when it was imported.",),
    )


def made_by_saptune(note: str, values: Mapping[str, str], host: Host, facts: Facts) -> Mapping[str, str]:
    """What saptune makes of these values (by tunable) when it applies a note on this host; those alone that it
    changes. Raises as `import_saptune`."""
    return made_of(values, import_saptune(note, host, "faithful"), host, facts)


def _read_note(files: Host, place: str) -> SaptuneNote:
    data = files.read_bytes(place)
    if isinstance(data, Missing):
        raise InvalidInputError(f"{place}: {data.why}")
    note = parse_saptune_note(decode_text(data, place, "note of saptune"))
    if not any(entry.section not in ("", "version") for entry in note.entries):
        broken = next((entry for entry in note.entries if entry.fault), None)
        if broken is not None:
            raise InvalidInputError(f"{place}: line {broken.line}: {broken.fault}")
        raise InvalidInputError(f"{place}: no section with a setting: is this a note of saptune?")
    return note


def _merge_override(
    note: SaptuneNote, place: str, own: SaptuneNote | None, override: str
) -> Iterable[tuple[NoteEntry, str, str | None]]:
    """The note's lines, and those of the customer's override that stand in their place; each with its file, and why it
    does not count."""
    replaced = {} if own is None else {(one.section, one.key): one for one in own.entries if one.section}
    for entry in note.entries:
        other = replaced.get((entry.section, entry.key))
        yield entry, place, None if other is None else f"{override} line {other.line} says it instead"
    if own is not None:
        yield from ((entry, override, None) for entry in own.entries)


def _passed_over(entry: NoteEntry) -> str | None:
    """Why saptune itself takes nothing from a line (its txtparser)."""
    if entry.section == "rpm":
        return None
    if entry.section == "version":
        return "saptune reads VERSION, DATE, DESCRIPTION and REFERENCES alone here"
    if entry.section == REMINDER:
        return "saptune reminds of lines alone that begin with #" if not entry.value else None
    if entry.is_setting:
        return None
    if re.match(r"[^<=>]*/[^<=>]*[<=>]", entry.key):
        return "saptune takes no slash in a name: write dots"
    if _last_word(entry) is not None:
        return None
    is_word = entry.section == "grub" and not re.search(r"\s", entry.key)
    return None if is_word else "no KEY = VALUE: saptune passes over it"


def _last_word(entry: NoteEntry) -> str | None:
    """What saptune takes for the name in a line with several words before its operator."""
    found = None if entry.is_setting or entry.section in _BY_HAND else re.search(r"([\w.+-]+)\s*[<=>]", entry.key)
    return found and found[1]


class _Judge:
    def __init__(self, host: Host, mode: Mode) -> None:
        self._host = host
        self._mode = mode
        self._identity: Identity = read_identity(host, Unknowns())

    def converted(self, entry: NoteEntry, file: str, why_left: str | None) -> Found:
        raw = f"{entry.value}" if entry.operator in ("", "=") else f"{entry.operator} {entry.value}"
        written = (
            "" if entry.operator == "=" else f"{entry.key} {raw}".strip() if entry.is_setting else raw or entry.key
        )
        tags = "".join(f":{key}={value}" for key, value in entry.tags)
        line = SourceLine(f"{entry.section}{tags}", entry.key, raw, file, entry.line, entry.comment, written)
        if why_left is not None:
            return line.ignored(why_left)
        if entry.fault:
            return line.manual(entry.fault)
        if not entry.section:
            return line.ignored("it stands before the first section: saptune passes over it")
        why_not = self._not_meant(entry)
        if why_not is not None:
            is_unclear, why = why_not
            return line.manual(why) if is_unclear else line.ignored(why)
        passed_over = _passed_over(entry)
        if passed_over is not None:
            return line.ignored(passed_over)
        if entry.section in _BY_HAND:
            return line.manual(_BY_HAND[entry.section])
        last = _last_word(entry)
        if last is not None:
            return line.manual(f"saptune would take {last[:80]} for the name, and nothing that is before it")
        if entry.is_setting and not entry.value:
            return line.ignored("an empty value: saptune leaves it as it is")
        convert = _CONVERTERS.get(entry.section)
        return convert(self, entry, line) if convert else [line.manual("saptune knows no such section")]

    def _not_meant(self, entry: NoteEntry) -> tuple[bool, str] | None:
        """Why a section is not for this host, and whether that is unknown; None where it is."""
        if entry.section not in SECTIONS:
            return False, f"saptune knows no section {entry.section[:40]}, and passes over it"
        names = [name for name, _ in entry.tags]
        if len(set(names)) < len(names):
            return False, "a tag stands twice in its section, which saptune then passes over"
        for name, value in entry.tags:
            if not value or "=" in value:
                return False, f"the tag {name[:40]} is no NAME=VALUE, and saptune passes over its section"
            try:
                if name not in _PLAIN_TAGS:
                    # Whether it is an expression does not depend on what this host has to compare it with.
                    search_text(value, "")
                if entry.section == "block" and name in _DEVICE_TAGS:
                    continue
                fits = self._fits_host(name, value)
            except UnsafePatternError as error:
                return True, f"the tag {name}: {error}"
            if fits is None:
                return True, f"whether {name}={value[:40]} fits this host is unknown"
            if not fits:
                return False, f"{name}={value[:40]} does not fit this host"
        return None

    def _fits_host(self, name: str, value: str) -> bool | None:
        if name == "os":
            text = self._host.read("/etc/os-release")
            if isinstance(text, Missing):
                return None
            found = re.search(r'^VERSION="?([^"\n]*)"?$', text, re.MULTILINE)
            version = found[1].strip() if found else ""
            release = re.fullmatch(r"(\d+)(?:-SP|\.)?(\d*)", version, re.ASCII)
            major, service_pack = (release[1], int(release[2] or 0)) if release else ("", 0)
            if every := re.fullmatch(r"(\d+)(?:-(?:SP)?|\.)\*", value, re.ASCII):
                return every[1] == major
            if listed := re.fullmatch(r"(\d+)[-.]\[([^\]]*)\]", value, re.ASCII):
                return listed[1] == major and any(_has_release(part, service_pack) for part in listed[2].split(","))
            return version == value
        if name == "arch":
            architecture = self._identity.architecture
            # saptune compares with the name that its compiler has for it.
            compiled = {"aarch64": "arm64"}.get(architecture or "", architecture)
            meant = {architecture} if self._mode == "intent" else set()
            return None if architecture is None else value in {compiled} | meant
        if name == "csp":
            return self._cloud() == value
        if name == "virt":
            kind = self._identity.virtualization
            if kind is None:
                return None
            if value in ("vm", "container"):
                return kind != "none" and (kind in _CONTAINERS) == (value == "container")
            if value == "chroot":
                # What a command that runs in a changed root sees; what is imported is for the host itself.
                return False
            return ("bare-metal" if kind == "none" else kind) == value
        if name == "pmu_name":
            return self._is_file("/sys/devices/cpu/caps/pmu_name", re.escape(value), whole=True)
        if name == "kernel":
            kernel = self._identity.kernel
            return None if kernel is None else search_text(value, kernel)
        if name in _DEVICE_TAGS:
            return bool(self._block_devices(((name, value),)))
        file = {"vendor": "board_vendor", "model": "product_name"}.get(name, name)
        if not re.fullmatch(r"[a-z_]{1,40}", file):
            return None
        return self._is_file(f"/sys/class/dmi/id/{file}", value)

    def _cloud(self) -> str | None:
        """The cloud in saptune's word; None off those that it knows."""
        for file, words in _CLOUDS:
            text = self._host.read_or_empty(f"/sys/class/dmi/id/{file}")
            for word, pattern in words:
                if re.search(pattern, text):
                    return word
        return None

    def _is_file(self, path: str, pattern: str, *, whole: bool = False) -> bool | None:
        text = self._host.read(path)
        if isinstance(text, Missing):
            return False if text.is_absent else None
        return search_text(f"^{pattern}$" if whole else pattern, text)

    def _block_devices(self, tags: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """The block devices that fit the tags of a section: disks and multipath maps."""
        wanted = [(name, value) for name, value in tags if name in _DEVICE_TAGS]
        return tuple(name for name in self._host.names("/sys/block") if self._is_device(name, wanted))

    def _is_device(self, name: str, wanted: Iterable[tuple[str, str]]) -> bool:
        if not re.match(r"(sd|nvme|vd|xvd|dasd|dm-)", name):
            return False
        for tag, value in wanted:
            if tag == "blkpat":
                # An expression that fits the beginning of the name.
                if not search_text(f"^(?:{value})", name):
                    return False
                continue
            text = self._host.read(f"/sys/block/{name}/device/{tag.removeprefix('blk')}")
            if isinstance(text, Missing) or not search_text(value, text):
                return False
        return True

    def sysctl(self, entry: NoteEntry, line: SourceLine) -> Found:
        value = " ".join(entry.value.split())
        sense = _SENSES.get(entry.operator, "exactly")
        if self._mode == "intent" and sense == "exactly" and is_growing(entry.key):
            sense = "at-least"
        return line.wanted(f"sysctl:{entry.key.replace('/', '.')}", value, sense=sense)

    def sys(self, entry: NoteEntry, line: SourceLine) -> Found:
        return line.wanted(f"sysfs:/sys/{entry.key.replace('.', '/')}", entry.value)

    def vm(self, entry: NoteEntry, line: SourceLine) -> Found:
        if entry.key == "THP":
            return line.wanted("thp:enabled", entry.value)
        if entry.key == "KSM":
            return line.wanted("sysfs:/sys/kernel/mm/ksm/run", entry.value)
        return line.manual("saptune knows THP and KSM alone here")

    def cpu(self, entry: NoteEntry, line: SourceLine) -> Found:
        if entry.key == "governor":
            return line.wanted("cpufreq:*:governor", entry.value)
        if entry.key == "energy_perf_bias":
            value = _BIAS.get(entry.value, entry.value)
            return line.wanted(f"sysfs:{_CPUS}/cpu*/power/energy_perf_bias", value)
        if entry.key == "force_latency":
            note = "saptune switches the deeper idle states off one by one; here the kernel is given the latency"
            return line.wanted("pm-qos:cpu_dma_latency", entry.value, note=note)
        return line.manual("saptune knows governor, energy_perf_bias and force_latency alone here")

    def grub(self, entry: NoteEntry, line: SourceLine) -> Found:
        value = entry.value if entry.is_setting else SET
        return line.wanted(f"cmdline:{entry.key}", value, note="saptune only checks it")

    def service(self, entry: NoteEntry, line: SourceLine) -> Found:
        words = [word.strip() for word in entry.value.split(",")]
        known = [word for word in words if word in ("start", "stop", "enable", "disable")]
        if not known:
            return line.manual("it says neither start, stop, enable nor disable")
        # Of two that contradict each other saptune takes the first.
        value, sense = state_of(known[::-1])
        unit = entry.key if re.search(r"\.(service|socket|timer)$", entry.key) else f"{entry.key}.service"
        return line.wanted(f"unit:{unit}:state", value, sense=sense)

    def block(self, entry: NoteEntry, line: SourceLine) -> Found:
        attribute = _BLOCK.get(entry.key)
        if attribute is None:
            return line.manual(f"saptune knows {', '.join(_BLOCK)} alone here")
        is_bound = any(name in _DEVICE_TAGS for name, _ in entry.tags)
        try:
            names = self._block_devices(entry.tags)
        except UnsafePatternError as error:
            return line.manual(f"its tags: {error}")
        if is_bound and not names:
            return line.ignored("no block device of this host fits its tags")
        if attribute == "scheduler":
            # For each device the first of the schedulers that it offers.
            wanted = [word.strip() for word in entry.value.split(",")]
            chosen: dict[str, list[str]] = {}
            for name in names:
                words = [
                    word.strip("[]") for word in self._host.read_or_empty(f"/sys/block/{name}/queue/scheduler").split()
                ]
                first = next((word for word in wanted if word in words), None)
                if first is not None:
                    chosen.setdefault(first, []).append(name)
            if not chosen:
                return line.ignored("no block device here offers one of its schedulers")
            return [
                one
                for scheduler, devices in chosen.items()
                for one in self._for_devices(line, "scheduler", scheduler, tuple(devices), is_bound=True)
            ]
        return self._for_devices(line, attribute, entry.value, names, is_bound=is_bound)

    @staticmethod
    def _for_devices(
        line: SourceLine, attribute: str, value: str, names: tuple[str, ...], *, is_bound: bool
    ) -> list[ImportedSetting]:
        disks = tuple(name for name in names if not name.startswith("dm-"))
        maps = tuple(name for name in names if name.startswith("dm-"))
        found = []
        if disks or not is_bound:
            only = Only(names=disks) if is_bound else None
            found.append(line.wanted(f"block:{{disk}}:{attribute}", value, for_each="disks", only=only))
        if maps or not is_bound:
            only = Only(names=maps) if is_bound else Only(kinds=("dm-multipath",))
            found.append(line.wanted(f"block:{{array}}:{attribute}", value, for_each="arrays", only=only))
        return found


_CONVERTERS = {
    "sysctl": _Judge.sysctl,
    "sys": _Judge.sys,
    "vm": _Judge.vm,
    "cpu": _Judge.cpu,
    "grub": _Judge.grub,
    "service": _Judge.service,
    "block": _Judge.block,
}


def _has_release(part: str, release: int) -> bool:
    """Whether a release is one of ``4``, ``4-6``, ``-4`` or ``7-``, as saptune-note(5) lists them in brackets."""
    found = re.fullmatch(r"(\d*)(-?)(\d*)", part.strip(), re.ASCII)
    if not found or not (found[1] or found[3]):
        return False
    if not found[2]:
        return release == int(found[1])
    return int(found[1] or 0) <= release and (not found[3] or release <= int(found[3]))
