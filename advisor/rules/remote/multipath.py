"""Which line of multipath.conf holds for a map, and how the kernel spreads requests over its paths.

multipath.conf(5): a value for one map wins over overrides, that over a device section, that over multipath's built-in
table of storage, that over defaults. Of several lines in one level the last wins. Since Linux 4.6 the kernel's path
selectors set the count of requests for each turn to 1 themselves ("repeat_count > 1 is deprecated").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from advisor.facts.host_facts import Facts
from advisor.facts.settings.site_settings import SiteSetting
from advisor.host.patterns import lazy_regex
from advisor.rules.queries import by_name, kernel_version

if TYPE_CHECKING:
    from advisor.facts.block.block import Array

# How long requests wait for a remote path that is lost, against what stands behind it: one row a transport.

FOR_EVER = 1 << 32


class Wait(NamedTuple):
    """Seconds: at most ``latest`` where another path can take over, at least ``earliest`` where nothing can."""

    latest: int
    earliest: int


WAITS = {"iscsi": Wait(30, 60), "fc": Wait(10, 30), "nvme": Wait(30, 60)}


def fault_finder(facts: Facts) -> Callable[[str, Iterable[str], int], Literal["late", "early"] | None]:
    """What judges a transport's disks that share a path, and after how many seconds their requests fail."""
    maps = {name: one for one in facts.arrays if one.manager == "dm-multipath" for name in one.members}
    mapped = frozenset(facts.iscsi.multipath_disks if facts.iscsi else ())

    def behind(disk: str) -> Literal["path", "queue", "nothing"] | None:
        # A map of one path hands its requests to no other; it queues them, or fails them with its path. None where
        # its table could not be read.
        over = maps.get(disk)
        if over is None:
            return "path" if disk in mapped else "nothing"
        if len(over.members) > 1:
            return "path"
        if not over.detail:
            return None
        return "queue" if "queue_if_no_path" in over.detail.get("features", "") else "nothing"

    def fault(transport: str, disks: Iterable[str], seconds: int) -> Literal["late", "early"] | None:
        found = {behind(name) for name in disks}
        if "path" in found:
            return "late" if seconds > WAITS[transport].latest else None
        return "early" if "nothing" in found and seconds < WAITS[transport].earliest else None

    return fault


CONF = "/etc/multipath.conf"
CONF_D = "/etc/multipath/conf.d/"
DEVICE = "devices/device"
SETS_ONE_SINCE = (4, 6)
# Request-based device-mapper and dm-service-time came with it (multipath.conf(5): rr_min_io, rr_min_io_rq).
REQUEST_BASED_SINCE = (2, 6, 31)
# Characters of a product; a vendor has 8 (SPC, INQUIRY).
_SCSI_TEXT = 16
# Instead of overrides they have all_devs, in a device section (RHEL 7, DM Multipath).
_WITHOUT_OVERRIDES = lazy_regex(r"\.el[567](?:[._]|$)")


def iscsi_maps(facts: Facts) -> tuple[Array, ...]:
    """Multipath maps whose paths are iSCSI disks."""
    own = set(facts.iscsi.multipath_disks) if facts.iscsi else set[str]()
    return tuple(one for one in facts.arrays if one.manager == "dm-multipath" and own.intersection(one.members))


def is_request_based(facts: Facts) -> bool | None:
    """Whether the kernel's multipath maps take requests (rr_min_io_rq) and not bios (rr_min_io); None where the kernel
    is unknown."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", facts.host.kernel or "", re.ASCII)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0)) >= REQUEST_BASED_SINCE


def turn_key(facts: Facts) -> str:
    """The key of multipath.conf by which this kernel counts the requests of a turn."""
    return "rr_min_io" if is_request_based(facts) is False else "rr_min_io_rq"


def sets_one_itself(facts: Facts) -> bool | None:
    """Whether the kernel gives each path one request a turn, whatever is configured; None where it is unknown."""
    version = kernel_version(facts)
    return None if version is None else version >= SETS_ONE_SINCE


def has_overrides(facts: Facts) -> bool:
    """Whether multipath.conf may have a section overrides (multipath-tools 0.5.0, of 2014): not with a kernel that is
    older, or one of RHEL 5 to 7."""
    version = kernel_version(facts)
    return not _WITHOUT_OVERRIDES.search(facts.host.kernel or "") and (version is None or version >= (3, 12))


def requests_per_turn(array: Array) -> int | None:
    """The largest count in the map's table; None where the table has none."""
    return max((one.requests_per_turn for one in array.path_groups if one.requests_per_turn is not None), default=None)


