"""What to do about a difference, as transactions of ours: journalled, kept over a boot, and rolled back by one
command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.settings import find_setting
from advisor.facts.settings.record import Machine
from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.columns import Fleet, JudgedRow
from advisor.host.numbers import group_pairs, is_count
from advisor.host.patterns import lazy_regex
from advisor.rules.queries import JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS
from advisor.rules.settings.sysctls import is_bad

# Links that carry one name here and another there: matched by network, then by driver and speed.

_PREFIX = "link."
_PRESENT = ".present"


def match_links(fleet: Fleet) -> None:
    """Gives matched links the name that most hosts know them by. The rows' memberships keep their own."""
    count = len(fleet.hosts)
    there = {role: {*fleet.columns[f"{_PREFIX}{role}{_PRESENT}"].present(count)} for role in _roles_by_name(fleet)}
    usual = [role for role, hosts in there.items() if 2 * len(hosts) > count > len(hosts)]
    rare = [role for role, hosts in there.items() if 2 * len(hosts) <= count]
    if not usual or not rare:
        return
    networks = group_pairs((one.role, one.network) for row in fleet.hosts for one in row.memberships)
    for role in sorted(usual, key=lambda one: (-len(there[one]), one)):
        for other in _stand_ins(fleet, role, rare, there, networks):
            base = f"{_PREFIX}{other}."
            for name in [name for name in fleet.columns if name.startswith(base)]:
                column, moved = fleet.columns.pop(name), f"{_PREFIX}{role}.{name[len(base) :]}"
                target = fleet.columns.setdefault(moved, column)
                for host, value in column.present(count).items() if target is not column else ():
                    if value == target.base:
                        target.others.pop(host, None)
                    else:
                        target.others[host] = value
            there[role] |= there[other]
            rare.remove(other)


def _roles_by_name(fleet: Fleet) -> Iterator[str]:
    """Roles that are names of links, as the links' own names say."""
    for name in sorted(fleet.columns):
        if name.startswith(_PREFIX) and name.endswith(_PRESENT):
            role = name[len(_PREFIX) : -len(_PRESENT)]
            names = fleet.columns.get(f"{_PREFIX}{role}.name")
            if names is not None and {names.base, *names.others.values()} <= {role, None}:
                yield role


def _stand_ins(
    fleet: Fleet, role: str, rare: list[str], there: dict[str, set[int]], networks: Mapping[str, list[str]]
) -> list[str]:
    """Links that stand where ``role`` is missed: disjoint hosts, and the only one of their kind there."""
    found: list[str] = []
    free = [other for other in rare if not there[other] & there[role]]
    for other in free:
        if {*networks.get(role, ())} & {*networks.get(other, ())} and not _is_claimed(found, other, there):
            found.append(other)
    kind = _link_kind(fleet, role, there[role])
    for other in free:
        alike = [one for one in free if there[one] & there[other] and _link_kind(fleet, one, there[one]) == kind]
        if kind is not None and alike == [other] and not _is_claimed(found, other, there) and other not in found:
            missed = [one for one in there if 2 * len(there[one]) > len(fleet.hosts) and not there[one] & there[other]]
            if [one for one in missed if _link_kind(fleet, one, there[one]) == kind] == [role]:
                found.append(other)
    return found


def _is_claimed(found: list[str], other: str, there: dict[str, set[int]]) -> bool:
    return any(there[one] & there[other] for one in found)


def _link_kind(fleet: Fleet, role: str, hosts: set[int]) -> tuple[Value | None, Value | None] | None:
    """Driver and speed, where all of its hosts agree and both are known."""
    columns = [fleet.columns.get(f"{_PREFIX}{role}.{leaf}") for leaf in ("driver", "speed_mbps")]
    values = {tuple(column.value(host) if column else None for column in columns) for host in hosts}
    only = values.pop() if len(values) == 1 else (None, None)
    return None if None in only else (only[0], only[1])


MAX_COMMANDS = 6
MAX_LIMIT = 40
MAX_NAMED = 12
PROFILE_BYTES = 8 << 20
"""What socket-buffers-8m raises buffers to."""
_TUNABLES = {"memory.thp_enabled": "thp:enabled", "memory.thp_defrag": "thp:defrag"}
_PLAIN = lazy_regex(r"\d+( \d+)*|[a-z][\w-]*", re.ASCII)
"""Numbers or a word, as the kernel takes them."""


class CommandOrigin(msgspec.Struct, frozen=True):
    """From where commands are given: with an inventory they go to the hosts through ``advisor fleet``."""

    inventory: str | None = None

    def apply(self, words: Sequence[str], hosts: Sequence[str], **settings: str) -> str:
        """The command that applies profiles and values to some hosts; it shows the plan and prompts."""
        given = [
            *map(shlex.quote, words),
            *(f"--set {shlex.quote(f'{name}={value}')}" for name, value in settings.items()),
        ]
        if self.inventory is None:
            return self.on(hosts, " ".join(["advisor apply", *given]))
        limit = [f"--limit {shlex.quote(','.join(hosts))}"] if len(hosts) <= MAX_LIMIT else []
        return " ".join(["advisor fleet apply", *given, "-i", shlex.quote(self.inventory), *limit])

    def on(self, hosts: Sequence[str], command: str) -> str:
        """A command to type on hosts, which stand behind it."""
        # A name is data: it must not end the comment and begin a command.
        named = ", ".join(" ".join(host.split()) for host in hosts[:MAX_NAMED])
        more = f" and {len(hosts) - MAX_NAMED} more" if len(hosts) > MAX_NAMED else ""
        return f"{command}  # on {named}{more}"


