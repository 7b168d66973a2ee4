"""An interrupt by the PCI function that requested it and the name that the driver gave it: numbers change at each boot.

An identity is ``("/sys/bus/pci/devices/0000:3b:00.0", "eth0-TxRx-3", "1/1", "boot=…")``: the function, the name in
plain ASCII, which one it is of those that bear the name, by number, and the boot that it was read in. Where none bears
it, it is the only one whose name is the same but for its first number: a drive that was nvme0 may be nvme1 after a
boot. Where there is none of those either, as a link that is down has released them, it has its number until the next
boot.
`FUNCTIONS` is the same in sh, for the rollback scripts and for the boot.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from advisor.errors import CommandError
from advisor.host.missing import Identity, Missing, Reader
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.host.steps import SetIrqs, WriteFile

DEVICES = "/sys/bus/pci/devices"
AFFINITY = "/proc/irq/{}/smp_affinity_list"
_AFFINITY_PATH = lazy_regex(r"/proc/irq/([0-9]{1,9})/smp_affinity_list")
_ODD_BYTE = lazy_regex(rb"[^A-Za-z0-9_.:@,+/()-]")

FUNCTIONS = """\
# interrupts_of DEVICE: a line NAME NUMBER for each interrupt of a PCI function that a driver has requested, by number
interrupts_of() {
    numbers=
    for vector in "$root$1"/msi_irqs/*; do
        vector=${vector##*/}
        case $vector in *[!0-9]* | '') ;; *) numbers="$numbers $vector" ;; esac
    done
    [ -n "$numbers" ] || [ ! -r "$root$1/irq" ] || read -r numbers < "$root$1/irq" || :
    [ "$numbers" != 0 ] || numbers=
    for number in $numbers; do
        action=
        if [ -e "$root/sys/kernel/irq/$number/actions" ]; then
            IFS= read -r action < "$root/sys/kernel/irq/$number/actions" || :
        else
            action=$(awk -v wanted="$number:" '$1 == wanted { print $NF; exit }' "$root/proc/interrupts" 2>/dev/null)
        fi
        [ -z "$action" ] || printf '%s %s\\n' "$number" "$action"
    done | sort -k1,1n | awk '
    { number = $1; sub(/^[0-9]+ /, ""); gsub("[^A-Za-z0-9_.:@,+/()-]", "_"); print $0, number }'
}

# pick_number NAME AT/OF: the number of an interrupt in what interrupts_of prints
pick_number() {
    awk -v name="$1" -v at="${2%/*}" -v of="${2#*/}" '
    function general(text) { sub(/[0-9]+/, "#", text); return text }
    function is_numbered(text) { sub(/@.*/, "", text); sub(/[0-9]+/, "", text); return text ~ /[0-9]/ }
    $1 "" == name "" { same[++count] = $2 }
    general($1) == general(name) { like = $2; alike++ }
    END {
        if (count == of + 0 && at in same) print same[at]
        else if (!count && of + 0 == 1 && alike == 1 && (NR == 1 || is_numbered(name))) print like
        else exit 1
    }'
}

# number_of DEVICE NAME AT/OF: the number that an interrupt has now
number_of() {
    interrupts_of "$1" | pick_number "$2" "$3"
}
"""
"""Functions of sh; ``$root`` is the directory that stands for /, empty for the running host."""


def read_identity(host: Reader, number: int) -> Identity | None:
    """What an interrupt is known by; None where no PCI function has it, or no driver has requested it."""
    device = host.read_once("devices of interrupts", lambda: _map_devices(host)).get(number)
    named = _list_interrupts(host, device) if device else []
    own = next((one for one, found in named if found == number), None)
    if device is None or own is None:
        return None
    same = [found for one, found in named if one == own]
    boot = _boot_mark(host)
    return (device, own, f"{same.index(number) + 1}/{len(same)}", *([boot] if boot else []))


def _map_devices(host: Reader) -> dict[int, str]:
    """PCI functions by number; of those that share a line the first one counts."""
    devices = [f"{DEVICES}/{name}" for name in host.names(DEVICES)]
    return {number: device for device in reversed(devices) for number in _list_numbers(host, device)}


def is_interrupt(path: str) -> bool:
    """Whether it is the file of an interrupt's affinity."""
    return _AFFINITY_PATH.fullmatch(path) is not None