def selector(array: Array) -> str | None:
    """The path selector that is active, without its arguments; None where the table could not be read."""
    policy = array.path_groups[0].selector if array.path_groups else array.detail.get("policy", "")
    return policy.partition(" ")[0] or None


def product(facts: Facts, array: Array) -> tuple[str | None, str | None]:
    """Vendor and product of the map's paths; None for what is unknown."""
    for disk in facts.disks:
        vendor = disk.detail.get("vendor")
        if disk.name in array.members and (vendor or disk.model):
            # Some readers give the vendor along with the model.
            return vendor, disk.model.removeprefix(f"{vendor} ") if disk.model else None
    return None, None


def winning(facts: Facts, array: Array, key: str) -> SiteSetting | None:
    """The line that gives a map its value of ``key``; None where no file of the administrator's does."""
    lines = _setting_lines(facts, key)
    levels = (
        [one for one in lines if one.scope == f"multipaths/multipath[{array.detail.get('wwid')}]"],
        [one for one in lines if one.scope == "overrides"],
        [one for one in lines if _is_for(facts, array, one)] or _as_in_the_table(facts, array, lines),
        [one for one in lines if one.scope == "defaults"],
    )
    return next((level[-1] for level in levels if level), None)


def unclear(facts: Facts, array: Array, key: str) -> str | None:
    """Why it is unknown which line holds; None where it is known."""
    won = winning(facts, array, key)
    if won is not None and won.scope != "defaults":
        return None
    doubtful = next((one for one in _setting_lines(facts, key) if _is_for(facts, array, one) is None), None)
    if doubtful is None:
        return None
    place = f"{doubtful.path}:{doubtful.line}"
    return f"{place} is for {doubtful.scope}, and vendor and product of {array.name} could not be read"


def is_configured(facts: Facts) -> bool:
    """Whether a line of multipath.conf is known; without one the file may be missing."""
    return any(one.path == CONF for one in facts.site_settings)


def _setting_lines(facts: Facts, key: str) -> list[SiteSetting]:
    return [one for one in facts.site_settings if one.key == key and one.path.startswith((CONF, CONF_D))]


def _as_in_the_table(facts: Facts, array: Array, lines: list[SiteSetting]) -> list[SiteSetting]:
    """Where the storage is unknown, the one device section that has what the table has: that is where it comes from."""
    active = {turn_key(facts): str(requests_per_turn(array)), "path_selector": selector(array)}
    doubtful = [one for one in lines if _is_for(facts, array, one) is None]
    same = [one for one in doubtful if one.value.partition(" ")[0] == active.get(one.key)]
    return same if len(same) == len(doubtful) == 1 else []


def _is_for(facts: Facts, array: Array, one: SiteSetting) -> bool | None:
    """Whether a line is in a device section for the map's storage; None where what that is is unknown."""
    if not one.scope.startswith(f"{DEVICE}["):
        return False
    meant = one.scope.removeprefix(f"{DEVICE}[").removesuffix("]")
    if meant == "all_devs":
        return True
    vendor, _, model = meant.partition(",")
    fits = [_matches_text(*pair) for pair in zip((vendor, model), product(facts, array), strict=True)]
    return False if False in fits else None if None in fits else True


def _matches_text(pattern: str, text: str | None) -> bool | None:
    """Whether an extended regular expression is found in the text, as multipath looks for it."""
    # A repeated group can take endless time; what one means is left open.
    if text is None or re.search(r"\)[*+{]", pattern):
        return None if pattern else True
    try:
        return re.search(pattern, text[:_SCSI_TEXT]) is not None
    except re.error:
        return pattern == text


def device_section(facts: Facts, array: Array) -> tuple[str, str] | None:
    """File and section of the last device section that is for this map, by any line of it that is kept."""
    found = [one for one in facts.site_settings if one.path.startswith((CONF, CONF_D)) and _is_for(facts, array, one)]
    return (found[-1].path, found[-1].scope) if found else None


def link_speeds(facts: Facts, array: Array) -> Mapping[str, int]:
    """Speeds in Mbit/s of the links below a map's iSCSI paths; none where one of them is not known."""
    links, members = by_name(facts), set(array.members)
    sessions = facts.iscsi.sessions if facts.iscsi else ()
    names = dict.fromkeys(name for one in sessions if members.intersection(one.disks) for name in one.links)
    speeds = {name: links[name].speed_mbps for name in names if name in links}
    known = {name: speed for name, speed in speeds.items() if speed}
    return known if len(known) == len(names) else {}
