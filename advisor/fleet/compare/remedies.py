"""What to do about a difference, as commands that can be pasted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.columns import Fleet
from advisor.fleet.compare.judged import JudgedRow
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.rules.queries import JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS

MAX_COMMANDS: Final = 6
MAX_LIMIT: Final = 40
MAX_NAMED: Final = 12
PROFILE_BYTES: Final = 8 << 20
"""What socket-buffers-8m raises buffers to."""
_BUFFERS: Final = frozenset(
    {"net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default"}
    | {"net.core.optmem_max", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
)
_NUMBERS: Final = lazy_regex(r"\d+( \d+)*", re.ASCII)


class CommandOrigin(msgspec.Struct, frozen=True):
    """From where commands are given: with an inventory they go to the hosts through ``advisor fleet``."""

    inventory: str | None = None

    def plan(self, profile: str, hosts: Sequence[str], **settings: str) -> str:
        """The command that plans a profile for some hosts."""
        given = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in settings.items()]
        if self.inventory is None:
            return self.on(hosts, " ".join(["advisor plan", profile, *given]))
        words = ["advisor fleet plan", profile, "-i", shlex.quote(self.inventory)]
        if len(hosts) <= MAX_LIMIT:
            words.append(f"--limit {shlex.quote(','.join(hosts))}")
        return " ".join([*words, *given])

    def on(self, hosts: Sequence[str], command: str) -> str:
        """A command to type on hosts, which stand behind it."""
        # A name is data: it must not end the comment and begin a command.
        named = ", ".join(" ".join(host.split()) for host in hosts[:MAX_NAMED])
        more = f" and {len(hosts) - MAX_NAMED} more" if len(hosts) > MAX_NAMED else ""
        return f"{command}  # on {named}{more}"


def remedy_commands(fleet: Fleet, rows: Sequence[JudgedRow], controller: CommandOrigin) -> tuple[str, ...]:
    """What would make the outliers as the majority is; nothing where there is no majority, or no command is known."""
    found: dict[str, None] = {}
    for row in rows:
        most = row.majority
        if most is None or most[0] is None:
            continue
        for one in _topic_commands(fleet, row, most[0], controller):
            found.setdefault(one)
    return tuple(found)[:MAX_COMMANDS]


def _topic_commands(fleet: Fleet, row: JudgedRow, wanted: Value, controller: CommandOrigin) -> Iterable[str]:
    topic, _, rest = row.attribute.partition(".")
    hosts = fleet.names(row.outliers)
    if topic == "sysctl":
        yield from _sysctl_commands(rest, wanted, row, hosts, controller)
    elif row.kind.topic == "LLT flow control":
        yield from _flow_commands(rest.removeprefix("file."), wanted, row, hosts, controller)
    elif topic == "link":
        role, _, leaf = rest.partition(".") if rest.count(".") == 1 else _split_attribute(rest)
        alike: dict[str, list[str]] = {}
        for host in row.outliers:
            # What a host itself calls the link with a role.
            column = fleet.columns.get(f"link.{role}.name")
            value = column.value(host) if column else None
            name = None if value is None else str(value)
            command = _link_command(name, leaf, wanted) if name else None
            if command:
                alike.setdefault(command, []).append(fleet.hosts[host].name)
        yield from (controller.on(some, command) for command, some in alike.items())


def _split_attribute(rest: str) -> tuple[str, str, str]:
    """Role and leaf of a link's attribute: the role may hold dots, and so may a leaf of two words."""
    found = re.fullmatch(r"(.+)\.((?:ring|channels|feature|detail)\.[^.]+|[^.]+)", rest, re.DOTALL)
    return (found[1], ".", found[2]) if found else (rest, "", "")


def _link_command(name: str, leaf: str, wanted: Value) -> str | None:
    link, value = shlex.quote(name), shlex.quote(str(wanted))
    first, _, last = leaf.partition(".")
    if leaf in ("mtu", "txqueuelen"):
        return f"ip link set dev {link} {leaf} {value}"
    if first == "ring":
        return f"ethtool -G {link} {last} {value}"
    if first == "channels":
        return f"ethtool -L {link} {last} {value}"
    return f"ethtool -K {link} {shlex.quote(last)} {value}" if first == "feature" else None


def _sysctl_commands(
    key: str, wanted: Value, row: JudgedRow, hosts: Sequence[str], controller: CommandOrigin
) -> Iterable[str]:
    if (
        key in _BUFFERS
        and _reaches_wanted(wanted)
        and all(_is_below(value, wanted) for value in row.groups if (value,) != row.majority)
    ):
        yield controller.plan(NETWORK_BUFFERS, hosts)
        return
    if _NUMBERS.fullmatch(str(wanted)):
        yield controller.on(hosts, f"sysctl -w {shlex.quote(f'{key}={wanted}')}")


def _flow_commands(
    rest: str, wanted: Value, row: JudgedRow, hosts: Sequence[str], controller: CommandOrigin
) -> Iterable[str]:
    name = rest.rpartition(".")[2]
    lower = [value for value in row.groups if value is not None and (value,) != row.majority]
    if name in ("highwater", "rporthighwater") and all(2 * int(value) == wanted for value in lower):
        yield controller.plan(LLT_FLOW_CONTROL, hosts)
        return
    yield controller.on(hosts, f"lltconfig -F {shlex.quote(f'{name}:{wanted}')}")


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
    alike: dict[tuple[str, ...], list[str]] = {}
    by_host: dict[str, list[str]] = {}
    for host, link in links:
        by_host.setdefault(host, []).append(link)
    for host, names in by_host.items():
        alike.setdefault(tuple(sorted(names)), []).append(host)
    found: list[str] = []
    for links_of, hosts in sorted(alike.items()):
        found.append(controller.plan(JUMBO_FRAMES, hosts, links=",".join(links_of), mtu=str(mtu)))
    return tuple(found[:MAX_COMMANDS])
