"""``sysfs:PATH`` — an attribute of the kernel below /sys, persisted in a line of tmpfiles.d (tmpfiles.d(5)).

In a profile PATH may hold the signs * ? [ ] of a shell pattern: a plan makes one id of each file that it fits, none
that lies outside /sys, and takes the id of another kind where that kind has the file (block:sda:nr_requests). Of a file
that lists its choices, the marked one is the value. What is write-only cannot be read back, so it is not planned.
Refused are attributes that do something rather than hold a value (unbind, remove, uevent), and the other file systems
that are mounted below /sys. At boot the line is written early: a device that appears later keeps what it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice

from advisor.facts.processors.cpulist import mask_words
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex
from advisor.tunables.catalogue import owner_of
from advisor.tunables.kernel_file import WrittenAtBoot
from advisor.tunables.kind import Kind, RefusedIdError, UnknownIdError
from advisor.tunables.preflight import Preflight, list_choices

MAX_FILES = 4096
"""More of them one line does not mean: hardly anybody meant what a pattern then fits."""

_PART = lazy_regex(r"[\w:.,@+!=#*?\[\]-]+", re.ASCII)
_MASKS = lazy_regex(r"(\w+_)?(cpumask|cpus|affinity)", re.ASCII)
_MASK = lazy_regex(r"[0-9a-fA-F]{1,512}(,[0-9a-fA-F]{1,8})*")
_SIGNS = frozenset("*?[")
# They act when they are written to, or make the kernel start a program; what they read cannot be restored.
_ACTING = frozenset(
    {
        *("uevent", "uevent_helper", "uevent_seqnum", "remove", "rescan", "reset", "reset_method", "bind", "unbind"),
        *("new_id", "remove_id", "driver_override", "drivers_probe", "delete", "scan", "shutdown_on_failed_test"),
        *("state", "online", "disk", "resume", "mem_sleep", "pm_test", "probe", "release", "hard_offline_page"),
        *("soft_offline_page", "sriov_numvfs", "flags", "carrier", "proto_down", "address", "firmware_node"),
        *("reset_controller", "rescan_controller", "delete_controller", "create", "destroy", "loading"),
        *("hot_add", "hot_remove", "trigger", "dump", "compact", "drop_caches"),
    }
)
_ELSEWHERE = (
    *("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/config", "/sys/kernel/security", "/sys/fs/cgroup"),
    *("/sys/fs/bpf", "/sys/fs/selinux", "/sys/fs/smackfs", "/sys/fs/pstore", "/sys/fs/resctrl", "/sys/fs/fuse"),
    *("/sys/firmware", "/sys/power", "/sys/hypervisor", "/sys/class/firmware"),
)


class SysfsAttribute(WrittenAtBoot, frozen=True):
    place: str

    id_form = "sysfs:{self.place}"
    path_form = "{self.place}"
    value_form = "choice"

    @classmethod
    def parse(cls, rest: str) -> SysfsAttribute:
        parts = rest.split("/")
        is_path = rest.startswith("/sys/") and len(rest) <= 400 and len(parts) > 3
        if not is_path or any(not _PART.fullmatch(part) or part in (".", "..") for part in parts[1:]):
            raise UnknownIdError(rest, kind="sysfs", hint="write sysfs:/sys/PATH; * ? and [ ] fit names as in a shell")
        why = refused_place(rest)
        if why:
            raise RefusedIdError(rest, kind="sysfs", hint=why)
        return cls(rest)

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        if not _SIGNS & set(self.place):
            owner = owner_of(self.place, host)
            return (owner or self.id,)
        found: dict[str, str] = {}
        for path in islice(_files_below(host, "/sys", self.place.split("/")[2:]), MAX_FILES + 1):
            # A device is listed below several directories: one file, one id.
            real = host.real(path)
            if isinstance(real, str) and _is_settable(path) and _is_settable(real):
                found.setdefault(real, owner_of(path, host) or f"sysfs:{path}")
        if len(found) > MAX_FILES:
            return Missing("unreadable", f"more than {MAX_FILES} files fit the pattern")
        return tuple(sorted(set(found.values()))) or Missing("absent", "no file fits the pattern")

    def choose_value(self, host: Host, live: str, wanted: str) -> str:
        """A mask of CPUs as the kernel spells it, with as many digits as it has now; all else as it stands."""
        is_mask = _MASKS.fullmatch(self.place.rpartition("/")[2]) and _MASK.fullmatch(live) and _MASK.fullmatch(wanted)
        if not is_mask:
            return wanted
        digits = len(live.replace(",", ""))
        spelt = "".join(group.zfill(8) for group in wanted.lower().split(",")).lstrip("0").zfill(digits)
        return mask_words(spelt) if len(spelt) == digits else wanted

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        if missing.is_absent:
            return missing
        return Missing(missing.state, f"{missing.why}; what cannot be read cannot be restored")

    def check_value(self, value: str) -> str | None:
        if not value or len(value) > 400 or re.search(r"[\0-\x1f\x7f\\%\"']", value):
            return "needs one line of plain text, without quotes, backslashes and percent signs"
        return None if value.isascii() else "has signs that are not ASCII"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        return Preflight(
            refusal=self.explain_unwritable(host) or self._not_offered(host, before, after), state="not-applicable"
        )

    def explain_unwritable(self, host: Host) -> str | None:
        real = host.real(self.place)
        if isinstance(real, str) and not _is_settable(real):
            return f"it leads to {real}, which is not set here"
        return super().explain_unwritable(host)

    def _not_offered(self, host: Host, before: str, wanted: str) -> str | None:
        words = host.read_or_empty(self.place).split()
        offered = [word.strip("[]()") for word in words]
        if len(words) < 2 or " ".join(words) == before or wanted in offered:
            return None
        return f"it offers {list_choices(offered)}"


def refused_place(path: str) -> str | None:
    """Why no value is set at a path below /sys; None where one may be."""
    name = path.rpartition("/")[2]
    if name in _ACTING:
        return f"{name} does something rather than hold a value, or could cut the host off"
    other = next((one for one in _ELSEWHERE if path == one or path.startswith(f"{one}/")), None)
    return f"what lies below {other} is not sysfs, or is not set here" if other else None


def _is_settable(path: str) -> bool:
    return path.startswith("/sys/") and refused_place(path) is None


def _files_below(host: Host, directory: str, parts: list[str]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    names = [name for name in host.names(directory) if fnmatchcase(name, part)] if _SIGNS & set(part) else [part]
    for name in names:
        path = f"{directory}/{name}"
        # A name that no id could hold is no file that a profile can mean.
        if not _PART.fullmatch(name) or _SIGNS & set(name):
            continue
        if rest and host.is_dir(path):
            yield from _files_below(host, path, rest)
        elif not rest and host.exists(path) and not host.is_dir(path):
            yield path


KIND = Kind(
    name="sysfs",
    order=140,
    parse=SysfsAttribute.parse,
    noun="kernel attribute",
    examples=(("sysfs:/sys/kernel/mm/ksm/run", "0"),),
    capture=None,
    written_by=frozenset({"tuned", "saptune"}),
    slow=r"/sys/kernel/mm/(ksm|lru_gen)/.*",
)
