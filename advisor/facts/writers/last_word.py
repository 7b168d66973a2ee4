"""Who has the last word on a tunable, and what the next boot gives it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from advisor.facts.settings.sysctl import (
    KERNEL_FILES,
    SysctlOrigin,
    is_pattern,
    origins,
    read_sysctl_sources,
    reads_later,
)
from advisor.facts.settings.value import KEY as RESERVED_PORTS
from advisor.facts.settings.value import kernel_number, parse_ports
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.facts.writers.commands import ANY
from advisor.facts.writers.devices import (
    AGENTS,
    BEFORE_UDEV,
    read_late_modules,
    read_multipath,
    read_tmpfiles,
    read_udev_rules,
)
from advisor.facts.writers.networks import read_leases, read_link_files, read_manager_commands, read_managers
from advisor.facts.writers.programs import (
    EARLY,
    PROGRAMS,
    LastWord,
    Place,
    Write,
    Writer,
    read_cloud_init,
    read_command_line,
    read_cron,
    read_hooks,
    read_irqbalance,
    read_open_vswitch,
    read_rc_local,
    read_units,
)
from advisor.facts.writers.tuners import read_saptune, read_tuned, read_tuned_before_files
from advisor.host import Host

# The one table of writers, in the order of time: what acts later has the last word.


def _by_origin(host: Host) -> Iterable[Place]:
    """Sysctl files are facts of their own (``sysctl_origin``): who wins among them is more than the order of time."""
    return ()


SYSCTL_FILES = "systemd-sysctl"
KERNEL_PACKAGE = "the sysctl file of the kernel's package"
PACKAGE_FILES = "a sysctl file of a package"
LATE_MODULES = "a module that is loaded later"
_MANAGERS = "the link's network manager"
UDEV = "udev"
TMPFILES = "systemd-tmpfiles"
_LINK_FILES = "a .link file"
_UNITS = "a service"
_TUNED = "TuneD"
_LINE = "change it there"
_BAN = (
    "--banirq=NUMBER in its options leaves one as it is set, until its number changes at the next boot; a "
    "--policyscript that prints ban=true for its device lasts"
)
WRITERS: tuple[Writer, ...] = (
    Writer("the kernel's command line", "before all else", read_command_line, "change it in the boot loader"),
    Writer(KERNEL_PACKAGE, "before the files of sysctl.d", _by_origin, "write another file in /etc/sysctl.d"),
    Writer(PACKAGE_FILES, "early at boot", _by_origin, "write another file in /etc/sysctl.d"),
    Writer("TuneD, before the files of /etc/sysctl.d", "when it starts", read_tuned_before_files, _LINE, True),
    Writer(SYSCTL_FILES, "early at boot", _by_origin, _LINE),
    Writer(TMPFILES, "early at boot", read_tmpfiles, _LINE),
    *EARLY,
    Writer(LATE_MODULES, "when it is loaded", read_late_modules, "name it in a file of /etc/modules-load.d"),
    Writer(_LINK_FILES, "when udev names the link", read_link_files, _LINE),
    *BEFORE_UDEV,
    Writer(UDEV, "when the device appears", read_udev_rules, _LINE),
    Writer("multipathd", "when it makes the map", read_multipath, "change it there, and multipathd reconfigure", True),
    Writer("Open vSwitch", "when it starts", read_open_vswitch, "ovs-vsctl set Interface NAME mtu_request=N", True),
    Writer(_MANAGERS, "when it brings the link up, after udev", read_managers, _LINE),
    Writer("a command of ifupdown", "when the link is up", read_manager_commands, _LINE),
    Writer("a hook of the network manager", "when the link is up", read_hooks, _LINE),
    Writer("dhclient", "with each lease", read_leases, "supersede interface-mtu in its dhclient.conf", True),
    Writer("cloud-init", "at each boot", read_cloud_init, _LINE),
    Writer(_UNITS, "when it starts", read_units, _LINE),
    Writer("rc.local", "at the end of the boot", read_rc_local, _LINE),
    Writer(_TUNED, "when it starts", read_tuned, _LINE, True),
    Writer("saptune", "when it starts", read_saptune, "write another value into /etc/saptune/override", True),
    Writer("irqbalance", "all the time", read_irqbalance, _BAN, True),
    *PROGRAMS,
    *AGENTS,
    Writer("cron", "at its times", read_cron, _LINE),
)
RANKS = {row.name: number for number, row in enumerate(WRITERS)}


_PLACES: tuple[tuple[str, str], ...] = (
    (r"/etc/sysctl\.(d/.*|conf)", SYSCTL_FILES),
    (r".*/modules-load\.d/.*", LATE_MODULES),
    (r".*/tmpfiles\.d/.*", TMPFILES),
    (r".*\.link(\.d/.*)?", _LINK_FILES),
    (r".*/udev/rules\.d/.*", UDEV),
    (r"/etc/(NetworkManager|netplan|network|sysconfig/network(-scripts)?|systemd/network)/.*", _MANAGERS),
    (r"/etc/systemd/system/.*", _UNITS),
    (r"/etc/tuned/.*", _TUNED),
)


def rank_of(path: str) -> int:
    """Return the place in the order of time of what reads a file; that of the kernel's command line for all others."""
    return next((RANKS[name] for pattern, name in _PLACES if re.fullmatch(pattern, path)), 0)


