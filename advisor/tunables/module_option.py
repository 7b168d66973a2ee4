"""``module:NAME:option.PARAMETER`` — what modprobe gives a kernel module when it is loaded, in modprobe.d(5).

Nothing changes until the module is loaded again, as a rule at the next boot. A module that the initramfs loads has the
option once that is rebuilt (update-initramfs -u, dracut -f). (unset) stands for a parameter that is not given. Of a
module that is built into the kernel a plan has cmdline:NAME.PARAMETER in its place: modprobe.d is never read for it.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, Probe, ReadCommand
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_modules import NAME, has_index, is_built_in, read_dependencies, read_loaded
from advisor.tunables.own_files import with_last_word
from advisor.tunables.preflight import Preflight
from advisor.tunables.programs import refused_parameter
from advisor.tunables.tunable import RefusedIdError, StoredValue, UnknownIdError


def wrong_option(value: str) -> str | None:
    """Why a value cannot stand in a line of modprobe.d: it is one word there."""
    fits = re.fullmatch(r"[\w.,:/+@%=-]{1,200}", value, re.ASCII)
    return None if fits else "is not one word of letters, digits and .,:/+@%=-"


def boot_word(name: str, parameter: str) -> str:
    """The id of the kernel's command line that gives a module its option which the kernel itself holds."""
    return f"cmdline:{name}.{parameter}"


def option_edit(host: Host, name: str, parameter: str, value: str, *, profile: str) -> FileEdit:
    """The line of modprobe.d that gives the parameter its value."""
    header = f"# Options of kernel modules of the profile {profile}.\n"
    # Files are read by name, whatever their directory, and the last option counts: systemd.conf has some of its own.
    path = f"/etc/modprobe.d/zz-advisor-{profile}.conf"
    edit = FileEdit(path, "module-option", f"{name} {parameter}", value, header.encode())
    return with_last_word(host, edit, profile)


class ModuleOption(StoredValue, frozen=True):
    name: str
    parameter: str

    takes_effect = "reboot"
    id_form = "module:{self.name}:option.{self.parameter}"

    @classmethod
    def parse(cls, rest: str) -> ModuleOption:
        found = re.fullmatch(r"([A-Za-z0-9_]+):option\.([A-Za-z0-9_]{1,60})", rest, re.ASCII)
        if not found or not NAME.fullmatch(found[1]):
            raise UnknownIdError(rest, kind="module", hint="write module:nvme_core:option.multipath")
        why = refused_parameter(found[1], found[2])
        if why:
            raise RefusedIdError(rest, kind="module", hint=why)
        return cls(found[1], found[2])

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        # The id that was written may have hyphens.
        return (boot_word(self.name, self.parameter),) if is_built_in(host, self.name) else (self.id,)

    @property
    def probe(self) -> Probe:
        return ReadCommand(("modprobe", "--showconfig"), f"module-option:{self.name}:{self.parameter}")

    def check_value(self, value: str) -> str | None:
        return wrong_option(value)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return option_edit(host, self.name, self.parameter, value, profile=profile)

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        if has_index(host) and read_dependencies(host, self.name) is None and self.name not in read_loaded(host):
            return Preflight(refusal="this kernel has no such module", state="not-applicable")
        again = "where the initramfs loads it, rebuild that first (update-initramfs -u, dracut -f, mkinitrd)"
        return Preflight(notes=(f"{self.id} takes effect when {self.name} is loaded again; {again}",))
