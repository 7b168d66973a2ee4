"""``module:NAME:PARAMETER`` — a parameter of a kernel module that is loaded, persisted as an option in modprobe.d(5),
or in tmpfiles.d(5) where the module is built into the kernel.

It is written where the kernel lets it be, below /sys/module/NAME/parameters. Where it does not, or where the module is
not loaded, a plan has module:NAME:option.PARAMETER in its place. For a module that is built into the kernel modprobe.d
is never read: a parameter that can be written is persisted in a line of tmpfiles.d, and for one that cannot a plan has
cmdline:NAME.PARAMETER in its place. A switch reads Y or N and takes 1 or 0 too; of a list of choices the marked one is
the value. A module that the initramfs loads has the option once that is rebuilt.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.kernel_modules import NAME, is_built_in
from advisor.tunables.module_option import ModuleOption, boot_word, option_edit, wrong_option
from advisor.tunables.preflight import Preflight
from advisor.tunables.programs import refused_parameter
from advisor.tunables.tmpfiles_line import tmpfiles_edit
from advisor.tunables.tunable import RefusedIdError, UnknownIdError

_YES = ("1", "y", "yes", "on", "true")
_NO = ("0", "n", "no", "off", "false")


class ModuleParameter(KernelFile, frozen=True):
    name: str
    parameter: str

    id_form = "module:{self.name}:{self.parameter}"

    @classmethod
    def parse(cls, rest: str) -> ModuleParameter:
        name, _, parameter = rest.partition(":")
        if not NAME.fullmatch(name) or not re.fullmatch(r"[A-Za-z0-9_]{1,60}", parameter, re.ASCII):
            raise UnknownIdError(rest, kind="module", hint="write module:nvme_core:io_timeout")
        why = refused_parameter(name, parameter)
        if why:
            raise RefusedIdError(rest, kind="module", hint=why)
        return cls(name, parameter)

    @property
    def path(self) -> str:
        return f"/sys/module/{self.name}/parameters/{self.parameter}"

    @property
    def value_form(self) -> str:
        return "choice"

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        owner = host.owner(self.path)
        # A snapshot does not hold a file's mode.
        is_live = host.exists(self.path) if isinstance(owner, Missing) else bool(owner[0] & 0o222)
        if is_live:
            return (self.id,)
        if is_built_in(host, self.name):
            return (boot_word(self.name, self.parameter),)
        return (ModuleOption(self.name, self.parameter).id,)

    def check_value(self, value: str) -> str | None:
        return wrong_option(value)

    def choose_value(self, host: Host, live: str, wanted: str) -> str:
        if live in ("Y", "N") and wanted.lower() in (*_YES, *_NO):
            return "Y" if wanted.lower() in _YES else "N"
        return wanted

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
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
