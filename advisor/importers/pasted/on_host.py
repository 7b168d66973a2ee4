"""What a text means on a host: its own links and disks, the keys that a pattern fits, a profile that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.settings.sysctl import is_pattern, key_path
from advisor.host import Host, Missing
from advisor.importers.pasted.forms import PastedSetting, import_profile
from advisor.importers.tuned.plugin_devices import match_files
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import ExpandsIds

_MOST = 64
"""Devices and keys that one line of a text stands for."""
_NAMED = 6


def on_this_host(one: PastedSetting, host: Host, facts: Facts) -> Sequence[PastedSetting]:
    """Return the setting for each device, key or profile of this host that the text means; as it is where it means
    none, with a ``note`` on devices that are not here."""
    kind, _, rest = (one.tunable or "").partition(":")
    names: Iterable[str] = ()
    note = ""
    if kind == "tuned":
        lacks = f"a profile of TuneD that is not here: advisor judge {rest}/tuned.conf judges its file"
        return import_profile(rest, one, host, facts) or [msgspec.structs.replace(one, tunable=None, note=lacks)]
    if kind in ("link", "block", "md"):
        device, _, attribute = rest.rpartition(":") if kind == "link" else rest.partition(":")
        devices, note = _find_devices(kind, device, facts, one.rotational)
        names = [f"{kind}:{name}:{attribute}" for name in devices]
        if not devices:
            return [msgspec.structs.replace(one, note=note, outcome="ignored")]
    elif kind == "sysctl" and is_pattern(rest):
        keys = (path.removeprefix("/proc/sys/") for path in match_files(host, key_path(rest)))
        names = [f"sysctl:{key.translate({46: '/', 47: '.'})}" for key in keys]
    elif one.tunable:
        try:
            known = parse_tunable(one.tunable)
        except UsageError:
            return [one]
        found = known.expand_ids(host) if isinstance(known, ExpandsIds) else ()
        names = () if isinstance(found, Missing) else found
    made = [msgspec.structs.replace(one, tunable=name, note=one.note or note) for name in list(names)[:_MOST]]
    return made or [one]


def _find_devices(kind: str, name: str, facts: Facts, rotational: bool | None) -> tuple[list[str], str]:
    """The devices that a name of a text means, and what is to be said of that: a link of another name is that of the
    reader, a disk is one of its kind (sda, nvme0n1)."""
    if kind == "link":
        every = [link.name for link in facts.links]
        own = [one.name for one in facts.links if one.pci or (one.kind in ("ethernet", "infiniband") and one.driver)]
        like = "*"
    else:
        own = [disk.name for disk in facts.disks if rotational in (None, disk.rotational)]
        every = [*own, *(array.name for array in facts.arrays if rotational is None)]
        like = re.sub("[^a-z].*", "*", name)
    if name in every:
        return [name], ""
    if is_pattern(name):
        fitting = [one for one in (own if name == "*" else every) if fnmatchcase(one, name)]
        turns = {None: f"fits {name}", True: "rotates", False: "is without rotation"}[rotational]
        return fitting, "" if fitting else f"nothing of this host {turns}"
    here = ", ".join(own[:_NAMED]) or "none"
    alike = [one for one in own if fnmatchcase(one, like)]
    return alike, f"the text names {name}, this host has {here}" if alike else f"this host has no {name}: it has {here}"
