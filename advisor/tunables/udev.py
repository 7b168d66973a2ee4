"""``udev:SUBSYSTEM:CLASS:ATTRIBUTE`` — a value for every device of a class that appears later, given by a udev rule
when the device appears.

The subsystem is block, with the attributes of ``block:`` ids, or link, with txqueuelen. CLASS of block devices is a
pattern of kernel names, or several with commas between them, and what else has to fit: nvme*,
nvme*/model/Amazon Elastic Block Store, sd*/rotational/1, sd*/role/multipath-path, sd*/role/md-member. CLASS of links is
the driver: virtio_net. With ``at-least`` before the number a device that has more keeps it. (unset) stands for no rule.

Nothing runs in the background. Devices that are there already are set by ``block:`` and ``link:`` ids, and by the rule
with their next event, at the latest at the next boot.
The rule records in udev's database what each device had when it appeared, and a rollback restores that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Literal, Self

import msgspec

from advisor.facts.network.link_claim import udev_property
from advisor.host import Host, Missing, ReadFile, RunCommand, observe
from advisor.host.config_text import UNSET
from advisor.host.device_identity import ATTRIBUTES as ATTRIBUTES_OF_IDENTITY
from advisor.host.device_identity import device_of, is_nvme_path, udev_properties, words_of
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.host.probes import reduce
from advisor.tunables.block import ATTRIBUTES, SCHEDULERS, BlockQueue, identities_of, identity_refusal, later_rules
from advisor.tunables.edits import FileEdit
from advisor.tunables.kind import Capture, Kind, StoredValue, UnknownIdError
from advisor.tunables.link_txqueuelen import LinkTxqueuelen
from advisor.tunables.preflight import ClassMember, Preflight, list_choices, mark_of

RULES = "/etc/udev/rules.d/89-advisor-appearing.rules"
"""Before the rules of single devices, so that what it records is what the device had without any of advisor's."""

Subsystem = Literal["block", "link"]
_DIRECTORIES = {"block": "/sys/block", "link": "/sys/class/net"}

HEADER = (
    b"# Values of devices that appear later, two lines for each class and attribute: the second line sets the value\n"
    b"# and records what the device had before, the first line keeps that record. See udev(7).\n"
)
_RELOAD = (RunCommand(("udevadm", "control", "--reload")),)
_LINE = lazy_regex(rb"[^\n]*\n|[^\n]+")
_RECORD = lazy_regex(rb"\b(ADVISOR_[A-Z0-9_]+)\b")
_DRIVER = lazy_regex(r"[\w-]{1,60}", re.ASCII)
_SPECIAL = lazy_regex(r"[*?\[]")
_MATCHED = lazy_regex(r'([A-Z]+(?:\{[^}]*\})?)=="([^"]*)"')
_AT_LEAST = "at-least "
_ROLES = {"multipath-path": ("DM_MULTIPATH_DEVICE_PATH", "1"), "md-member": ("ID_FS_TYPE", "linux_raid_member")}
"""The property by which udev knows a device of the role, and its value."""
_CLASS = lazy_regex(
    r"[\w.*?\[\]-]+(,[\w.*?\[\]-]+)*(?:/model/[\w.*?+#@-]+( +[\w.*?+#@-]+)*|/rotational/[01]"
    rf"|/role/(?:{'|'.join(_ROLES)}))*",
    re.ASCII,
)
_FILES = {"txqueuelen": "tx_queue_len"}
_DEFAULTS = {
    "scheduler": "none where the driver has several queues, else mq-deadline",
    "read_ahead_kb": "128",
    "io_timeout": "30000",
    "nomerges": "0",
    "rq_affinity": "1",
    "txqueuelen": "1000",
}
"""Of the kernel's source (block/elevator.c, include/linux/blkdev.h, net/ethernet/eth.c); drivers may have their own."""
# What a class is chosen by does not follow from its own rule.
_CHOSEN_BY = frozenset({"rotational"})


class ClassDevice(msgspec.Struct, frozen=True):
    """A device of the class. ``recorded`` is what it had when the rule reached it; None where the rule did not.
    ``is_member`` is False for one that the rule has reached and that fits the class no longer."""

    tunable: str
    path: str
    form: str
    recorded: str | None
    is_member: bool
    live: str | Missing = ""
    token: str = ""
    """What another device at the same name would have otherwise, within one boot."""


