"""``irq:N:affinity`` — the CPUs that an interrupt may run on, persisted in a unit of systemd that we write.

Numbers are assigned at each boot, so N is the number now. From then on an interrupt is known by its PCI function and by
the name that its driver gave it, as /proc/interrupts shows it; of several with one name, also by its place among them.
The unit advisor-interrupts.service has a line for each. It starts after the network and waits up to 20 s for interrupts
that their driver has not requested yet. It prints each that is missing, and each whose CPUs the kernel did not accept,
as it does with those that it manages itself; the boot goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from advisor.facts.processors.cpulist import format_list, parse_list
from advisor.facts.system.services import read_systemd
from advisor.host import Host, Missing, RunCommand
from advisor.host.irqs import DEVICES, FUNCTIONS, read_identity
from advisor.host.numbers import is_count
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.kind import Kind, Tunable, UnknownIdError
from advisor.tunables.link_persist import link_file_edit
from advisor.tunables.preflight import Preflight

UNIT = "/etc/systemd/system/advisor-interrupts.service"
SCRIPT = "/etc/systemd/system/advisor-interrupts.sh"
_TARGET = "/etc/systemd/system/multi-user.target.d/50-advisor-interrupts.conf"
LINK_OPTIONS_VERSION = 261
"""The first systemd with IRQAffinityPolicy= and IRQAffinityNUMA= in .link files (its pull request 40304)."""
_UDEVD = ("/usr/lib/systemd/systemd-udevd", "/lib/systemd/systemd-udevd")
_OLD_OPTION = b"\0Link.MTUBytes\0"
_NEW_OPTION = b"\0Link.IRQAffinityPolicy\0"
_LISTED = "X-Interrupts/"  # systemd ignores sections with this prefix (systemd.unit(5))
_LAST_LINE = "set_all"
# Others that set the affinity when they start come first, so that the values here are the last ones.
_UNIT_HEAD = f"""\
# Gives interrupts their CPUs at boot, as the last section lists them: PCI function, name of the interrupt, CPUs.
[Unit]
Description=CPUs of interrupts
After=network-online.target NetworkManager.service systemd-networkd.service network.service
After=irqbalance.service tuned.service google-guest-agent.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-/bin/sh {SCRIPT}
"""
_SCRIPT_HEAD = f"""\
#!/bin/sh
# Gives each interrupt that advisor-interrupts.service lists its CPUs, and prints those that are missing and those whose
# CPUs the kernel did not accept: sh {SCRIPT} [ROOT [SECONDS]]
# An interrupt that is not there is waited for, 20 s at most. Returns 1 where not all have their CPUs.
root=${{1-}} seconds=${{2-20}}
unit=$root{UNIT}
LC_ALL=C
export LC_ALL