def locate_interrupt(host: Reader, path: str, identity: Identity) -> str | Missing:
    """The file of the affinity of the interrupt, by the number that it has now: ``path`` itself where that is since the
    same boot a vector of the function that no driver has requested, as of a link that is down. It keeps its CPUs."""
    device, name, place, *marks = identity
    at, _, count = place.partition("/")
    own = path.split("/")[3]
    # Within a boot its own number answers for it: a function may have hundreds, and each is asked for each of them.
    if count == "1" and marks and marks[0] == _boot_mark(host) and _has_interrupt(host, device, own, name):
        return path
    named = _list_interrupts(host, device)
    same = [number for one, number in named if one == name]
    if len(same) == int(count):
        return AFFINITY.format(same[int(at) - 1])
    alike = [number for one, number in named if _general_name(one) == _general_name(name)]
    # A number that is the only one of a name may be the queue's and not the device's.
    is_numbered = re.search(r"[0-9]", re.sub(r"[0-9]+", "", name.partition("@")[0], count=1)) is not None
    if not same and count == "1" and len(alike) == 1 and (len(named) == 1 or is_numbered):
        return AFFINITY.format(alike[0])
    is_free = host.exists(f"{device}/msi_irqs/{own}") and int(own) not in {number for _, number in named}
    if not same and is_free and marks and marks[0] == _boot_mark(host):
        return path
    return Missing("unreadable", f"{device.rpartition('/')[2]} has no interrupt {name} now, or others of that name")


def is_gone_since_boot(host: Reader, identity: Identity) -> bool:
    """Whether the host has booted since, and no driver has requested an interrupt of that name: its CPUs are gone."""
    device, name, _, *marks = identity
    boot = _boot_mark(host)
    if not marks or not boot or marks[0] == boot:
        return False
    return all(_general_name(one) != _general_name(name) for one, _ in _list_interrupts(host, device))


def _boot_mark(host: Reader) -> str:
    text = host.read("/proc/sys/kernel/random/boot_id")
    return "" if isinstance(text, Missing) or not re.fullmatch(r"[!-~]+", text) else f"boot={text}"


def _list_numbers(host: Reader, device: str) -> list[int]:
    vectors = sorted(int(name) for name in host.names(f"{device}/msi_irqs") if is_count(name))
    line = "" if vectors else host.read(f"{device}/irq")
    # Interrupt 0 in that file stands for none.
    return [int(line)] if isinstance(line, str) and is_count(line) and int(line) != 0 else vectors


def _list_interrupts(host: Reader, device: str) -> list[tuple[str, int]]:
    """Names and numbers of those that a driver has requested, by number."""
    return host.read_once(f"interrupts of {device}", lambda: _read_interrupts(host, device))


def _read_interrupts(host: Reader, device: str) -> list[tuple[str, int]]:
    named = ((_read_name(host, number), number) for number in _list_numbers(host, device))
    return [(name, number) for name, number in named if name]


def _has_interrupt(host: Reader, device: str, number: str, name: str) -> bool:
    """Whether a function has an interrupt of this number and name."""
    is_there = host.exists(f"{device}/msi_irqs/{number}") or host.read(f"{device}/irq") == number
    return is_there and _read_name(host, int(number)) == name


def _read_name(host: Reader, number: int) -> str:
    """What its driver calls an interrupt; empty where none has requested it."""
    actions = host.read_bytes(f"/sys/kernel/irq/{number}/actions")
    if isinstance(actions, Missing):
        interrupts = host.read_bytes("/proc/interrupts")
        lines = [] if isinstance(interrupts, Missing) else [line.split() for line in interrupts.split(b"\n")]
        actions = next((words[-1] for words in lines if words[:1] == [b"%d:" % number]), b"")
    return _ODD_BYTE.sub(b"_", actions.partition(b"\n")[0]).decode("ascii")