class DeviceClass(StoredValue, frozen=True):
    subsystem: Subsystem
    members: str
    attribute: str

    takes_effect = "now"
    id_form = "udev:{self.subsystem}:{self.members}:{self.attribute}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        subsystem, _, others = rest.partition(":")
        members, _, attribute = others.rpartition(":")
        if subsystem == "block" and attribute in ATTRIBUTES and attribute not in _CHOSEN_BY and _fits_class(members):
            return cls("block", members, attribute)
        if subsystem == "link" and attribute in _FILES and _DRIVER.fullmatch(members):
            return cls("link", members, attribute)
        names = ", ".join(name for name in ATTRIBUTES if name not in _CHOSEN_BY)
        hint = (
            f"write udev:block:nvme*:ATTRIBUTE, one of {names}; or udev:link:DRIVER:txqueuelen; to the names of "
            f"block devices add /model/PATTERN, /rotational/0 or /role/ROLE, one of {', '.join(_ROLES)}"
        )
        raise UnknownIdError(rest, kind="udev", hint=hint)

    @property
    def probe(self) -> ReadFile:
        return ReadFile(RULES, f"udev-class:{self.record}")

    @property
    def record(self) -> str:
        """The property of udev's database in which the rule records what a device had."""
        digest = hashlib.sha256(self.id.encode()).hexdigest()[:8]
        return f"ADVISOR_{self.attribute}_{digest}".upper()

    @property
    def file(self) -> str:
        """The attribute, as a path below the device's directory."""
        return f"queue/{self.attribute}" if self.subsystem == "block" else _FILES[self.attribute]

    @property
    def form(self) -> str:
        """The form of one device's value."""
        return "selected" if self.attribute == "scheduler" else "words"

    def check_value(self, value: str) -> str | None:
        bare = plain_value(value)
        if bare != value and not re.fullmatch(r"[1-9][0-9]{0,9}", bare, re.ASCII):
            return "is not a whole number from 1 on after at-least"
        return (BlockQueue("sda", self.attribute) if self.subsystem == "block" else LinkTxqueuelen("eth0")).check_value(
            bare
        )

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return FileEdit(RULES, "udev-class", self.record, self._make_rule(value), HEADER, reload=_RELOAD)

    def _make_rule(self, value: str) -> str:
        bare = plain_value(value)
        match = [*self._make_match(), f'ENV{{{self.record}}}==""']
        if bare != value:
            match.append(f'ATTR{{{self.file}}}=="{"|".join(_patterns_below(int(bare)))}"')
        return ", ".join((*match, f'ENV{{{self.record}}}="$attr{{{self.file}}}"', f'ATTR{{{self.file}}}="{bare}"'))

    def _make_match(self) -> Iterator[str]:
        yield 'ACTION!="remove"'
        if self.subsystem == "link":
            yield from ('SUBSYSTEM=="net"', f'DRIVERS=="{self.members}"')
            return
        names, asked = _split_class(self.members)
        yield from ('SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"', f'KERNEL=="{names.replace(",", "|")}"')
        for word, wanted in asked.items():
            match word:
                case "model":
                    yield f'ATTR{{device/model}}=="{wanted}"'
                case "rotational":
                    yield f'ATTR{{queue/rotational}}=="{wanted}"'
                case _:
                    yield 'ENV{{{}}}=="{}"'.format(*_ROLES[wanted])

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
            why = "udev does not run here, so no rule would reach a device that appears later"
            return Preflight(refusal=why, state="not-applicable")
        standing = self._find_standing_rule(host, before, after)
        if standing is not None:
            return Preflight(refusal=standing, state="blocked")
        refusal = self._refuse_scheduler(host, plain_value(after))
        if refusal is not None:
            return Preflight(refusal=refusal, state="blocked")
        notes = (f"{self.id}: also for devices that appear later (udev rule in {RULES})", *self.later_rules(host))
        return Preflight(notes=notes, members=() if before == after else tuple(self._list_members(host)))

    def _refuse_scheduler(self, host: Host, wanted: str) -> str | None:
        """Why no device would take the scheduler: none of the class offers it, or the kernel has none of that name."""
        if self.attribute != "scheduler":
            return None
        there = [device for device in self.list_devices(host) if device.is_member]
        whys = [BlockQueue(device.tunable.split(":")[1], "scheduler").explain_refusal(host, wanted) for device in there]
        if there and None not in whys:
            example = f"{there[0].tunable.split(':')[1]}: {whys[0] or ''}"
            return f"no device of the class that is there takes it ({example})"
        if not there and wanted not in SCHEDULERS:
            return f"is not a scheduler of the kernel, which has {list_choices(SCHEDULERS)}"
        return None

    def _list_members(self, host: Host) -> Iterator[ClassMember]:
        """The devices that are there, with what they have and what distinguishes them."""
        there = [one for one in self.list_devices(host) if one.is_member and isinstance(one.live, str)]
        names = [one.tunable.split(":")[1] for one in there]
        if self.subsystem == "link":
            for device, name in zip(there, names, strict=True):
                mark = mark_of(host, name)
                if mark is not None:
                    yield ClassMember(device.path, str(device.live), link=mark)
            return
        for device, identity in zip(there, identities_of(host, names), strict=True):
            if identity is not None and identity_refusal(identity) is None:
                yield ClassMember(device.path, str(device.live), identity=identity)

    def _find_standing_rule(self, host: Host, before: str, after: str) -> str | None:
        """Why a rule that is there already excludes this one: a device that it has reached would have its value, and no
        record would say what the device had before both. None where none does."""
        if before == after:
            return None
        if before != UNSET:
            return (
                f"a udev rule gives this class {before} already, and devices that it reached would keep that: "
                "roll back what set it first"
            )
        for line in host.read_or_empty(RULES).splitlines():
            asked = dict(_MATCHED.findall(line))
            if line.startswith("#") or f'ATTR{{{self.file}}}="' not in line:
                continue
            if self.subsystem == "link":
                is_apart = asked.get("DRIVERS") != self.members
            else:
                rest = {"model": asked.get("ATTR{device/model}"), "rotational": asked.get("ATTR{queue/rotational}")}
                is_apart = _are_apart(asked.get("KERNEL", "*").split("|"), rest, *self._block_criteria())
            if not is_apart:
                return (
                    f"a udev rule gives {self.attribute} to devices of this class already ({RULES}): roll back "
                    "what set it first"
                )
        return None

    def _block_criteria(self) -> tuple[list[str], dict[str, str | None]]:
        names, asked = _split_class(self.members)
        return names.split(","), {word: asked.get(word) for word in ("model", "rotational")}

    def overlaps(self, other: DeviceClass) -> bool:
        """Whether a device can be of both classes, so that two rules would set one value of it."""
        if (self.subsystem, self.attribute) != (other.subsystem, other.attribute):
            return False
        if self.subsystem == "link":
            return self.members == other.members
        return not _are_apart(*self._block_criteria(), *other._block_criteria())

    def later_rules(self, host: Host) -> tuple[str, ...]:
        """Notes on rule files that are read after advisor's and assign the attribute."""
        return later_rules(host, self.file, after=RULES)

    def list_devices(self, host: Host) -> Iterator[ClassDevice]:
        """The devices of the class that are there now, and those that the rule has reached."""
        directory, word = _DIRECTORIES[self.subsystem], self.subsystem
        for name in host.names(directory):
            path = f"{directory}/{name}/{self.file}"
            recorded, is_member = self._read_record(host, name), self._is_member(host, name)
            if (is_member or recorded is not None) and host.exists(path):
                token = "" if recorded is None else _read_token(host, self.subsystem, name)
                found = ClassDevice(
                    f"{word}:{name}:{self.attribute}", path, self.form, recorded, is_member, token=token
                )
                yield msgspec.structs.replace(found, live=device_value(host, found))

    def explain_unrecorded(self, device: ClassDevice) -> str:
        """What is said about a device that has the rule's value, and of which nothing says what it had before."""
        default = _DEFAULTS.get(self.attribute)
        if default is None:
            return f"stays {device.live}: what it had when it appeared is not recorded"
        return f"stays {device.live}: what it had when it appeared is not recorded; the kernel's default is {default}"

    def list_present(self, host: Host, value: str) -> Iterator[tuple[str, str]]:
        for device in self.list_devices(host):
            if device.is_member and isinstance(device.live, str) and self.explain_missing(host, device, value):
                yield device.tunable, device.live

    def _read_record(self, host: Host, name: str) -> str | None:
        if self.subsystem == "link":
            text = udev_property(host, name, self.record)
        else:
            text = udev_properties(host, name).get(self.record)
        return None if text is None else recorded_value(text, self.form)

    def _is_member(self, host: Host, name: str) -> bool:
        if self.subsystem == "link":
            driver = host.real(f"/sys/class/net/{name}/device/driver")
            return isinstance(driver, str) and driver.rpartition("/")[2] == self.members
        names, asked = _split_class(self.members)
        if is_nvme_path(name) or not any(fnmatchcase(name, one) for one in names.split(",")):
            return False
        for word, wanted in asked.items():
            if word == "role":
                key, value = _ROLES[wanted]
                found = udev_properties(host, name).get(key) or ""
            else:
                value = wanted
                found = host.read_or_empty(
                    f"/sys/block/{name}/{'device/model' if word == 'model' else 'queue/rotational'}"
                )
            if not fnmatchcase(found.strip(), value):
                return False
        return True

    def explain_missing(self, host: Host, device: ClassDevice, wanted: str) -> str | None:
        """Why a device of the class has not the value; None where it has."""
        bare = plain_value(wanted)
        if isinstance(device.live, Missing):
            return f"cannot be read: {device.live.why}"
        if device.live == bare or (bare != wanted and is_count(device.live) and int(device.live) >= int(bare)):
            return None
        if self.attribute == "scheduler":
            offered = [word.strip("[]") for word in host.read_or_empty(device.path).split()]
            if bare not in offered:
                return f"the device offers {list_choices(offered)}"
        if device.recorded is None:
            node = device.path.removesuffix(f"/{self.file}")
            return f"the udev rule has not reached it: udevadm trigger {node}"
        later = self.later_rules(host)
        return later[0] if later else "modified since the udev rule set it"


