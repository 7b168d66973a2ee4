"""``cmdline:WORD`` — a word of the kernel's command line. It is never changed here: a plan says how it would be.

The value is what follows the equals sign, or (set) for a word that has none. Where the running kernel has it already,
the plan says so; else it names the commands of this host's boot loader. A wrong word can keep a host from booting, and
nothing that runs afterwards could restore it. Words that name what the host starts, or that switch off what guards it,
are refused.
"""

from __future__ import annotations

import re

from advisor.facts.processors.cpulist import format_list, parse_list, read_list
from advisor.host import Host, Missing, Probe, ReadFile
from advisor.host.kernel_text import SET
from advisor.host.patterns import lazy_regex
from advisor.tunables.kind import Capture, Kind, StoredValue
from advisor.tunables.preflight import Preflight, refused_word

_BY_HAND = Missing("absent", "manual step: the boot loader's configuration")

_CPUS = "/sys/devices/system/cpu"
_PROGRAM_DIRECTORIES = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")


class CommandLine(StoredValue, frozen=True):
    word: str

    kind = "cmdline"
    takes_effect = "reboot"
    id_form = "cmdline:{self.word}"

    id_pattern = lazy_regex(r"(?P<word>[A-Za-z0-9_][\w.-]{0,80})", re.ASCII)
    id_hint = "write cmdline:intel_idle.max_cstate"
    accepted = lazy_regex(rf"{re.escape(SET)}|[\w.,:;/+@%=-]{{1,200}}", re.ASCII)
    wrong = f"is neither one word nor {SET}"

    @property
    def why_refused(self) -> str | None:
        return refused_word(self.word)

    @property
    def probe(self) -> Probe:
        return ReadFile("/proc/cmdline", f"cmdline:{self.word}")

    def explain_misfit(self, host: Host, value: str) -> str:
        lists = (read_list(host, f"{_CPUS}/{name}") for name in ("possible", "present"))
        there = next((found for found in lists if not isinstance(found, Missing)), ())
        # Flags come first: isolcpus=managed_irq,domain,2-15.
        parts = [part for part in value.split(",") if not re.fullmatch("[a-z_]+", part)]
        if self.word not in _CPU_LISTS or not there:
            return ""
        try:
            lacking = format_list(set(parse_list(",".join(parts))).difference(there))
        except ValueError:
            return ""
        return f"no CPU {lacking} is on this host: {_CPU_LISTS[self.word]}" if lacking else ""

    def make_edit(self, host: Host, value: str, *, profile: str) -> Missing:
        return _BY_HAND

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        word = self.word if after == SET else f"{self.word}={after}"
        if misfit := self.explain_misfit(host, after):
            return Preflight(refusal=misfit, state="blocked")
        now = "the kernel was started without it" if before == "(unset)" else f"the kernel was started with {before}"
        return Preflight(refusal=f"{now}; by hand: {boot_commands(host, word)}, then reboot", state="by-hand")


_NO_ISOLATION = "the kernel then ignores the whole word, or those CPUs of it (kernel/sched/isolation.c)"
_CPU_LISTS = {
    "isolcpus": _NO_ISOLATION,
    "nohz_full": _NO_ISOLATION,
    "rcu_nocbs": "the kernel then moves the callbacks of all CPUs, or ignores those (kernel/rcu/tree_nocb.h)",
    "irqaffinity": "interrupts have fewer CPUs than the list says, or none of it (kernel/irq/irqdesc.c)",
    "kthread_cpus": "the kernel then ignores the whole word, or those CPUs of it",
}
"""Words that list CPUs, and what becomes of a list with others than those of the host (lib/bitmap-str.c)."""


def boot_commands(host: Host, word: str) -> str:
    """What an administrator of this host types for a word of the command line, by the boot loader that it has."""
    # No value holds a quote; a semicolon may be in one.
    quoted = f"'{word}'" if ";" in word else word
    if host.exists("/run/ostree-booted"):
        return f"rpm-ostree kargs --append-if-missing={quoted}"
    if _has_program(host, "grubby"):
        return f"grubby --update-kernel=ALL --args={quoted}"
    if host.exists("/etc/default/grub"):
        made = "update-grub" if _has_program(host, "update-grub") else _grub_mkconfig(host)
        return f"add {quoted} to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, run {made}"
    if host.exists("/etc/kernel/cmdline"):
        made = "kernel-install add-all" if _has_program(host, "kernel-install") else "what makes its boot entries"
        return f"add {quoted} to /etc/kernel/cmdline, run {made}"
    for path in ("/boot/firmware/cmdline.txt", "/boot/cmdline.txt"):
        if host.exists(path):
            return f"add {quoted} to the one line of {path}"
    if host.exists("/boot/loader/entries") or host.exists("/efi/loader/entries"):
        return f"add {quoted} to the options of the entries in loader/entries"
    return f"add {quoted} to the kernel's command line in the boot loader, which is not known here"


def _grub_mkconfig(host: Host) -> str:
    for name in ("grub2", "grub"):
        if host.exists(f"/boot/{name}/grub.cfg"):
            return f"{name}-mkconfig -o /boot/{name}/grub.cfg"
    return "grub-mkconfig"


def _has_program(host: Host, program: str) -> bool:
    return any(host.exists(f"{directory}/{program}") for directory in _PROGRAM_DIRECTORIES)


KIND = Kind(
    name="cmdline",
    order=160,
    parse=CommandLine.parse,
    noun="boot parameter",
    examples=(("cmdline:intel_idle.max_cstate", "1"),),
    capture=Capture(
        files=(("/proc", ("cmdline",)), (_CPUS, ("possible", "present"))),
        marked=(
            *("/run/ostree-booted", "/etc/default/grub", "/etc/kernel/cmdline"),
            *("/boot/firmware/cmdline.txt", "/boot/cmdline.txt", "/boot/loader/entries", "/efi/loader/entries"),
            *("/boot/grub2/grub.cfg", "/boot/grub/grub.cfg"),
            *(
                f"{place}/{name}"
                for place in _PROGRAM_DIRECTORIES
                for name in ("grubby", "update-grub", "kernel-install")
            ),
        ),
        values={"cmdline:advisor": SET},
    ),
    written_by=frozenset(),
    by_hand=lambda host, word, value: boot_commands(host, f"{word}={value}"),
    harm="A wrong word can keep the host from booting; nothing of it acts before the next start.",
)