def read_writes(host: Host) -> tuple[Write, ...]:
    """Return what each writer of the table writes on this host, sysctl files left out, in the order of time."""
    return tuple(write for rank, row in enumerate(WRITERS) for write in _writes_of(host, rank, row))


def _writes_of(host: Host, rank: int, row: Writer) -> Iterator[Write]:
    for one in row.read(host):
        yield Write(
            tunable=printable(one.tunable),
            value=None if one.value is None or ANY in one.tunable else printable(" ".join(one.value.split())),
            writer=one.by or row.name,
            rank=rank,
            file=None if one.file is None else printable(one.file),
            line=one.line,
            acts=row.acts,
            change=row.change,
            is_program=row.is_program,
        )


OURS = "/etc/sysctl.d/90-advisor"
# Of one writer's files that with the later name has the last word; of tmpfiles.d the first line for a file counts.
_SORTED: Mapping[int, Callable[[str, str], bool]] = {
    RANKS[SYSCTL_FILES]: operator.gt,
    RANKS[UDEV]: operator.gt,
    RANKS[TMPFILES]: operator.lt,
}


class SetsValues(Protocol):
    """What the questions are asked of: the facts of a scan, or `BootSettings`."""

    @property
    def sysctl_origin(self) -> Mapping[str, SysctlOrigin]: ...

    @property
    def writes(self) -> tuple[Write, ...]: ...


class BootSettings(msgspec.Struct, frozen=True):
    """What sets some tunables at boot, read without the rest of a scan."""

    sysctl_origin: Mapping[str, SysctlOrigin]
    writes: tuple[Write, ...]


def read_boot_settings(host: Host, tunables: Iterable[str]) -> BootSettings:
    """Return what sets these tunables at boot."""
    keys = [one.removeprefix("sysctl:") for one in tunables if one.startswith("sysctl:")]
    host = host.remembering()
    return BootSettings(origins(read_sysctl_sources(host, Unknowns()), keys) if keys else {}, read_writes(host))


def last_write(found: SetsValues, tunable: str) -> Write | None:
    """Return what writes a tunable last; None where nothing that is known here does."""
    later = [one for one in found.writes if one.covers(tunable)]
    # Of one writer's lines the last counts.
    return max(
        enumerate([*_of_files(found, tunable), *later]), key=lambda one: (one[1].rank, one[0]), default=(0, None)
    )[1]


