"""Text of modprobe, systemctl, the kernel (modules, command line, choices) and udev rules, as one value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from advisor.host.config_text import UNSET, WHITE_SPACE, split_words
from advisor.host.missing import Missing
from advisor.host.patterns import lazy_regex
from advisor.host.steps import QDISC_HANDLES, DriverGroup

SET = "(set)"
"""What a word of the kernel's command line reads that has no value."""

_CHOSEN = lazy_regex(r"\[([^][()]+)\]|\(([^][()]+)\)")
# A unit that has failed is one that does not run; its own journal says why it failed.
_RUNS = {"active": "active", "reloading": "active", "inactive": "inactive", "failed": "inactive"}


def choice(text: str, _: str) -> str | Missing:
    """The chosen word of ``a [b] c`` or ``a (b) c`` where one is marked; else all words."""
    words = split_words(text)
    chosen = [found[1] or found[2] for word in words if (found := _CHOSEN.fullmatch(word))]
    return chosen[0] if len(chosen) == 1 else " ".join(words)


def number(text: str, _: str) -> str | Missing:
    """The only word, where it is a whole number."""
    words = split_words(text)
    if len(words) == 1 and re.fullmatch(r"-?[0-9]+", words[0]):
        return words[0]
    return Missing("unreadable", f"not a whole number: {text[:40]!r}")


def module(text: str, name: str) -> str | Missing:
    """``loaded`` or ``unloaded`` by /proc/modules; Missing while it is coming or going."""
    for line in text.split("\n"):
        words = split_words(line)
        if words and words[0] == name:
            state = words[4] if len(words) > 4 else "Live"
            return "loaded" if state == "Live" else Missing("unreadable", f"the module is {state.lower()} just now")
    return "unloaded"


def module_option(text: str, place: str) -> str | Missing:
    """What ``modprobe --showconfig`` gives the parameter of ``MODULE:PARAMETER``: the last ``options`` line wins."""
    name, _, parameter = place.partition(":")
    value = UNSET
    for line in text.split("\n"):
        words = split_words(line)
        if len(words) > 2 and words[0] == "options" and words[1].replace("-", "_") == name:
            for key, given in _parse_assignments(words[2:]):
                value = given if key == parameter else value
    return value


def cmdline(text: str, name: str) -> str | Missing:
    """The last value that a kernel command line gives a word, ``(set)`` where it has none."""
    value = UNSET
    for key, given in _parse_assignments(split_words(text)):
        value = given if key == name else value
    return value


