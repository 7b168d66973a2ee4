"""What a block device is known by for longer than its kernel name lasts: names such as sda are assigned at each boot.

From udev's data (udev(7); its properties are set by 60-persistent-storage.rules, 63-md-raid-arrays.rules and
10-dm.rules), else from attributes that the kernel gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import ClassVar, Self

from advisor.host import Host, Missing, RunCommand
from advisor.host.device_identity import ATTRIBUTES, Marks, is_nvme_path, marks_of, udev_properties, words_of
from advisor.host.identity import Identity
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.tunable import Tunable, UnknownIdError

RULES = "/etc/udev/rules.d/90-advisor-block.rules"
# A file replaces those of its name in the directories after its own (udev(7)); /lib may be /usr/lib.
_RULE_DIRECTORIES = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
_HEADER = b"# Settings of block devices, one line for each device and attribute.\n"
_RELOAD = (RunCommand(("udevadm", "control", "--reload")),)

# A pattern in quotes (udev(7)): no sign with a meaning of its own, and none that would end it.
_SAFE = lazy_regex(r"[\w#+.:=@/,-]+( +[\w#+.:=@/,-]+)*", re.ASCII)
_PROPERTIES = ("ID_SERIAL", "ID_WWN_WITH_EXTENSION", "ID_WWN")
_ATTRIBUTES = ("wwid", "device/wwid", "serial", "device/serial")
_NAME = lazy_regex(r"[\w!.-]+", re.ASCII)


BLOCK_PATHS = r"/sys/(?:block|class/block|devices/.*/block)/([^/]+)"
"""Pattern of the directories of a block device below /sys; the group is its name."""


def is_device_name(name: str) -> bool:
    """Whether the kernel could list a block device by it: ``sda``, ``nvme0n1``, ``cciss!c0d0``."""
    return bool(_NAME.fullmatch(name)) and name not in (".", "..")


def identity_of(host: Host, device: str) -> Identity | None:
    """What distinguishes this device from others until the rollback; None where there is no such thing."""
    return next(iter(identities_of(host, (device,))))


def identities_of(host: Host, devices: Iterable[str]) -> tuple[Identity | None, ...]:
    """The same of several devices, with each file read once."""
    read, see = cache(partial(words_of, host)), cache(partial(marks_of, host))
    names = host.names("/sys/block")
    return tuple(_identify(host, device, names, read, see) for device in devices)


def _identify(
    host: Host, device: str, names: Iterable[str], read: Callable[[str, str], str], see: Callable[[str], Marks]
) -> Identity | None:
    attribute = next((one for one in ATTRIBUTES if read(device, one)), None)
    words = read(device, attribute) if attribute else ""
    marks = see(device)
    if not words and marks == Marks():
        return None
    alike = []
    if words or marks.place or marks.device:
        # All others for a device without words, which is known by its place alone.
        others = (one for one in names if one != device and is_nvme_path(one) == is_nvme_path(device))
        alike = [one for one in others if attribute is None or read(one, attribute) == words]
    seen = [see(name) for name in alike]
    is_shared = bool(words) and (bool(alike) or _is_multipath(host, device))
    return (
        f"/sys/block/{device}/{attribute}" if attribute else "",
        words,
        "shared" if is_shared else "single",
        *([marks.place] if marks.place and all(one.place != marks.place for one in seen) else ()),
        *([marks.device] if marks.device and all(one.device != marks.device for one in seen) else ()),
        *([marks.sequence] if marks.sequence else ()),
    )


def identity_refusal(identity: Identity | None) -> str | None:
    """Why nothing may be set on a device: it could not be found again to be rolled back."""
    if identity is None or identity[2:] != ("shared",):
        return None
    return (
        "another device has the same identity, and neither ID_PATH, the device link nor diskseq distinguishes them: "
        "it could not be rolled back"
    )


def _is_multipath(host: Host, device: str) -> bool:
    """Whether it is a path of a multipath map, which others join and leave at any time."""
    holders = host.names(f"/sys/block/{device}/holders")
    return any(words_of(host, one, "dm/uuid").startswith("mpath-") for one in holders)


def device_rule(host: Host, device: str, attribute: str, value: str) -> FileEdit | Missing:
    """The udev rule that gives ``attribute`` (``queue/scheduler``) of this device its value at boot and on plugging in;
    Missing says why no rule can name the device."""
    if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
        return Missing("absent", "udev does not run here, so no rule would be carried out")
    # The match keys of a rule that this device alone fits.
    own = udev_properties(host, device)
    base = f"/sys/block/{device}"
    if host.exists(f"{base}/md"):
        match = _array_match("MD_UUID", own.get("MD_UUID"), 'KERNEL=="md*"')
    elif host.exists(f"{base}/dm"):
        uuid = own.get("DM_UUID") or _read_text(host, f"{base}/dm/uuid")
        if uuid:
            match = _array_match("DM_UUID", uuid)
        else:
            match = _array_match("DM_NAME", own.get("DM_NAME") or _read_text(host, f"{base}/dm/name"))
    else:
        others = [name for name in host.names("/sys/block") if name != device]
        match = _by_property(host, own, others) or _by_attribute(host, device, others) or _explain_nameless(own)
    if isinstance(match, Missing):
        return match
    rule = ('ACTION=="add|change"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"', *match)
    return FileEdit(RULES, "udev-rule", ", ".join(rule), f'ATTR{{{attribute}}}="{value}"', _HEADER, reload=_RELOAD)


def later_rules(host: Host, attribute: str, *, after: str = RULES) -> tuple[str, ...]:
    """Notes on rule files of the site and of packages that are read after advisor's and assign this attribute."""
    said = []
    seen = set()
    for directory in _RULE_DIRECTORIES:
        for name in host.names(directory):
            is_later = name.endswith(".rules") and name > after.rpartition("/")[2] and "-advisor-" not in name
            if is_later and name not in seen:
                seen.add(name)
                text = host.read_or_empty(f"{directory}/{name}")
                if re.search(rf"ATTR\{{{re.escape(attribute)}\}}\s*=[^=]", text):
                    said.append(f"{directory}/{name} assigns {attribute} after {after}: see which devices it means")
    return tuple(said)


