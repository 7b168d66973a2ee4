"""Which devices of a host a section is for, and which instance of a plugin gets each of them; and the properties that
udev keeps of a device, as TuneD's ``devices_udev_regex`` is matched against them.

TuneD joins ``KEY=VALUE`` lines, sorted by key, of what pyudev shows: the kernel's uevent and udev's database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch

from advisor.facts.disks import kind_of
from advisor.host import Host, Missing

DATABASE = "/run/udev/data"
_CLASSES = {"disk": ("/sys/class/block", "b"), "net": ("/sys/class/net", "n"), "cpu": ("/sys/bus/cpu/devices", "+cpu:")}


def udev_properties(host: Host, plugin: str, name: str) -> str | None:
    """Return the properties of a device as TuneD matches them, a line each; None where udev's database does not have
    it, or is not in a capture."""
    directory, prefix = _CLASSES[plugin]
    place = host.real(f"{directory}/{name}")
    uevent = host.read(f"{directory}/{name}/uevent")
    if isinstance(place, Missing) or isinstance(uevent, Missing):
        return None
    found = dict(line.split("=", 1) for line in uevent.splitlines() if "=" in line)
    key = {"disk": f"{found.get('MAJOR')}:{found.get('MINOR')}", "net": found.get("IFINDEX", ""), "cpu": name}[plugin]
    kept = host.read(f"{DATABASE}/{prefix}{key}")
    if isinstance(kept, Missing):
        # On this machine udev keeps a file of each device that it has more to say of; a capture holds some.
        if not (host.is_live and kept.is_absent and host.is_dir(DATABASE)):
            return None
        kept = ""
    if "DEVNAME" in found:
        found["DEVNAME"] = f"/dev/{found['DEVNAME'].removeprefix('/dev/')}"
    found |= {"DEVPATH": place.removeprefix("/sys"), "SUBSYSTEM": {"disk": "block"}.get(plugin, plugin)}
    lines = [line.partition(":") for line in kept.splitlines()]
    links = [f"/dev/{text}" for kind, _, text in lines if kind == "S"]
    tags = [text for kind, _, text in lines if kind == "G"]
    found |= {"DEVLINKS": " ".join(links)} if links else {}
    found |= {"TAGS": f":{':'.join(tags)}:"} if tags else {}
    since = next((text for kind, _, text in lines if kind == "I"), None)
    found |= {} if since is None else {"USEC_INITIALIZED": since}
    found |= dict(text.split("=", 1) for kind, _, text in lines if kind == "E" and "=" in text)
    return "".join(f"{one}={value}\n" for one, value in sorted(found.items()))


_PARENTS = frozenset({"scsi", "virtio", "xen", "nvme"})
_MAX_RULES = 400


class Rules:
    """The rules of ``devices=``: shell patterns, those with an exclamation mark for what is left out."""

    def __init__(self, text: str) -> None:
        words = re.split(r"\s|,\s*", text)[:_MAX_RULES]
        self.wanted = tuple(word for word in words if not word.startswith("!") and word.strip())
        # TuneD takes every other word for a negative one, its first character cut off: an empty word among them.
        self.unwanted = tuple(word[1:] for word in words if word not in self.wanted)

    @property
    def is_all(self) -> bool:
        return not any(self.unwanted) and (not self.wanted or "*" in self.wanted)

    @property
    def patterns(self) -> tuple[str, ...] | None:
        """The positive patterns, where they say all; None where something is left out."""
        return None if any(self.unwanted) else tuple(dict.fromkeys(self.wanted or ("*",)))

    def match(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names that fit, in their order."""
        return tuple(name for name in names if self._fits_name(name))

    def _fits_name(self, name: str) -> bool:
        wanted = any(fnmatch(name, rule) for rule in self.wanted or ("*",))
        return wanted and not any(fnmatch(name, rule) for rule in self.unwanted)


class UdevRules(Rules):
    """The rules of ``devices_udev_regex``, which TuneD takes in place of ``devices``: the names that it fits."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__("")
        self.wanted = tuple(names)

    @property
    def is_all(self) -> bool:
        return False

    @property
    def patterns(self) -> None:
        return None

    def match(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.wanted)


def parse_device_rules(text: str, by_udev: Iterable[str] | None = None) -> Rules:
    """The rules of a section; no positive one means all devices. ``by_udev`` are the names that its regular expression
    fits, where it has one."""
    return Rules(text) if by_udev is None else UdevRules(by_udev)


def devices_of(host: Host, plugin: str) -> tuple[str, ...] | None:
    """The devices that a plugin of TuneD uses on this host; None for one that knows none, or is not known here."""
    if plugin == "disk":
        return tuple(name for name in host.names("/sys/block") if is_tuned_disk(host, name))
    if plugin == "net":
        return tuple(name for name in host.names("/sys/class/net") if _is_physical(host, name))
    if plugin == "cpu":
        return tuple(name for name in host.names("/sys/devices/system/cpu") if re.fullmatch(r"cpu[0-9]+", name))
    return None


def is_tuned_disk(host: Host, name: str) -> bool:
    """Whether TuneD's disk plugin knows it: not removable, and below SCSI, virtio, Xen or NVMe, or below nothing."""
    removable = host.read(f"/sys/block/{name}/removable")
    if isinstance(removable, Missing):
        return kind_of(name) is not None or re.match(r"md[0-9]|dm-[0-9]", name) is not None
    if removable != "0":
        return False
    subsystem = host.readlink(f"/sys/block/{name}/device/subsystem")
    if isinstance(subsystem, Missing):
        is_virtual = not host.exists(f"/sys/block/{name}/device")
        return is_virtual or kind_of(name) in ("scsi", "nvme", "virtio", "xen")
    return subsystem.rpartition("/")[2] in _PARENTS


def _is_physical(host: Host, name: str) -> bool:
    real = host.real(f"/sys/class/net/{name}")
    return isinstance(real, str) and "/virtual/" not in real and host.is_dir(f"/sys/class/net/{name}")


def is_array(name: str) -> bool:
    """Whether a block device is one of md or the device mapper."""
    return re.match(r"md([0-9]|_)|dm-[0-9]", name) is not None


def is_no_disk(host: Host, name: str) -> bool:
    """Whether a scan leaves the device out: a RAM disk or such like, or a loop or network device not in use."""
    is_unused = host.read(f"/sys/block/{name}/size") == "0" and not host.exists(f"/sys/block/{name}/device")
    return (kind_of(name) is None or is_unused) and not is_array(name)


def assign_devices(instances: Sequence[tuple[str, Rules]], devices: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Which devices each instance gets: the first whose rules fit takes one, and keeps it."""
    free = list(devices)
    found = {}
    for name, rules in instances:
        found[name] = rules.match(free)
        taken = set(found[name])
        free = [device for device in free if device not in taken]
    return found