def _parse_assignments(words: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        key, equals, value = word.partition("=")
        yield key, value or SET if equals else SET


def udev_class(text: str, record: str) -> str | Missing:
    """The value that the last rule which records into this property assigns, ``at-least`` before it where the rule
    leaves devices alone that have more."""
    value = UNSET
    for line in text.split("\n"):
        found = re.search(r'ATTR\{([^}]*)\}="([^"]*)"$', line)
        if found and f'ENV{{{record}}}="$attr{{' in line and not re.match(r"[ \t]*#", line):
            value = ("at-least " if f"ATTR{{{found[1]}}}==" in line else "") + found[2]
    return value


def unit_state(text: str, _: str) -> str | Missing:
    """``enabled active``: UnitFileState and ActiveState of what ``systemctl show`` prints.

    While the system starts, units have not come to their turn yet: there the second is what the start will make of it.
    """
    properties = dict(line.split("=", 1) for line in text.split("\n") if "=" in line)
    if properties.get("LoadState") not in ("loaded", "masked"):
        return Missing("absent", "systemd knows no such unit")
    active = properties.get("ActiveState", "")
    at_boot = properties.get("UnitFileState") or "static"
    if properties.get("SystemState") == "initializing" and at_boot in ("enabled", "disabled"):
        return "enabled active" if at_boot == "enabled" else "disabled inactive"
    if active not in _RUNS:
        return Missing("unreadable", f"the unit is {active or 'in no known state'} just now")
    return f"{at_boot} {_RUNS[active]}"


# Texts about links: CPU masks of queues and what ``tc qdisc show dev LINK`` prints, each as one canonical line, and
# where ethtool(8) prints a value. ``templates/rollback.sh.j2`` reads them in the same way.

NO_CPUS = "none"
"""The word for a mask without a CPU: an empty line would look like one that was not read."""

DEFAULT = "default"
"""Begins the line for a qdisc that the kernel attached by itself."""

_INGRESS_PLACE = "ffff:fff1"
_KERNELS_OWN = "0:"


def cpulist(text: str, _: str = "") -> str | Missing:
    """``00000000,0000000f`` → ``0-3``; ``none`` for no CPU."""
    digits = text.strip(WHITE_SPACE).replace(",", "")
    if not re.fullmatch(r"[0-9a-fA-F]{1,16384}", digits):
        return Missing("unreadable", f"not a CPU mask: {text[:40]!r}")
    mask = int(digits, 16)
    spans: list[str] = []
    first = 0
    while mask >> first:
        if not mask >> first & 1:
            first += 1
            continue
        end = first
        while mask >> end & 1:
            end += 1
        spans.append(str(first) if end == first + 1 else f"{first}-{end - 1}")
        first = end
    return ",".join(spans) or NO_CPUS


def qdisc(text: str, _: str = "") -> str | Missing:
    """The root qdisc, in a form that can be restored.

    ``fq`` for one that was attached under its handle of `QDISC_HANDLES`, which says that it has no parameters of its
    own. ``default KIND PARAMETERS`` for one that the kernel attached (handle ``0:``), and ``default mq KIND
    PARAMETERS`` for one in each queue: they come back when the root is deleted. Missing for everything else, as nobody
    could bring it back.
    """
    roots: list[list[str]] = []
    children: list[list[str]] = []
    for line in text.split("\n"):
        words = split_words(line)
        if not words or (words[0] == "qdisc" and words[3:5] == ["parent", _INGRESS_PLACE]):
            continue
        if words[0] != "qdisc" or len(words) < 4 or words[3] not in ("root", "parent"):
            return Missing("unreadable", f"its qdisc has parameters that could not be restored: {line.strip()[:60]}")
        (roots if words[3] == "root" else children).append(words)
    if len(roots) != 1:
        return Missing("unreadable", "tc shows no root qdisc")
    root = roots[0]
    kind, handle = root[1], root[2]
    if kind == "noop":
        return Missing("unreadable", "the link is down and has no qdisc yet")
    if QDISC_HANDLES.get(kind) == handle and not children:
        return kind
    if handle != _KERNELS_OWN:
        return Missing("unreadable", f"its qdisc {kind} {handle} is not the kernel's and could not be restored")
    if not children:
        return " ".join((DEFAULT, kind, *_qdisc_parameters(root, 4)))
    leaves = {" ".join((child[1], *_qdisc_parameters(child, 5))) for child in children if child[2] == _KERNELS_OWN}
    if kind != "mq" or len(leaves) != 1 or any(child[2] != _KERNELS_OWN for child in children):
        return Missing("unreadable", f"its qdisc {kind} holds others that could not be restored")
    return f"{DEFAULT} mq {leaves.pop()}"


def _qdisc_parameters(words: list[str], at: int) -> list[str]:
    return words[at + 2 :] if words[at : at + 1] == ["refcnt"] else words[at:]


_BELOW_MAXIMUMS = "Current hardware settings"
_PRINTED: Mapping[DriverGroup, Mapping[str, str]] = {
    "rings": {"rx": "RX", "rx-mini": "RX Mini", "rx-jumbo": "RX Jumbo", "tx": "TX"},
    "channels": {"rx": "RX", "tx": "TX", "other": "Other", "combined": "Combined"},
    "coalesce": {"adaptive-rx": "Adaptive RX", "adaptive-tx": "Adaptive RX"},
    "pause": {"autoneg": "Autonegotiate", "rx": "RX", "tx": "TX"},
    # A feature that is the only one of its group is printed under the group's name.
    "features": {
        "rx-checksum": "rx-checksumming",
        "tx-generic-segmentation": "generic-segmentation-offload",
        "rx-gro": "generic-receive-offload",
        "rx-lro": "large-receive-offload",
        "rx-vlan-hw-parse": "rx-vlan-offload",
        "tx-vlan-hw-insert": "tx-vlan-offload",
        "rx-ntuple-filter": "ntuple-filters",
        "rx-hashing": "receive-hashing",
        "tx-udp-fragmentation": "udp-fragmentation-offload",
    },
}


class Printed(NamedTuple):
    """Where a value stands: in the ``field``-th word behind the colon of the last line of this name, below ``header``.

    Where no line has the name, ``other`` is looked for.
    """

    name: str
    field: int
    header: str
    other: str


def printed(group: DriverGroup, key: str) -> Printed:
    """Where ethtool(8) prints the value of a key."""
    name = _PRINTED[group].get(key, key)
    field = 3 if key == "adaptive-tx" else 1
    return Printed(name, field, _BELOW_MAXIMUMS if group in ("rings", "channels") else "", key)


# Lasting addresses and routes in what ``ip`` prints, as one canonical line; ``templates/rollback.sh.j2`` has the same.
#
# ``addresses``  ``192.0.2.1/24 2001:db8::1/64+noprefixroute``, sorted
# ``routes:6``   ``6:default via fe80::1 metric 1024; 6:2001:db8::/64 proto kernel metric 256``, sorted: lasting ones;
#                those that a router advertises or DHCP gives, that expire or have several next hops are left out

# How the kernel finds a route at the moment, which cannot be set.
_STATES = frozenset({"linkdown", "dead", "pervasive", "offload", "trap", "rt_offload", "rt_trap", "notify"})
# The first one comes with every link-local address.
_NOT_OURS = frozenset({"fe80::/64", "nexthop", "nhid", "expires", "cache", "ra", "dhcp", "redirect", "local"})


def addresses(text: str, _: str) -> str:
    """From ``ip -o address show``."""
    found: set[str] = set()
    for line in text.split("\n"):
        words = split_words(line)
        for place in range(len(words) - 1):
            if words[place] in ("inet", "inet6"):
                found.add(words[place + 1] + ("+noprefixroute" if "noprefixroute" in words else ""))
                break
    return " ".join(sorted(found))


def routes(text: str, version: str) -> str:
    """From ``ip -VERSION -o route show table all dev LINK``."""
    found: set[str] = set()
    for line in text.split("\n"):
        words = split_words(line)
        # Local, broadcast and multicast ones begin with their type and come with an address.
        # "pref medium" is what every IPv6 route has by default, and what busybox' ip does not know.
        words = words[:-2] if words[-2:] == ["pref", "medium"] else words
        if words and re.fullmatch(r"default|[0-9a-f:.]+(/[0-9]+)?", words[0]) and not _NOT_OURS & set(words):
            found.add(f"{version}:" + " ".join(word for word in words if word not in _STATES))
    return "; ".join(sorted(found))


# The RSS indirection table in what ``ethtool -x LINK`` prints, as one canonical line: the words of ethtool(8) that set
# it, and its size. ``templates/rollback.sh.j2`` has the same.
#
# ``default 4 of 128``          what the kernel makes for 4 receive queues: 0 1 2 3 0 1 2 3 …
# ``equal 2 start 1 of 128``    1 2 1 2 …
# ``weight 96 0 32 of 128``     96 times 0, 32 times 2
# ``table 0 3 1 … of 128``      anything else, which ethtool cannot set

_HEADER = r"RX flow hash indirection table for .* with ([0-9]+) RX ring\(s\):[ \t]*"
_ROW = r"[ \t]*[0-9]+:((?:[ \t]+[0-9]+)+)[ \t]*"
_MAX_DIGITS = 5

NO_TABLE = Missing("absent", "its driver shows no RSS indirection table")


def indirection(text: str, _: str = "") -> str | Missing:
    """The table. Absent where the driver has none."""
    rings = ""
    words: list[str] = []
    for line in text.split("\n"):
        header, row = re.fullmatch(_HEADER, line), re.fullmatch(_ROW, line)
        if line.startswith("RSS hash"):
            break
        if header:
            rings = header[1]
        elif row:
            words += row[1].split()
    if not rings or not words:
        return NO_TABLE
    if any(len(word) > _MAX_DIGITS for word in (rings, *words)):
        return Missing("unreadable", "numbers in its RSS indirection table that no queue has")
    return f"{_format_table(int(rings), [int(word) for word in words])} of {len(words)}"


def _format_table(rings: int, table: list[int]) -> str:
    low, high = min(table), max(table)
    if rings and table == [place % rings for place in range(len(table))]:
        return f"default {rings}"
    if table == [low + place % (high - low + 1) for place in range(len(table))]:
        return f"equal {high - low + 1}" + (f" start {low}" if low else "")
    if table == sorted(table):
        return " ".join(("weight", *(str(table.count(queue)) for queue in range(high + 1))))
    return " ".join(("table", *map(str, table)))


def highest_queue(value: str) -> int:
    """The last queue that a table uses."""
    kind, *rest = value.split(" ")[:-2]
    numbers = [int(word) for word in rest if word != "start"]
    if kind == "table":
        return max(numbers)
    return len(numbers) - 1 if kind == "weight" else sum(numbers) - 1


def setting_words(value: str) -> tuple[str, ...] | None:
    """What to give ``ethtool -X LINK`` for a table; None where ethtool cannot set it."""
    words = tuple(value.split(" ")[:-2])
    if words[0] == "default":
        return words[:1]
    return None if words[0] == "table" else words
