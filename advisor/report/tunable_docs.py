"""How each kind of tunable is read, set and kept: told by asking the tunables themselves on an example host, so that
the words cannot drift from what apply does."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from advisor.host import Host, MemoryFiles, Missing, Probe, ReadCommand, ReadEthtool, ReadFile, ReadIrqs
from advisor.host.commands import NoCommands
from advisor.report.terms import EFFECTS, RISKS
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import hand_command
from advisor.tunables import FileEdit, Persisted, Tunable, tunable
from advisor.tunables.block import BlockQueue
from advisor.tunables.cmdline import CommandLine, commands
from advisor.tunables.edit_forms import line_setting
from advisor.tunables.link_driver import DriverValue
from advisor.tunables.link_qdisc import LinkQdisc
from advisor.tunables.link_queues import QueueValue
from advisor.tunables.link_txqueuelen import LinkTxqueuelen
from advisor.tunables.llt import LLTTAB
from advisor.tunables.md import MdSetting
from advisor.tunables.network_forms import network_line

# One id and value per kind, and more for a kind of several sorts. One that is not named is told without its example.
EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "sysctl": ("sysctl:net.core.rmem_max", "8388608"),
    "link": ("link:eth1:mtu", "9000"),
    "link ring": ("link:eth1:ring.rx", "4096"),
    "link channels": ("link:eth1:channels.combined", "8"),
    "link coalescing": ("link:eth1:coalesce.rx-usecs", "50"),
    "link feature": ("link:eth1:feature.rx-gro", "on"),
    "link pause": ("link:eth1:pause.rx", "off"),
    "link txqueuelen": ("link:eth1:txqueuelen", "10000"),
    "link qdisc": ("link:eth1:qdisc", "fq"),
    "link RPS": ("link:eth1:rps.rx-0", "0-3"),
    "link RFS": ("link:eth1:rps-flow-cnt.rx-0", "4096"),
    "link XPS": ("link:eth1:xps.tx-0", "0-3"),
    "irq": ("irq:42:affinity", "0-3"),
    "block": ("block:nvme0n1:scheduler", "mq-deadline"),
    "md": ("md:md0:stripe_cache_size", "4096"),
    "thp": ("thp:enabled", "madvise"),
    "llt": ("llt:highwater", "2000"),
    "llt timer": ("llt:timer.peerinact", "3200"),
    "unit": ("unit:beegfs-storage.service:numa", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
    "unit setting": ("unit:beegfs-storage.service:LimitNOFILE", "1048576"),
    "unit state": ("unit:irqbalance.service:state", "disabled inactive"),
    "file": ("file:/etc/beegfs/beegfs-storage.conf:tuneNumWorkers", "32"),
    "cpufreq": ("cpufreq:policy0:governor", "performance"),
    "cpufreq boost": ("cpufreq:boost", "1"),
    "intel_pstate": ("intel_pstate:min_perf_pct", "100"),
    "pm-qos": ("pm-qos:cpu_dma_latency", "10"),
    "sched": ("sched:migration_cost_ns", "5000000"),
    "sysfs": ("sysfs:/sys/kernel/mm/ksm/run", "0"),
    "module": ("module:nf_conntrack", "loaded"),
    "module parameter": ("module:nvme_core:io_timeout", "255"),
    "module option": ("module:nvme_core:option.multipath", "N"),
    "cmdline": ("cmdline:intel_idle.max_cstate", "1"),
}
# Values of which each tunable takes one at least, for those of which no better one is known.
_ANY: Final = ("64", "1", "0-3", "write back", "never", "on", "fq")


class Handling(msgspec.Struct, frozen=True):
    """What a tunable is and does. ``set_by`` and ``line`` hold an example value.

    ``by_file``: no step sets the live value, its file does once ``set_by`` has made the owner read it. ``by_hand``:
    nothing here sets it. ``persists_in`` and ``line`` are None where no file keeps it; ``persist_note`` then says why.
    """

    what: str
    read_by: str
    set_by: str
    by_file: bool
    persists_in: str | None
    persist_note: str | None
    line: str | None
    takes_effect: str
    risk: str
    by_hand: bool = False

    def setting(self, quote: str = "") -> str:
        """How it is set, the commands in ``quote``."""
        if self.by_hand:
            return f"hand alone: {self.set_by}"
        typed = f"{quote}{self.set_by}{quote}" if self.set_by else ""
        if not self.by_file:
            return typed
        return f"its file, then {typed}" if typed else "its file alone"


def handling(identity: str, *, profile: str = "PROFILE", value: str | None = None) -> Handling:
    """How this tunable is handled, told with ``value`` or an example. Raises UsageError for what is no tunable."""
    one = tunable(identity)
    shown = _example_value(one, value)
    edit = one.edit(_example_host(one), shown, profile=profile) if shown else Missing("absent", "unknown")
    return Handling(
        what=kind_words(one),
        read_by=_read_by(one.probe),
        set_by=_set_by(one, shown, edit),
        by_file=bool(shown) and not one.steps(shown) and not isinstance(one, CommandLine),
        persists_in=None if isinstance(edit, Missing) else edit.path,
        persist_note=edit.why if isinstance(edit, Missing) else None,
        line=_line(edit) if isinstance(edit, FileEdit) else None,
        takes_effect=EFFECTS[one.takes_effect],
        risk=RISKS[one.risk],
        by_hand=isinstance(one, CommandLine),
    )


def _example_value(one: Tunable, value: str | None) -> str:
    """The first that the tunable takes at all; empty where none is known."""
    alike = (shown for identity, shown in EXAMPLES.values() if type(tunable(identity)) is type(one))
    candidates = (value, "VALUE", *alike, *_ANY)
    return next((each for each in candidates if each is not None and one.check(each) is None), "")


def kind_words(one: Tunable) -> str:
    """What the kind's own module says that it is."""
    paragraph = _docstring(one).partition("\n\n")[0]
    return _plain(paragraph.partition(" — ")[2])