def _are_apart(
    names: list[str], asked: dict[str, str | None], other_names: list[str], other: dict[str, str | None]
) -> bool:
    """Whether no device fits both: by what their patterns begin with, or by the kind of medium."""
    rotation, other_rotation = asked["rotational"], other["rotational"]
    model, other_model = asked["model"], other["model"]
    return (
        not any(may_agree(one, two) for one in names for two in other_names)
        or (model is not None and other_model is not None and not may_agree(model, other_model))
        or (rotation is not None and other_rotation is not None and rotation != other_rotation)
    )


def may_agree(pattern: str, other: str) -> bool:
    """Whether a text can fit both patterns; True where that is not certain."""
    if not _SPECIAL.search(pattern + other):
        return pattern == other
    one, two = (_SPECIAL.split(text, maxsplit=1)[0] for text in (pattern, other))
    return one.startswith(two) or two.startswith(one)


class RestOfRules(msgspec.Struct, frozen=True):
    """A file of rules for classes without those of one transaction: ``content`` without the lines that it wrote, None
    where only advisor's own comment is left. ``edited`` are lines about its classes that are not as it wrote them, and
    ``without_edited`` is the content without these, too."""

    content: bytes | None
    edited: tuple[str, ...]
    without_edited: bytes | None


def without_rules(live: bytes | None, before: bytes | None, after: bytes) -> RestOfRules:
    """``live`` without the rules in which ``after`` differs from ``before``."""
    own = _rule_lines(after) - _rule_lines(before or b"")
    records = {found[1] for line in own if (found := _RECORD.search(line))}
    kept = [line for line in _LINE.findall(live or b"") if line.rstrip(b"\n") not in own]
    edited = [line for line in kept if _is_rule(line) and any(name in records for name in _RECORD.findall(line))]
    others = [line for line in kept if line not in edited]
    return RestOfRules(
        _joined(kept), tuple(line.decode("ascii", "replace").strip() for line in edited), _joined(others)
    )