def _array_match(name: str, value: str | None, *more: str) -> tuple[str, ...] | Missing:
    if not value:
        return Missing("unreadable", f"udev has no {name} of it, so that a rule could not name it for good")
    if not _SAFE.fullmatch(value):
        return Missing("unreadable", f"its {name} holds signs that a udev rule could not carry: {value[:80]!r}")
    return (*more, f'ENV{{{name}}}=="{value}"')


def _read_text(host: Host, path: str) -> str | None:
    text = host.read(path)
    return None if isinstance(text, Missing) else text


def _by_property(host: Host, own: Mapping[str, str], others: list[str]) -> tuple[str, ...] | None:
    """By one property that no other disk shares; paths to one unit share them, so that the way to it is added."""
    for names in _candidate_keys(own):
        wanted = {name: own[name] for name in names}
        if not any(wanted.items() <= udev_properties(host, other).items() for other in others):
            return tuple(f'ENV{{{name}}}=="{value}"' for name, value in wanted.items())
    return None


def _candidate_keys(own: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    names = [name for name in _PROPERTIES if _SAFE.fullmatch(own.get(name, ""))]
    yield from ((name,) for name in names)
    if _SAFE.fullmatch(own.get("ID_PATH", "")):
        yield from ((name, "ID_PATH") for name in names)


def _by_attribute(host: Host, device: str, others: list[str]) -> tuple[str, ...] | None:
    for attribute in _ATTRIBUTES:
        value = _read_text(host, f"/sys/block/{device}/{attribute}")
        is_shared = any(_read_text(host, f"/sys/block/{other}/{attribute}") == value for other in others)
        if value and _SAFE.fullmatch(value) and not is_shared:
            return (f'ATTR{{{attribute}}}=="{value}"',)
    return None


def _explain_nameless(own: Mapping[str, str]) -> Missing:
    odd = [own[name] for name in _PROPERTIES if name in own and not _SAFE.fullmatch(own[name])]
    if odd:
        return Missing("unreadable", f"its serial number holds signs that a udev rule could not carry: {odd[0][:80]!r}")
    return Missing("absent", "it has no serial number or WWN of its own, and the kernel's name for it may change")


class BlockValue(KernelFile, frozen=True):
    """One attribute of a device; a kind gives its word in ids, an example of a device, its directory and its names."""

    device: str
    attribute: str

    example: ClassVar[str]
    directory: ClassVar[str]
    attributes: ClassVar[tuple[str, ...]]
    holds_count = True
    id_form = "{self.kind}:{self.device}:{self.attribute}"
    path_form = "/sys/block/{self.device}/{self.directory}/{self.attribute}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        device, _, attribute = rest.rpartition(":")
        if attribute not in cls.attributes or not is_device_name(device):
            example, names = f"{cls.kind}:{cls.example}:ATTRIBUTE", ", ".join(cls.attributes)
            hint = f"write {example}, one of {names}"
            raise UnknownIdError(rest, kind=cls.kind, hint=hint)
        return cls(device, attribute)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return device_rule(host, self.device, f"{self.directory}/{self.attribute}", value)


def example_files(one: Tunable) -> Mapping[str, bytes]:
    """Files of a host with a device of the number 8:0 that has the attribute."""
    return {f"/sys/block/{one.device}/dev": b"8:0", one.path: b""} if isinstance(one, BlockValue) else {}
