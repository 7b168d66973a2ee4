"""``module:NAME`` — whether a kernel module is loaded; the value is loaded. Persisted in modules-load.d(5).

NAME is as /proc/modules has it, with underscores. On rollback the module goes, with those that it brought along, if
nothing uses them by then and there is no link of their making; one that was there before stays. What is built into the
kernel is there already.
"""

from __future__ import annotations

from advisor.facts.writers.late_modules import BRINGS
from advisor.host import Host, Missing, Probe, ReadFile, RunCommand, Step
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_modules import (
    BUILT_IN,
    NAME,
    has_index,
    is_built_in,
    loads_modules,
    read_dependencies,
    read_loaded,
)
from advisor.tunables.module_removal import removal_command
from advisor.tunables.preflight import Preflight
from advisor.tunables.tunable import DirectValue, UnknownIdError

_DIRECTORIES = ("/etc/modules-load.d", "/usr/lib/modules-load.d", "/lib/modules-load.d", "/run/modules-load.d")


class KernelModule(DirectValue, frozen=True):
    name: str

    id_form = "module:{self.name}"

    @classmethod
    def parse(cls, rest: str) -> KernelModule:
        if not NAME.fullmatch(rest):
            raise UnknownIdError(rest, kind="module", hint="write module:nf_conntrack or module:nf_conntrack:PARAMETER")
        return cls(rest)

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

    def check_value(self, value: str) -> str | None:
        return None if value in ("loaded", "unloaded") else "is not loaded"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (RunCommand(("modprobe", self.name)) if value == "loaded" else removal_command(self.name),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        # systemd reads the directory as soon as there is one.
        if not any(host.is_dir(directory) for directory in (*_DIRECTORIES, "/run/systemd/system")):
            return Missing("absent", "there is no modules-load.d here, so nothing would load it at boot")
        header = f"# Kernel modules of the profile {profile}.\n"
        return FileEdit(f"/etc/modules-load.d/advisor-{profile}.conf", "word", self.name, "", header.encode())

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
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