def form_words(one: Tunable) -> str:
    """``sysctl:KEY``: how ids of the kind are made."""
    return _plain(_docstring(one).partition(" — ")[0])


def more_words(one: Tunable) -> str:
    """The paragraphs that follow, or nothing."""
    return _plain(_docstring(one).partition("\n\n")[2])


def _docstring(one: Tunable) -> str:
    return inspect.cleandoc(sys.modules[type(one).__module__].__doc__ or "")


def _plain(text: str) -> str:
    words = " ".join(text.replace("``", "").split())
    return words[:1].upper() + words[1:] if " " in words else words


def _example_host(one: Tunable) -> Host:
    """A host on which this one can be kept: with LLT, and with a udev that knows its device."""
    udev = b"E:ID_SERIAL=SERIAL\nE:MD_UUID=UUID\n"
    files = {LLTTAB: b"", "/run/udev/data/b8:0": udev}
    files |= dict.fromkeys(("/usr/lib/tmpfiles.d/README", "/usr/lib/modules-load.d/README", "/etc/default/grub"), b"")
    if isinstance(one, BlockQueue | MdSetting):
        files[f"/sys/block/{one.device}/dev"] = b"8:0"
        files[one.path] = b""
    if isinstance(one, DriverValue | QueueValue | LinkTxqueuelen | LinkQdisc):
        files |= dict.fromkeys(("/usr/sbin/ethtool", "/usr/sbin/tc", "/usr/bin/sh"), b"")
        address = {"address": b"52:54:00:12:34:56", "addr_assign_type": b"0", "device/uevent": b""}
        files |= {f"/sys/class/net/{one.link}/{name}": text for name, text in address.items()}
    return Host(MemoryFiles(files), NoCommands())


def _read_by(probe: Probe) -> str:
    match probe:
        case ReadFile(path):
            return f"cat {shell_quote(path)}"
        case ReadCommand() | ReadEthtool():
            return " ".join(shell_quote(word) for word in probe.argv)
        case ReadIrqs(link):
            return f"grep {shell_quote(link)} /proc/interrupts"


def _set_by(one: Tunable, value: str, edit: FileEdit | Persisted | Missing) -> str:
    if isinstance(one, CommandLine):
        # A host of which nothing is known: what the plan says depends on its boot loader.
        return commands(_example_host(one), f"{one.word}={value}")
    reload = edit.reload if isinstance(edit, FileEdit) else ()
    steps = one.steps(value) or reload if value else ()
    return "; ".join(hand_command(step) for step in steps)


def _line(edit: FileEdit) -> str:
    match edit.form:
        case "sysctl":
            return f"{edit.key} = {edit.value}"
        case "llttab-flow":
            return f"set-flow {edit.key}:{edit.value}"
        case "section":
            return " ".join((f"[{edit.key.partition('/')[0]}]", edit.value))
        case "multipath":
            section, _, key = edit.key.rpartition("/")
            return f"{section} {{ {key} {edit.value} }}"
        case "shell" | "interfaces" | "netplan":
            return network_line(edit.form, edit.key, edit.value)
        case _:
            return line_setting(edit.form, edit.key, edit.value).line.replace("\n", "; ")
