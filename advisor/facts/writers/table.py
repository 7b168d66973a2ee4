"""The one table of writers, in the order of time: what acts later has the last word.

The kernel's own default comes before all of them. Sources: systemd-sysctl.service(8), sysctl.d(5), udev(7),
systemd.link(5), tmpfiles.d(5), and what each reader names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from advisor.facts.printable import printable
from advisor.facts.writers.agents import AGENTS, BEFORE_UDEV
from advisor.facts.writers.commands import ANY
from advisor.facts.writers.devices import read_multipath, read_tmpfiles, read_udev_rules
from advisor.facts.writers.late_modules import read_late_modules
from advisor.facts.writers.networks import read_leases, read_link_files, read_manager_commands, read_managers
from advisor.facts.writers.programs import EARLY, PROGRAMS, read_command_line, read_irqbalance, read_open_vswitch
from advisor.facts.writers.record import Place, Write, Writer
from advisor.facts.writers.scripts import read_cloud_init, read_cron, read_hooks, read_rc_local, read_units
from advisor.facts.writers.tuners import read_saptune, read_tuned, read_tuned_before_files
from advisor.host import Host


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