def _of_files(found: SetsValues, tunable: str) -> tuple[Write, ...]:
    origin = found.sysctl_origin.get(tunable.removeprefix("sysctl:")) if tunable.startswith("sysctl:") else None
    if origin is None:
        return ()
    line = origin.voided_by or origin.winner
    value = None if line.rejected is not None or line.excludes else " ".join(line.value.split())
    rank = RANKS[
        KERNEL_PACKAGE
        if line.path.startswith(KERNEL_FILES)
        else PACKAGE_FILES
        if line.path.startswith(("/usr/", "/lib/"))
        else SYSCTL_FILES
    ]
    writer = "advisor" if line.path.startswith(OURS) else SYSCTL_FILES
    row = WRITERS[rank]
    acts = f"{row.acts}, after advisor's own file" if writer != "advisor" and reads_later(line.path, OURS) else row.acts
    acts += "" if line.file == line.path else f", as {line.path}"
    if line.rejected is not None:
        # There is then no value at all: systemd-sysctl keeps the last line for a key, and does not write another.
        acts = f"to a value that the kernel refuses ({line.rejected}), {acts}"
    return (Write(f"sysctl:{line.key}", value, writer, rank, line.file, line.line, acts, row.change),)


def comes_after(write: Write, path: str) -> bool:
    """Return whether a write acts after what the file at ``path`` says, another one than its own."""
    rank, name = rank_of(path), path.rpartition("/")[2]
    if write.file == path:
        # An edit of the file finds its own lines there: the number in a command of ifupdown, for one.
        return False
    # TuneD reads these files again: among them their names decide.
    is_read_again = write.is_program and write.file is not None and rank_of(write.file) == RANKS[SYSCTL_FILES] == rank
    is_of_package = (write.rank, rank) == (RANKS[PACKAGE_FILES], RANKS[SYSCTL_FILES])
    if write.rank != rank and not is_read_again and not is_of_package:
        return write.rank > rank
    # What names the key exactly goes before every pattern; a manager's file is the one that is edited.
    is_exact = not is_pattern(write.tunable) or rank != RANKS[SYSCTL_FILES]
    compare = _SORTED.get(rank)
    return is_exact and compare is not None and compare((write.file or "").rpartition("/")[2], name)


def overriding_write(found: SetsValues, tunable: str, value: str, path: str | None) -> Write | None:
    """Return what gives a tunable another value after the file at ``path`` has given it ``value``; None where nothing
    does. Without a file, the last writer, whatever it says."""
    write = last_write(found, tunable)
    if write is None or path is None:
        return write
    is_same = write.value is not None and is_as_said(tunable, value, write.value)
    return write if comes_after(write, path) and not is_same else None


def rival_writes(found: SetsValues, tunable: str, value: str, path: str | None) -> tuple[Write, ...]:
    """Return what programs give a tunable otherwise, and what others may, after the file at ``path`` or, without one,
    at all."""
    return tuple(
        one
        for one in found.writes
        if (one.is_program or one.value is None)
        and one.covers(tunable)
        and (path is None or comes_after(one, path))
        and not (one.value is not None and is_as_said(tunable, value, one.value))
    )


def last_word(found: SetsValues, tunable: str) -> LastWord | None:
    """Return who sets a tunable last, with the place and the value; None where nothing that is known here does."""
    write = last_write(found, tunable)
    return None if write is None else write.word


def next_boot(found: SetsValues, tunable: str) -> str | None:
    """Return a tunable's value after the next boot; None where that is not known, or the kernel's own."""
    write = last_write(found, tunable)
    return None if write is None else write.value


def is_as_said(key: str, live: str, said: str) -> bool:
    """Return whether a live sysctl is what a line says: numbers to any base, and as many of them as it gives."""
    has, wants = live.split(), said.split()
    numbers = [(kernel_number(one), kernel_number(other)) for one, other in zip(has, wants, strict=False)]
    if has and wants and all(None not in pair for pair in numbers):
        return all(one == other for one, other in numbers)
    return has == wants or (key == RESERVED_PORTS and parse_ports(live) == parse_ports(said))