def _general_name(name: str) -> str:
    return re.sub(r"[0-9]+", "#", name, count=1)


# The interrupts of a link and where they may run, as one line that outlives their numbers.

NAMELESS = b"-"
_ODD_ACTION_BYTE = lazy_regex(rb"[^!-<>-~]")
_CPUS = lazy_regex(r"[0-9,-]+", re.ASCII)


class LinkIrq(NamedTuple):
    """One interrupt: ``name`` in printable ASCII, ``cpus`` as the kernel lists them."""

    name: str
    number: int
    cpus: str


def link_irqs(host: Reader, link: str) -> tuple[LinkIrq, ...] | Missing:
    """The message-signalled interrupts of the PCI function that carries a link, by name and number."""
    # The directory of the PCI function: the link's device, or what a virtio or auxiliary device is part of.
    device = host.real(f"/sys/class/net/{link}/device")
    if isinstance(device, Missing):
        place = None
    else:
        # Every PCI function has a class; the bridge above one has vectors of its own, which are not the link's.
        place = device if host.exists(f"{device}/class") else device.rpartition("/")[0]
    names = () if place is None else host.names(f"{place}/msi_irqs")
    numbers = [int(name) for name in names if re.fullmatch(r"[0-9]{1,9}", name)]
    if not numbers:
        return Missing("absent", "it has no message-signalled interrupts of its own")
    found = []
    for number in numbers:
        cpus = host.read(f"/proc/irq/{number}/smp_affinity_list")
        cpus = cpus if isinstance(cpus, Missing) else cpus.strip(" \t")
        if isinstance(cpus, Missing) or not _CPUS.fullmatch(cpus):
            why = cpus.why if isinstance(cpus, Missing) else "not a list of CPUs"
            return Missing("unreadable", f"the affinity of interrupt {number}: {why}")
        actions = host.read_bytes(f"/sys/kernel/irq/{number}/actions")
        if isinstance(actions, Missing):
            interrupts = host.read_bytes("/proc/interrupts")
            label = f"{number}:".encode()
            lines = [] if isinstance(interrupts, Missing) else [line.split() for line in interrupts.split(b"\n")]
            actions = next((words[-1] for words in lines if words[:1] == [label]), NAMELESS)
        found.append(
            LinkIrq(_ODD_ACTION_BYTE.sub(b"_", actions.rstrip(b"\n") or NAMELESS).decode("ascii"), number, cpus)
        )
    return tuple(sorted(found))


def irqs_line(found: tuple[LinkIrq, ...] | Missing) -> str | Missing:
    """As the head of this module shows it."""
    return found if isinstance(found, Missing) else " ".join(f"{one.name}={one.cpus}" for one in found)


def set_irqs(host: Reader, step: SetIrqs, do: Callable[[WriteFile], None]) -> None:
    """Give each interrupt its affinity, by ``do``. Raises CommandError with nothing written where they are not
    the same ones, or with the kernel's words for the first that it refused, after all others."""
    found = link_irqs(host, step.link)
    if isinstance(found, Missing):
        raise CommandError(found.why)
    wanted = [word.rpartition("=")[::2] for word in step.affinities]
    if len(found) != len(wanted):
        raise CommandError(f"it has {len(found)} interrupts now and had {len(wanted)}")
    if [one.name for one in found] != [name for name, _ in wanted]:
        raise CommandError("its interrupts have other names than before, so that none can be identified")
    refused: list[CommandError] = []
    for one, (_, cpus) in zip(found, wanted, strict=True):
        try:
            if one.cpus != cpus:
                do(WriteFile(f"/proc/irq/{one.number}/smp_affinity_list", cpus))
        except CommandError as error:
            refused.append(error)
    if refused:
        raise refused[0]