def remedy_commands(fleet: Fleet, rows: Sequence[JudgedRow], controller: CommandOrigin) -> tuple[str, ...]:
    """What would make the outliers as the majority is, a transaction for the hosts that need the same; nothing where
    there is no majority, or no tunable is known."""
    words: dict[int, dict[str, None]] = {}
    for row in rows:
        most = row.majority
        if most is None or most[0] is None:
            continue
        for host in row.outliers:
            words.setdefault(host, {}).update(dict.fromkeys(_host_words(fleet, row, most[0], host)))
    alike = group_pairs((tuple(some), host) for host, some in sorted(words.items()) if some)
    return tuple(controller.apply(some, fleet.names(hosts)) for some, hosts in alike.items())[:MAX_COMMANDS]


def _host_words(fleet: Fleet, row: JudgedRow, wanted: Value, host: int) -> Iterable[str]:
    """A profile or a tunable with its value that gives a host the value of the others."""
    topic, _, rest = row.attribute.partition(".")
    if topic == "sysctl":
        yield from _sysctl_words(rest, wanted, row)
    elif row.attribute in _TUNABLES:
        yield f"{_TUNABLES[row.attribute]}={wanted}"
    elif row.kind.topic == "LLT flow control":
        yield _flow_word(rest.rpartition(".")[2], wanted, row)
    elif topic == "link":
        role, _, leaf = rest.partition(".") if rest.count(".") == 1 else _split_attribute(rest)
        # What a host itself calls the link with a role.
        column = fleet.columns.get(f"link.{role}.name")
        name = column.value(host) if column else None
        tunable = None if name is None else _link_tunable(str(name), leaf)
        if tunable:
            yield f"{tunable}={_word(wanted)}"


def _split_attribute(rest: str) -> tuple[str, str, str]:
    """Role and leaf of a link's attribute: the role may hold dots, and so may a leaf of two words."""
    found = re.fullmatch(r"(.+)\.((?:ring|channels|feature|detail)\.[^.]+|[^.]+)", rest, re.DOTALL)
    return (found[1], ".", found[2]) if found else (rest, "", "")


def _link_tunable(name: str, leaf: str) -> str | None:
    group, _, key = leaf.partition(".")
    if leaf in ("mtu", "txqueuelen") or (key and group in ("ring", "channels", "feature")):
        return f"link:{name}:{leaf}"
    return None


def _word(value: Value) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _sysctl_words(key: str, wanted: Value, row: JudgedRow) -> Iterable[str]:
    setting = find_setting(key)
    if (
        setting is not None
        and setting.is_buffer
        and _reaches_wanted(wanted)
        and all(_is_below(value, wanted) for value in row.groups if (value,) != row.majority)
    ):
        yield NETWORK_BUFFERS
    elif _PLAIN.fullmatch(str(wanted)) and not _is_harmful(key, str(wanted)):
        yield f"sysctl:{key}={wanted}"


def _is_harmful(key: str, value: str) -> bool:
    """Whether a value harms on any host, however many have it."""
    setting = find_setting(key)
    return setting is not None and any(is_bad(one, Machine(), key, value) for one in setting.cautions)


def _flow_word(name: str, wanted: Value, row: JudgedRow) -> str:
    lower = [value for value in row.groups if value is not None and (value,) != row.majority]
    if name in ("highwater", "rporthighwater") and all(2 * int(value) == wanted for value in lower):
        return LLT_FLOW_CONTROL
    return f"llt:{name}={wanted}"


def _reaches_wanted(wanted: Value) -> bool:
    """Whether the others have what the profile sets; else it would make one more value of it."""
    last = str(wanted).split()[-1:]
    return bool(last) and is_count(last[0]) and len(last[0]) < 20 and int(last[0]) >= PROFILE_BYTES


def _is_below(value: Value | None, wanted: Value) -> bool:
    """Whether no field is above the wanted one; the profile raises, it never lowers."""
    old, new = str(value or "").split(), str(wanted).split()
    numbers = all(is_count(word) and len(word) < 20 for word in (*old, *new))
    return numbers and len(old) == len(new) and all(int(a) <= int(b) for a, b in zip(old, new, strict=True))


def raise_mtu(links: Sequence[tuple[str, str]], mtu: int, controller: CommandOrigin) -> tuple[str, ...]:
    """Commands that raise the MTU of (host, link) pairs: one for hosts on which the links have the same names."""
    alike = group_pairs((tuple(sorted(names)), host) for host, names in group_pairs(links).items())
    return tuple(
        controller.apply([JUMBO_FRAMES], hosts, links=",".join(names), mtu=str(mtu))
        for names, hosts in sorted(alike.items())[:MAX_COMMANDS]
    )
