"""Processes that the kernel killed since memory was used up, by its log: kind ``kill``.

Source: mm/oom_kill.c (``Killed process PID (NAME)``, and since 5.0 ``oom-kill:constraint=…,task_memcg=…``);
Documentation/ABI/testing/dev-kmsg: ``PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT``, where the
kernel's own priorities are below 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.host import Host, Missing
from advisor.host.kernel_log import read_kernel_log
from advisor.host.patterns import lazy_regex
from advisor.observe.sample import Reading

_KILLED = lazy_regex(
    r"^[0-7],([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,40};[^\n]{0,80}?"
    r"Killed process ([0-9]{1,10})(?:, UID [0-9]{1,10},)? \(([^\n]{1,40}?)\)(?: total-vm|[.,]|$)"
)
_GROUP = lazy_regex(
    r";oom-kill:constraint=[^\n]{0,2000}?,task_memcg=([^,\n]{1,1000}),task=[^\n]{0,80}?,pid=([0-9]{1,10}),"
)
_MAX_KILLS = 64


def parse_kills(text: str) -> dict[str, dict[str, str]]:
    """The last kills of a log by the sequence number of their record: ``process``, ``pid``, and ``cgroup`` where the
    kernel names it."""
    groups: dict[str, str] = {}
    found: dict[str, dict[str, str]] = {}
    for line in text.split("\n"):
        if "oom-kill:" in line and (group := _GROUP.search(line)):
            groups[group[2]] = group[1]
        elif "Killed process" in line and (killed := _KILLED.match(line)):
            number, pid, name = killed.groups()
            cgroup = groups.pop(pid, "")
            found[number] = {"process": name, "pid": pid} | ({"cgroup": cgroup} if cgroup else {})
    return dict(list(found.items())[-_MAX_KILLS:])


def read_kills(host: Host, reading: Reading, read_log: Callable[[], str | Missing] = read_kernel_log) -> None:
    """Read after the counters of memory: a host that has killed nothing since boot is not asked for its log."""
    vm: Mapping[str, int] = reading.counters.get("vm", {}).get("host", {})
    if not host.is_live or vm.get("oom_kill") == 0:
        return
    text = read_log()
    if isinstance(text, Missing):
        reading.note_missing("kill", f"{text.why}: the kernel's log names the processes that it killed")
        return
    for number, words in parse_kills(text).items():
        reading.add("kill", number, words=words)
