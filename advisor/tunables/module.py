"""Kind ``module:``: which kernel modules are loaded, and with which parameters."""

from __future__ import annotations

import re

from advisor.facts.writers.devices import BRINGS
from advisor.host import Host, Missing, Probe, ReadCommand, ReadFile, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile, tmpfiles_edit, with_last_word
from advisor.tunables.kind import Capture, Kind, StoredValue, Tunable
from advisor.tunables.preflight import (
    BUILT_IN,
    NAME,
    Preflight,
    has_index,
    is_built_in,
    loads_modules,
    module_name,
    read_dependencies,
    read_loaded,
    refused_parameter,
    removal_command,
)

_DIRECTORIES = ("/etc/modules-load.d", "/usr/lib/modules-load.d", "/lib/modules-load.d", "/run/modules-load.d")


class KernelModule(Tunable, frozen=True):
    """``module:NAME`` — whether a kernel module is loaded; the value is loaded. Persisted in modules-load.d(5).

    NAME is as /proc/modules has it, with underscores. On rollback the module goes, with those that it brought along, if
    nothing uses them by then and there is no link of their making; one that was there before stays. What is built into
    the kernel is there already.
    """

    name: str

    kind = "module"
    id_form = "module:{self.name}"
    id_pattern = lazy_regex(rf"(?P<name>{NAME})", re.ASCII)
    id_hint = "write module:nf_conntrack or module:nf_conntrack:PARAMETER"
    accepted = lazy_regex("(un)?loaded")
    wrong = "is not loaded"

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        # The id that was written may have hyphens.
        return (self.id,)

    @property
    def probe(self) -> Probe:
        return ReadFile("/proc/modules", f"module:{self.name}")

    def explain_given(self, host: Host, wanted: str) -> str | None:
        is_given = wanted == "loaded" and self.name not in read_loaded(host) and is_built_in(host, self.name)
        return BUILT_IN if is_given else None

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        return missing if loads_modules(host) else Missing("absent", "this kernel loads no modules")

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (RunCommand(("modprobe", self.name)) if value == "loaded" else removal_command(self.name),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        # systemd reads the directory as soon as there is one.
        if not any(host.is_dir(directory) for directory in (*_DIRECTORIES, "/run/systemd/system")):
            return Missing("absent", "there is no modules-load.d here, so nothing would load it at boot")
        header = f"# Kernel modules of the profile {profile}.\n"
        return FileEdit(f"/etc/modules-load.d/advisor-{profile}.conf", "word", self.name, "", header.encode())

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if after == "unloaded":
            why = "what was loaded before is not taken away" if before == "loaded" else "is not loaded"
            return Preflight(refusal=why, state="not-applicable" if before == "loaded" else "in-place")
        if before == "loaded":
            return Preflight()
        others = read_dependencies(host, self.name)
        if others is None:
            if not has_index(host):
                return Preflight(refusal="the list of its modules cannot be read here", state="unknown")
            return Preflight(refusal="this kernel has no such module", state="not-applicable")
        brought = [one for one in others if one not in read_loaded(host) and not is_built_in(host, one)]
        notes = tuple(f"{one}: {BRINGS[one]}" for one in (self.name, *brought) if one in BRINGS)
        return Preflight(undo=(removal_command(self.name, *brought),), notes=notes)


OPTION_WORD = lazy_regex(r"[\w.,:/+@%=-]{1,200}", re.ASCII)
"""A value in a line of modprobe.d: it is one word there."""
WRONG_OPTION = "is not one word of letters, digits and .,:/+@%=-"


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
    """``module:NAME:option.PARAMETER`` — what modprobe gives a kernel module when it is loaded, in modprobe.d(5).

    Nothing changes until the module is loaded again, as a rule at the next boot. A module that the initramfs loads has
    the option once that is rebuilt (update-initramfs -u, dracut -f). (unset) stands for a parameter that is not given.
    Of a module that is built into the kernel a plan has cmdline:NAME.PARAMETER in its place: modprobe.d is never read
    for it.
    """

    name: str
    parameter: str

    kind = "module"
    takes_effect = "reboot"
    id_form = "module:{self.name}:option.{self.parameter}"
    id_pattern = lazy_regex(rf"(?P<name>{NAME}):option\.(?P<parameter>{NAME})", re.ASCII)
    id_hint = "write module:nvme_core:option.multipath"
    accepted = OPTION_WORD
    wrong = WRONG_OPTION

    @property
    def why_refused(self) -> str | None:
        return refused_parameter(self.name, self.parameter)

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        # The id that was written may have hyphens.
        return (boot_word(self.name, self.parameter),) if is_built_in(host, self.name) else (self.id,)

    @property
    def probe(self) -> Probe:
        return ReadCommand(("modprobe", "--showconfig"), f"module-option:{self.name}:{self.parameter}")

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return option_edit(host, self.name, self.parameter, value, profile=profile)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if has_index(host) and read_dependencies(host, self.name) is None and self.name not in read_loaded(host):
            return Preflight(refusal="this kernel has no such module", state="not-applicable")
        again = "where the initramfs loads it, rebuild that first (update-initramfs -u, dracut -f, mkinitrd)"
        return Preflight(notes=(f"{self.id} takes effect when {self.name} is loaded again; {again}",))


_YES = ("1", "y", "yes", "on", "true")
_NO = ("0", "n", "no", "off", "false")


class ModuleParameter(KernelFile, frozen=True):
    """``module:NAME:PARAMETER`` — a parameter of a kernel module that is loaded, persisted as an option in
    modprobe.d(5), or in tmpfiles.d(5) where the module is built into the kernel.

    It is written where the kernel lets it be, below /sys/module/NAME/parameters. Where it does not, or where the module
    is not loaded, a plan has module:NAME:option.PARAMETER in its place. For a module that is built into the kernel
    modprobe.d is never read: a parameter that can be written is persisted in a line of tmpfiles.d, and for one that
    cannot a plan has cmdline:NAME.PARAMETER in its place. A switch reads Y or N and takes 1 or 0 too; of a list of
    choices the marked one is the value. A module that the initramfs loads has the option once that is rebuilt.
    """

    name: str
    parameter: str

    kind = "module"
    id_form = "module:{self.name}:{self.parameter}"
    path_form = "/sys/module/{self.name}/parameters/{self.parameter}"
    value_form = "choice"
    id_pattern = lazy_regex(rf"(?P<name>{NAME}):(?P<parameter>{NAME})", re.ASCII)
    id_hint = "write module:nvme_core:io_timeout"
    accepted = OPTION_WORD
    wrong = WRONG_OPTION

    @property
    def why_refused(self) -> str | None:
        return refused_parameter(self.name, self.parameter)

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        owner = host.owner(self.path)
        # A snapshot does not hold a file's mode.
        is_live = host.exists(self.path) if isinstance(owner, Missing) else bool(owner[0] & 0o222)
        if is_live:
            return (self.id,)
        if is_built_in(host, self.name):
            return (boot_word(self.name, self.parameter),)
        return (ModuleOption(self.name, self.parameter).id,)

    def choose_value(self, host: Host, live: str, wanted: str) -> str:
        if live in ("Y", "N") and wanted.lower() in (*_YES, *_NO):
            return "Y" if wanted.lower() in _YES else "N"
        return wanted

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if not is_built_in(host, self.name):
            return Preflight()
        word = boot_word(self.name, self.parameter)
        return Preflight(
            notes=(
                f"{self.name} is built into the kernel: what it reads while it starts is set by {word}={after} alone",
            )
        )

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        if is_built_in(host, self.name):
            return tmpfiles_edit(host, self.path, value, profile=profile)
        return option_edit(host, self.name, self.parameter, value, profile=profile)


def parse_module(rest: str) -> Tunable:
    """The tunable of ``NAME``, ``NAME:PARAMETER`` or ``NAME:option.PARAMETER``; a hyphen of NAME is an underscore, as
    to modprobe(8). Raises UsageError for what names none."""
    name, colon, parameter = rest.partition(":")
    rest = f"{module_name(name)}{colon}{parameter}"
    if ":option." in rest:
        return ModuleOption.parse(rest)
    return ModuleParameter.parse(rest) if ":" in rest else KernelModule.parse(rest)


KIND = Kind(
    name="module",
    order=150,
    parse=parse_module,
    noun="module setting",
    examples=(
        ("module:nf_conntrack", "loaded"),
        ("module:nvme_core:io_timeout", "255"),
        ("module:nvme_core:option.multipath", "N"),
    ),
    capture=Capture(
        files=(("/proc", ("modules",)),),
        configuration=(("/etc/modprobe.d", ("*.conf",)), ("/etc/modules-load.d", ("*.conf",))),
        marked=(
            "/sys/module",
            "/etc/modules-load.d",
            "/usr/lib/modules-load.d",
            "/lib/modules-load.d",
            "/run/modules-load.d",
        ),
        system_commands=(("modprobe", "--showconfig"),),
        values={"module:advisor": "loaded"},
    ),
    written_by=frozenset({"tuned"}),
    sysfs=((r"/sys/module/([^/]+)/parameters/([^/]+)", r"module:\1:\2"),),
    harm="A module that is in use takes a new option with the next load only.",
)