def _rule_lines(content: bytes) -> set[bytes]:
    return {line.rstrip(b"\n") for line in _LINE.findall(content) if _is_rule(line)}


def _is_rule(line: bytes) -> bool:
    return bool(line.strip()) and not line.startswith(b"#")


def _joined(lines: list[bytes]) -> bytes | None:
    content = b"".join(lines)
    return None if content in (b"", HEADER) else content


def find_again(host: Host, device: ClassDevice) -> str | None:
    """The file of a device that was listed before, under the name that it has now; None where it is gone."""
    subsystem: Subsystem = "block" if device.tunable.startswith("block:") else "link"
    directory = _DIRECTORIES[subsystem]
    name, _, file = device.path.removeprefix(f"{directory}/").partition("/")
    for other in (name, *host.names(directory)):
        if _read_token(host, subsystem, other) == device.token:
            return f"{directory}/{other}/{file}"
    return None


def _read_token(host: Host, subsystem: Subsystem, name: str) -> str:
    """The kernel's numbers of a device, and its serial number or WWN; of a disk without them, where it sits."""
    if subsystem == "link":
        return host.read_or_empty(f"/sys/class/net/{name}/ifindex")
    words = next((text for one in ATTRIBUTES_OF_IDENTITY if (text := words_of(host, name, one))), None)
    numbers = (words_of(host, name, one) for one in ("dev", "diskseq"))
    return " ".join((*numbers, device_of(host, name) if words is None else words))