"""
_SCRIPT_BODY = """
# set_each: a line for each interrupt that has not the CPUs listed
set_each() {
    known=
    sed '1,/^.X-Interrupts.$/d' "$unit" | while IFS='=' read -r place cpus; do
        case $place in *:*/*) ;; *) continue ;; esac
        name=${place#*/} at=1/1
        case $name in *'#'*) at=${name##*'#'} name=${name%'#'*} ;; esac
        device=/sys/bus/pci/devices/${place%%/*}
        [ "$device" = "$known" ] || listed=$(interrupts_of "$device")
        known=$device
        number=$(printf '%s\\n' "$listed" | pick_number "$name" "$at") || { echo "missing: $place"; continue; }
        file=$root/proc/irq/$number/smp_affinity_list
        live=
        read -r live < "$file"
        [ "$live" != "$cpus" ] || continue
        error=$( (printf '%s\n' "$cpus" > "$file") 2>&1)
        read -r live < "$file"
        [ "$live" = "$cpus" ] || echo "not accepted: $place: expected CPUs $cpus, found $live${error:+ (${error##*: })}"
    done
}

set_all() {
    read -r now _ < /proc/uptime
    end=$((${now%.*} + seconds))
    while :; do
        found=$(set_each)
        case $found in *missing:*) ;; *) break ;; esac
        read -r now _ < /proc/uptime
        [ "${now%.*}" -lt "$end" ] || break
        sleep 1
    done
    [ -z "$found" ] || printf '%s\n' "$found"
    [ -z "$found" ]
}

"""


class IrqAffinity(KernelFile, frozen=True):
    number: int

    id_form = "irq:{self.number}:affinity"
    path_form = "/proc/irq/{self.number}/smp_affinity_list"

    @classmethod
    def parse(cls, rest: str) -> IrqAffinity:
        found = re.fullmatch(r"(0|[1-9]\d{0,6}):affinity", rest, re.ASCII)
        if not found:
            raise UnknownIdError(rest, kind="irq", hint="write irq:42:affinity")
        return cls(int(found[1]))

    def check_value(self, value: str) -> str | None:
        try:
            cpus = parse_list(value)
        except ValueError:
            return "is not a list of CPUs such as 0-3,8"
        if not cpus:
            return "names no CPU"
        # What reads otherwise than it was written would count as not set.
        form = format_list(cpus)
        return None if value == form else f"is not as the kernel prints the list of these CPUs: write {form}"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        if not host.is_dir("/run/systemd/system"):
            return Missing(
                "absent",
                "interrupt numbers are assigned at each boot, and no systemd runs here that would set it again",
            )
        identity = read_identity(host, self.number)
        if identity is None:
            return Missing(
                "absent", "interrupt numbers are assigned at each boot, and no PCI function has a name for this one"
            )
        device, name, place = identity[:3]
        key = f"{device.rpartition('/')[2]}/{name}" + ("" if place == "1/1" else f"#{place}")
        reload = (RunCommand(("systemctl", "daemon-reload")),)
        script = FileEdit(
            SCRIPT, "word", _LAST_LINE, "", f"{_SCRIPT_HEAD}{FUNCTIONS}{_SCRIPT_BODY}{_LAST_LINE}\n".encode()
        )
        wants = f"Wants={UNIT.rpartition('/')[2]}"
        pulled = FileEdit(_TARGET, "section", "Unit/", wants, reload=reload)
        line = f"{key}={value}"
        also = (script, pulled, *_link_edits(host, device, value))
        return FileEdit(UNIT, "section", _LISTED, line, _UNIT_HEAD.encode(), reload=reload, also=also)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        refusal = None if before == after else explain_absent_cpus(host, after)
        return Preflight(refusal=refusal, identity=read_identity(host, self.number))


def explain_absent_cpus(host: Host, value: str) -> str | None:
    """Why no interrupt of this host can run on a list of CPUs: one does not exist, or none is online. None where it
    can, and where the host does not say which CPUs it has."""
    online = host.read("/sys/devices/system/cpu/online")
    present = host.read("/sys/devices/system/cpu/present")
    present = online if isinstance(present, Missing) else present
    try:
        wanted, there = set(parse_list(value)), set() if isinstance(present, Missing) else set(parse_list(present))
        running = there if isinstance(online, Missing) else set(parse_list(online))
    except ValueError:
        return None
    if there and wanted - there:
        absent = format_list(wanted - there)
        return f"names CPU {absent}, which this host does not have: it has CPUs {present}"
    if running and not wanted & running:
        return f"names no CPU that is online: CPUs {online} are"
    return None


def _link_edits(host: Host, device: str, value: str) -> tuple[FileEdit, ...]:
    """The .link file by which udev puts the interrupts of a link on CPUs of its node whenever the link appears.

    It can say neither which interrupt nor more than one CPU for each (systemd.link(5)), so only where the whole node is
    wanted, and in addition to the unit: what it sets is of the node from the start, and the unit makes it exact.
    """
    links = host.names(f"{device}/net")
    node = host.read_int(f"{device}/numa_node")
    if len(links) != 1 or isinstance(node, Missing) or node < 0 or not _has_link_options(host):
        return ()
    cpus = host.read(f"/sys/devices/system/node/node{node}/cpulist")
    if isinstance(cpus, Missing) or parse_list(cpus) != parse_list(value):
        return ()
    edit = link_file_edit(host, links[0], "IRQAffinityPolicy=spread IRQAffinityNUMA=local")
    return () if isinstance(edit, Missing) else (edit,)


@lru_cache(maxsize=1)
def _has_link_options(host: Host) -> bool:
    """Whether udev knows the options; asked once for all interrupts of a plan. One that does not ignores them.

    The program of udevd holds the names of all options that it looks up, so that distributions that take options over
    into earlier versions, or leave them out, are judged rightly. Nothing is run: `udevadm test-builtin net_setup_link`
    names an option that it does not know, but of a file that lies where udev itself reads it meanwhile.
    """
    for path in _UDEVD:
        program = host.read_bytes(path)
        if isinstance(program, bytes) and _OLD_OPTION in program:
            return _NEW_OPTION in program
    found = read_systemd(host)
    return found is not None and found.version >= LINK_OPTIONS_VERSION


def _example_files(one: Tunable) -> Mapping[str, bytes]:
    """It is that of a link's queue."""
    number = one.id.split(":")[1]
    return {
        "/run/systemd/system/x": b"",
        f"{DEVICES}/0000:3b:00.0/msi_irqs/{number}": b"msix\n",
        f"/sys/kernel/irq/{number}/actions": b"eth0-TxRx-3\n",
    }


KIND = Kind(
    name="irq",
    order=30,
    parse=IrqAffinity.parse,
    devices=lambda host: (name for name in host.names("/proc/irq") if is_count(name)),
    noun="interrupt",
    examples=(("irq:42:affinity", "0-3"),),
    capture=None,
    written_by=frozenset({"tuned", "irqbalance"}),
    example_files=_example_files,
)
