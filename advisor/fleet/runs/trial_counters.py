"""What the hosts of a trial count by themselves: which files a reading prints, and the figures of two readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from advisor.host import Host
from advisor.host.commands import Completed, RecordedCommands
from advisor.host.files import MemoryFiles
from advisor.observe.connections import CONNECTIONS
from advisor.proof.host_metrics import DISK_METRICS, NETWORK_METRICS, PRESSURE_METRICS, HostCounters
from advisor.proof.live_source import figure_of
from advisor.shell.quote import shell_quote

_DISKS: Final = "disks"
_ROUND_TRIPS: Final = "connections"
_COMMANDS: Final[Mapping[str, str]] = {
    # What stands on others (a file, a RAID, a mapping) has no device of its own and would count twice.
    _DISKS: 'for disk in /sys/block/*/device; do disk=${disk%/device}; echo "${disk##*/}"; done',
    _ROUND_TRIPS: " ".join(map(shell_quote, CONNECTIONS)),
}


def list_sources(names: Iterable[str]) -> tuple[str, ...]:
    """What has to be read for these metrics: paths, and what `source_command` knows, in a fixed order."""
    wanted = frozenset(names)
    found = []
    if wanted & set(DISK_METRICS):
        found += [_DISKS, "/proc/diskstats"]
    if NETWORK_METRICS[0] in wanted:
        found.append(_ROUND_TRIPS)
    if NETWORK_METRICS[1] in wanted:
        found.append("/proc/net/snmp")
    found += [f"/proc/pressure/{name.partition('-')[0]}" for name in PRESSURE_METRICS if name in wanted]
    return tuple(found)


def source_command(source: str) -> str:
    """What prints a source on the host."""
    return _COMMANDS.get(source) or f"cat {source}"


class TrialCounters:
    """The counters of one host, from reading to reading."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._host = Host(MemoryFiles({}), RecordedCommands({}))
        self._counters: HostCounters | None = None

    def figures_since(self, texts: Mapping[str, str], now: float) -> dict[str, float | None]:
        """Each metric since the reading before, None where nothing happened; all None at the first one. ``now`` in
        seconds since the host's boot. Raises ValueError where a counter is not there or was reset."""
        self._host.files = MemoryFiles({path: text.encode() for path, text in texts.items() if path.startswith("/")})
        self._host.commands = RecordedCommands({CONNECTIONS: Completed(0, texts.get(_ROUND_TRIPS, ""), "")})
        is_first = self._counters is None
        if self._counters is None:
            disks = [name for name in texts.get(_DISKS, "").split() if name != "*"]
            if _DISKS in texts and not disks:
                raise ValueError("there is no disk")
            self._counters = HostCounters(self._host, self._names, disks)
        found = self._counters.read_since(now)
        return {name: None if is_first else figure_of(found.get(name)) for name in self._names}