def device_value(host: Host, device: ClassDevice) -> str | Missing:
    """What the device has now."""
    return observe(host, ReadFile(device.path, device.form))


def plain_value(value: str) -> str:
    """A value of a class without the word before it."""
    return value.removeprefix(_AT_LEAST)


def block_class(names: tuple[str, ...], model: str | None, *, rotational: bool | None) -> str | None:
    """CLASS of an id for these; None where an id cannot say them."""
    found = ",".join(names)
    if model is not None:
        found += f"/model/{model}"
    if rotational is not None:
        found += f"/rotational/{int(rotational)}"
    return found if _fits_class(found) else None


def link_class(driver: str) -> str | None:
    """CLASS of an id for the links of a driver; None where an id cannot say it."""
    return driver if _DRIVER.fullmatch(driver) else None


def restored_value(change_before: str, device: ClassDevice, planned: str | None = None) -> str:
    """What a device gets when the rule goes: the value of the rule that was there before, or what it had itself: when
    the rule was planned, else when it appeared."""
    return planned or device.recorded or "" if change_before == UNSET else plain_value(change_before)


def recorded_value(text: str, form: str) -> str | None:
    """What the property says. udev writes a low line for each sign that it does not take, as for brackets."""
    if form == "selected":
        text = re.sub(r"(?<!\S)_(\S+)_(?!\S)", r"[\1]", text)
    found = reduce(text, form)
    return None if isinstance(found, Missing) else found


def _fits_class(members: str) -> bool:
    """Whether CLASS has this form, with each word once."""
    return _CLASS.fullmatch(members) is not None and members.count("/") == 2 * len(_split_class(members)[1])


def _split_class(members: str) -> tuple[str, dict[str, str]]:
    names, *rest = members.split("/")
    return names, dict(zip(rest[::2], rest[1::2], strict=False))


def _patterns_below(number: int) -> Iterator[str]:
    """Patterns of udev that fit all whole numbers below ``number``, and no others: it compares no numbers."""
    digits = str(number)
    yield from ("?" * size for size in range(1, len(digits)))
    for place, digit in enumerate(digits):
        low = "1" if place == 0 and len(digits) > 1 else "0"
        if digit > low:
            last = chr(ord(digit) - 1)
            yield f"{digits[:place]}{f'[{low}-{last}]' if last > low else low}{'?' * (len(digits) - place - 1)}"


KIND = Kind(
    name="udev",
    order=45,
    parse=DeviceClass.parse,
    noun="device class setting",
    examples=(("udev:block:nvme*:scheduler", "none"),),
    capture=Capture(),
    written_by=frozenset({"tuned", "saptune"}),
)
